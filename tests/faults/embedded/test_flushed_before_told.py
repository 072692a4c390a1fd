"""Nothing is told before what it rests on is on the disk: seen in the order of the system's calls, since no kill shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.embedded.conftest import Begun
from tests.faults.embedded.flushed import TRACED, Flushing
from tests.faults.embedded.injection import WarmProcess
from tests.faults.embedded.trial import Trials, Workload

pytestmark = pytest.mark.strace

# SQLite's index of its journal is made anew from it; a projection is made anew from the log; the lock's content is a courtesy.
_DISPOSABLE = ("log.sqlite3-shm", "projection.duckdb", "rebuild-projection.duckdb")


def followed(
    trials: Trials, folder: Path, disposable: tuple[str, ...], nameless: tuple[str, ...] = (), *, concurrent: bool = False
) -> Flushing:
    ended = trials.run([f"trace={','.join(TRACED)}"], names=True)
    flushing = Flushing(directory=str(folder / "trial"), disposable=disposable, nameless=nameless, concurrent=concurrent)
    flushing.read(ended.trace)
    return flushing


@pytest.mark.parametrize("workload", [Workload("life"), Workload("together", begins_with="prepared")], ids=lambda each: each.task)
def test_nothing_is_answered_before_it_is_flushed(
    warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun], workload: Workload
) -> None:
    flushing = followed(Trials(warm, folder, begun, workload), folder, _DISPOSABLE, concurrent=workload.task == "together")
    assert not flushing.faults, flushing.faults[0]
    assert flushing.answers > 15


def test_a_projection_is_flushed_before_it_says_applied(warm: WarmProcess, folder: Path, begun: Callable[[str | None], Begun]) -> None:
    trials = Trials(warm, folder, begun, Workload("projecting", check="check_projection"))
    # DuckDB does not flush the directory that its journal appears in. Where a file system needs that, the projection falls back to the
    # positions of its last checkpoint, and follows the log from there.
    flushing = followed(trials, folder, ("p.duckdb.lock", "new.duckdb"), nameless=(".wal",))
    assert not flushing.faults, flushing.faults[0]
    assert flushing.answers > 5
