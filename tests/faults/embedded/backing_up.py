"""A store that is backed up and restored; and what must hold however that ended."""

from __future__ import annotations

from pathlib import Path

from eventlog import open_store
from eventlog.backup.making import backup
from eventlog.backup.manifest import MANIFEST, read_backup
from eventlog.backup.restoring import restore
from eventlog.verification import verify
from tests.faults.embedded.notes import Notes, told
from tests.faults.embedded.promises import check
from tests.faults.embedded.workloads import Caller, first

_REASON = "a test"


def backing_up(notes: Notes, directory: str) -> None:
    """Backed up and restored, with a commit before and behind."""
    place = Path(directory)
    caller = Caller(place / "store", notes)
    with caller.opened():
        caller.commit(first("before"), None)
        caller.ask("backup", lambda store: backup(store, place / "backup"))
        caller.commit(first("behind"), None)
    if (place / "backup").exists():
        caller.step("restore", lambda: restore(place / "backup", place / "restored", without_register=_REASON))


def check_backing_up(notes: Notes, directory: str, said: list[str]) -> None:
    """Whatever has a finished name is whole, what was said to be done is there, and both can be done again."""
    place, heard = Path(directory), told(said)
    if (place / "backup").exists():
        assert (place / "backup" / MANIFEST).exists(), "half a backup has a finished name"
    else:
        assert not heard.done("backup"), "a backup that was made is not there"
        with open_store(place / "store") as store:
            backup(store, place / "backup")
    made = read_backup(place / "backup")
    made.check_files()
    if not (place / "restored").exists():
        assert not heard.done("restore"), "a store that was restored is not there"
        restore(place / "backup", place / "restored", without_register=_REASON)
    with open_store(place / "restored") as restored:
        found = verify(restored)
        assert found.is_clean, found.faults
        assert found.events == made.manifest.events + 1, "half a store has a finished name"
    left = [each.name for each in place.iterdir() if each.name.endswith(".part")]
    assert not left, f"left behind: {left}"
    check(notes, directory, said)
