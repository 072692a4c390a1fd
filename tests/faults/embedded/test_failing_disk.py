"""A disk that is full or fails at the Nth call: the store's own error, never a false answer, and the store goes on when it works again.

A flush that failed is the hardest: the kernel forgets what it could not write, so that the next flush succeeds without it. What was told
on the strength of that one would be lost; `resolve()` therefore overwrites the journal's end before it answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.embedded.conftest import Begun
from tests.faults.embedded.injection import Ended, WarmProcess
from tests.faults.embedded.trial import Trials, Workload

pytestmark = pytest.mark.strace

WORKLOADS = [
    Workload("life"),
    Workload("together", begins_with="prepared"),
    Workload("rebuilding", begins_with="prepared"),
]
_FAULTS = 14  # of one workload and error in the short pass
_READING = ("pread64", "openat")
_FAILURES = {"StorageError", "OutcomeUnknown", "Corrupted", "Busy", "SchemaMismatch"}  # not NotAStore: what could not be made is not there


_THREADS = 4  # of `together`: one call that fails is a failure for each caller of its group


def failures(ended: Ended) -> list[list[str]]:
    """The failures of a run, one list a call of the store: `compare_and_swap_many` has several outcomes."""
    found: list[list[str]] = []
    same_call = False
    for kind, *fields in map(json.loads, ended.said):
        if kind == "answer" or (kind == "step" and fields[1] is not None):
            if fields[1] in _FAILURES:
                if same_call:
                    found[-1].append(fields[1])
                else:
                    found.append([fields[1]])
                same_call = True
        else:
            same_call = False
    return found


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.task)
def test_a_call_that_fails_once_costs_one_answer_and_no_promise(
    warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun], workload: Workload, error: str
) -> None:
    trials = Trials(warm, folder, begun, workload)
    for call, number in trials.faults(least=_FAULTS):
        ended = trials.run([f"trace={call}", f"inject={call}:error={error}:when={number}"])
        # strace counts by thread, so that a call may fail once in each. Its failure must not outlast it.
        told = failures(ended)
        assert len(told) <= ended.injected * (_THREADS if workload.task == "together" else 1), (
            f"{call} {number} {error}: {told}: the disk works again, the store does not"
        )
    print(f"{workload.task} {error}: {dict(trials.happened)}")
    assert trials.happened["calls failed"] > _FAULTS / 2


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_disk_that_fails_from_some_call_on_is_told_and_breaks_no_promise(
    warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun], error: str
) -> None:
    trials = Trials(warm, folder, begun, Workload("life"))
    for call, number in trials.faults(least=_FAULTS):
        trials.run([f"trace={call}", f"inject={call}:error={error}:when={number}+"])
    print(f"life {error} from then on: {dict(trials.happened)}")
    assert trials.happened["calls failed"] > _FAULTS / 2


def test_a_read_that_fails_is_an_error_of_the_stores_own(warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun]) -> None:
    trials = Trials(warm, folder, begun, Workload("life"))
    for call, number in trials.faults(least=_FAULTS, calls=_READING):
        trials.run([f"trace={call}", f"inject={call}:error=EIO:when={number}"])
    assert trials.happened["calls failed"] > _FAULTS / 2


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_failure_behind_the_flush_of_a_commit_is_an_unknown_outcome(
    warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun], error: str
) -> None:
    # SQLite extends the journal's index when a commit is on the disk already: whoever recovers the journal finds it there.
    trials = Trials(warm, folder, begun, Workload("long_journal", begins_with="prepared"))
    for number in (9, 16):  # the first 8 make the index, the next 8 extend it
        inject = f"inject=pwrite64:error={error}:when={number}"
        ended = trials.run(["trace=pwrite64", inject], paths=["store/log.sqlite3-shm"])
        assert ended.killed, "no commit failed"
        assert failures(ended) == [["OutcomeUnknown"]]
    assert trials.happened["unanswered and there"] == 2


def test_what_resolve_has_said_is_not_in_the_log_is_not_there_after_a_crash(
    warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun]
) -> None:
    # The flush fails when the commit is in the journal already; without the write that `resolve` makes, a crash would bring it back.
    trials = Trials(warm, folder, begun, Workload("asking", begins_with="prepared"))
    for number in (2, 3, 4):
        ended = trials.run(["trace=fdatasync", f"inject=fdatasync:error=EIO:when={number}"], paths=["store/log.sqlite3-wal"])
        assert ended.killed
        assert [found for _, found in ended.heard.resolved] == [False]
