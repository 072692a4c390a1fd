"""A process that dies at the Nth call that changes a file breaks no promise, whatever N.

strace kills it where the kernel takes the call, so that everything before the call has happened and nothing of it has. Two calls next to
each other enclose every state that the files can be left in; only a power loss leaves others (test_flushed_before_told).
`EVENTLOG_EVERY_FAULT=1` tries every N, otherwise some do (`EVENTLOG_SEED`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.embedded.conftest import Begun
from tests.faults.embedded.injection import WarmProcess
from tests.faults.embedded.selection import EVERY
from tests.faults.embedded.trial import Trials, Workload

pytestmark = pytest.mark.strace

WORKLOADS = [
    Workload("life"),
    Workload("together", begins_with="prepared"),
    Workload("rebuilding", begins_with="prepared"),
    Workload("projecting", check="check_projection"),
    Workload("archiving", begins_with="prepared", check="check_archiving"),
    Workload("backing_up", begins_with="prepared", check="check_backing_up"),
]
_KILLS = 24  # of one workload in the short pass; a run and its check take about half a second of a core


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.task)
def test_a_process_killed_at_any_call_breaks_no_promise(
    warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun], workload: Workload
) -> None:
    trials = Trials(warm, folder, begun, workload)
    points = trials.faults(least=_KILLS)
    for call, number in points:
        trials.run([f"trace={call}", f"inject={call}:signal=KILL:when={number}"])
    for call in {call for call, _ in points} if EVERY else ():  # groups and layouts vary: on until nobody is killed
        number = max(number for each, number in points if each == call) + 1
        while trials.run([f"trace={call}", f"inject={call}:signal=KILL:when={number}"]).killed:
            number += 1
    print(f"{workload.task}: {dict(trials.happened)}")
    assert trials.happened["killed"] >= min(_KILLS, len(points)) * 0.5, "too few of the calls came to be made"
