"""A log that is archived and compacted; and what must hold however that ended."""

from __future__ import annotations

from pathlib import Path

from eventlog import open_store
from eventlog.archive.checking import check_archive
from eventlog.archive.compacting import compact
from eventlog.archive.directory import Archive
from eventlog.archive.running import Limits, run_archive
from eventlog.verification import verify
from projections.archive import read_segment
from tests.faults.embedded.notes import Notes, told
from tests.faults.embedded.promises import check, check_history
from tests.faults.embedded.workloads import Caller, first

_LIMITS = Limits(rows=6)


def _archive(directory: str) -> Archive:
    return Archive(directory=Path(directory) / "archive")


def archiving(notes: Notes, directory: str) -> None:
    """Archived and compacted twice, with commits in between."""
    archive = _archive(directory)
    caller = Caller(Path(directory) / "store", notes)
    with caller.opened():
        for number in range(2):
            caller.ask(f"archive {number}", lambda store: run_archive(store, archive, limits=_LIMITS))
            caller.ask(f"compact {number}", lambda store: compact(store, archive, hold_ms=0))
            caller.commit(first(f"behind {number}"), None)


def check_archiving(notes: Notes, directory: str, said: list[str]) -> None:
    """Whatever has a finished name is whole; every event is there with its body; and both go on to the end."""
    archive = _archive(directory)
    for file in archive.directory.glob("0/*.parquet"):
        assert list(read_segment(file)), f"half a segment has the name {file.name}"
    with open_store(Path(directory) / "store") as store:
        if archive.partitions():
            check_archive(archive)
        check_history(store, told(said), notes)
        found = verify(store, archive=archive)
        assert found.is_clean, found.faults
        run_archive(store, archive, limits=_LIMITS)
        compact(store, archive, hold_ms=0)
        check_history(store, told(said), notes)
        found = verify(store, archive=archive)
        assert found.is_clean, found.faults
        assert (found.archived, found.moved) == (found.events, found.events - found.checkpoints)
    left = {each.suffix for each in (archive.directory / "0").iterdir()}
    assert left == {".parquet", ".json"}, f"left behind: {left}"
    check(notes, directory, said)
