"""Heads kept in memory are never stale: another process commits in between, and the next answer knows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import CheckpointStore, Conflict, Receipt, open_store
from tests.store.other_process import Refused, calling
from tests.store.samples import outcome, revisions, stream


def test_a_writer_with_its_head_in_memory_is_told_of_the_others_commit(store: CheckpointStore, directory: Path) -> None:
    first = stream(store, 1)[0]
    second = first.next({"mine": 1})
    store.compare_and_swap(second, 0)  # the lone caller's way from here on: its head is in memory
    theirs = second.next({"theirs": True})
    (receipt,) = calling(directory.as_posix(), ("compare_and_swap", (theirs, 1), {}))
    assert receipt.revision == 2
    error = outcome(store, second.next({"mine": 2}), 1)
    assert isinstance(error, Conflict)
    assert (error.expected, error.actual, error.proposed) == (1, 2, 2)
    assert store.load(first.id) == theirs
    following = theirs.next({"mine": 3})
    assert isinstance(outcome(store, following, 2), Receipt)
    assert [each.checkpoint for each in revisions(store, first.id)] == [first, second, theirs, following]


def test_anothers_commit_to_another_checkpoint_moves_the_position_only(store: CheckpointStore, directory: Path) -> None:
    mine, other = stream(store, 2)[-1], stream(store, 1)[0]
    calling(directory.as_posix(), ("compare_and_swap", (other.next({}), 0), {}))
    receipt = store.compare_and_swap(mine.next({}), 1)
    assert receipt.position.offsets == ((0, 5),)
    assert store.position() == receipt.position


def test_a_retry_of_ones_own_event_after_anothers_commit(store: CheckpointStore, directory: Path) -> None:
    first = stream(store, 1)[0]
    second = first.next({})
    receipt = store.compare_and_swap(second, 0)
    calling(directory.as_posix(), ("compare_and_swap", (second.next({}), 1), {}))
    assert store.compare_and_swap(second, 0) == receipt._replace(duplicate=True)


def test_anothers_deletion_is_known_at_once(store: CheckpointStore, directory: Path) -> None:
    first = stream(store, 2)[-1]
    calling(directory.as_posix(), ("delete", (first.id, 1), {}))
    assert type(outcome(store, first.next({}), 1)).__name__ == "Deleted"


@pytest.mark.parametrize("lists_first", [True, False])
def test_a_second_process_may_list_while_the_first_owns_the_projection(store: CheckpointStore, directory: Path, lists_first: bool) -> None:
    first = stream(store, 2)[-1]
    if lists_first:
        assert len(store.list().items) == 1
    (answer,) = calling(directory.as_posix(), ("list", (), {}))
    assert not isinstance(answer, Refused)
    assert [(each.id, each.revision) for each in answer.items] == [(first.id, 1)]
    stream(store, 1)
    assert len(store.list().items) == 2


def test_a_second_store_of_the_same_process_may_list_too(store: CheckpointStore, directory: Path) -> None:
    stream(store, 1)
    assert len(store.list().items) == 1
    with open_store(directory) as other:
        stream(other, 1)
        assert len(other.list().items) == len(store.list().items) == 2
        stream(store, 1)
        assert len(other.list().items) == 3
    assert len(store.list().items) == 3


def test_after_a_clean_close_the_next_process_owns_the_projection(store: CheckpointStore, directory: Path) -> None:
    stream(store, 1)
    store.list()
    store.close()
    with open_store(directory) as other:
        assert len(other.list().items) == 1
        other.catalog.rebuild()
        assert len(other.list().items) == 1
