"""A full disk: the store's own error, nothing half-written, and it goes on once there is room again.

A small file system of its own where this process may mount one (root in a container may), otherwise a limit on the size of files.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointError, CheckpointStore, OutcomeUnknown, Receipt, StorageError, create_store, open_store
from tests.store.samples import chain_is_intact, initial, outcome, revisions

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 3 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("may not mount a small file system here; the limit on file sizes is tested instead")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def filled(place: Path) -> Path:
    """A file that takes all the room there is."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    return filler


def written_until_full(store: CheckpointStore) -> tuple[list[Checkpoint], Checkpoint, CheckpointError]:
    checkpoint = initial({"blob": os.urandom(5000).hex()})
    store.compare_and_swap(checkpoint, None)
    acknowledged = [checkpoint]
    while True:
        checkpoint = checkpoint.next({"blob": os.urandom(5000).hex()})
        result = outcome(store, checkpoint, checkpoint.revision - 1)
        if isinstance(result, CheckpointError):
            return acknowledged, checkpoint, result
        acknowledged.append(checkpoint)


def test_a_commit_that_finds_no_room_is_not_there_and_works_once_there_is(small_disk: Path) -> None:
    create_store(small_disk / "store")
    with open_store(small_disk / "store") as store:
        acknowledged, refused, error = written_until_full(store)
        assert isinstance(error, StorageError)
        assert "full" in str(error)
        assert len(acknowledged) > 50
        assert store.load(refused.id) == acknowledged[-1]
        assert [each.checkpoint for each in revisions(store, refused.id)] == acknowledged
        assert outcome(store, refused, refused.revision - 1).__class__ is StorageError
    with open_store(small_disk / "store") as store:
        found = revisions(store, refused.id)
        assert [each.checkpoint for each in found] == acknowledged
        assert chain_is_intact(found)
    subprocess.run(["mount", "-o", "remount,size=12m", str(small_disk)], check=True)
    with open_store(small_disk / "store") as store:
        assert isinstance(outcome(store, refused, refused.revision - 1), Receipt)
        assert [each.checkpoint for each in revisions(store, refused.id)] == [*acknowledged, refused]


def test_every_call_fails_with_an_error_of_the_stores_own(small_disk: Path) -> None:
    # Once: list() is a bare OSError from the projection's lock file.
    create_store(small_disk / "store")
    store = open_store(small_disk / "store")
    first = initial()
    store.compare_and_swap(first, None)
    filler = filled(small_disk)
    try:
        assert store.load(first.id) == first
        big = initial({"blob": os.urandom(50_000).hex()})
        for call in (
            lambda: store.compare_and_swap(big, None),
            lambda: store.list(),
            lambda: store.catalog.rebuild(),
            lambda: store.resolve(first),
            lambda: store.close(),
        ):
            with contextlib.suppress(CheckpointError):
                call()
    finally:
        filler.unlink()
        store.close()
    with open_store(small_disk / "store") as again:
        assert [each.id for each in again.list().items] == [first.id]


def test_a_store_is_not_made_where_there_is_no_room(small_disk: Path) -> None:
    filler = filled(small_disk)
    with pytest.raises(StorageError):
        create_store(small_disk / "store")
    filler.unlink()
    create_store(small_disk / "store")
    with open_store(small_disk / "store") as store:
        store.compare_and_swap(initial(), None)


LIMITED = """
import os, resource, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.embedded.test_full_disk import written_until_full
from eventlog import open_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
with open_store(sys.argv[2]) as store:
    acknowledged, refused, error = written_until_full(store)
    print(type(error).__name__, len(acknowledged), refused.id, refused.event_id)
    assert store.load(refused.id) == acknowledged[-1], "the store does not go on reading"
"""


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    create_store(tmp_path / "store")
    arguments = [sys.executable, "-c", LIMITED, str(REPOSITORY), str(tmp_path / "store")]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr
    name, count, checkpoint_id, event_id = child.stdout.split()
    assert name in {StorageError.__name__, OutcomeUnknown.__name__}
    with open_store(tmp_path / "store") as store:
        found = revisions(store, checkpoint_id)
        assert chain_is_intact(found)
        assert len(found) == int(count) + (1 if store.resolve(event_id) else 0)
        if name == StorageError.__name__:
            assert store.resolve(event_id) is None
