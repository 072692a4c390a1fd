"""A directory that may not be written is refused at open, in the store's own words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog import open_store
from tests.store.samples import stream

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = 65534

CHILD = """
import os, sys
sys.path.insert(0, sys.argv[1])
import eventlog
from eventlog import *
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    {what}
except CheckpointError as error:
    print(type(error).__name__, error, error.hint, sep="\\n")
else:
    print("done")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that everybody may go through, whatever pytest made of its own."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    return tmp_path


def as_nobody(what: str) -> list[str]:
    child = subprocess.run(
        [sys.executable, "-c", CHILD.format(what=what), str(REPOSITORY)], capture_output=True, text=True, timeout=60, check=True
    )
    return child.stdout.splitlines()


def test_a_read_only_store_is_refused(place: Path) -> None:
    from eventlog import create_store

    create_store(place / "store")
    with open_store(place / "store") as store:
        first = stream(store, 1)[0]
    (place / "store" / "log.sqlite3").chmod(0o444)
    (place / "store").chmod(0o555)
    what = f"s = open_store({str(place / 'store')!r}); s.load({str(first.id)!r}); s.compare_and_swap(s.load({str(first.id)!r}).next(1), 0)"
    name, message, hint = as_nobody(what)
    assert name == "StorageError"
    assert "log.sqlite3" in message
    assert "writ" in message + hint
    (place / "store").chmod(0o755)
    with open_store(place / "store") as store:
        assert store.load(first.id) == first


def test_a_directory_that_cannot_be_looked_into_is_refused(place: Path) -> None:
    from eventlog import create_store

    create_store(place / "store")
    (place / "store").chmod(0o700)
    name, message, _ = as_nobody(f"open_store({str(place / 'store')!r})")
    if os.getuid() == 0:
        assert name == "StorageError"
        assert "store" in message


@pytest.mark.parametrize("below", ["", "a/b"])
def test_a_store_is_not_made_where_nothing_may_be_written(place: Path, below: str) -> None:
    (place / "locked").mkdir()
    (place / "locked").chmod(0o555)
    name, message, _ = as_nobody(f"create_store({str(place / 'locked' / below)!r})")
    assert name == "StorageError"
    assert "locked" in message
    assert list((place / "locked").iterdir()) == []
    (place / "locked").chmod(0o755)
