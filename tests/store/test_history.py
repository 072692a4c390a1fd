"""history: every revision, oldest first, in part, as of a past."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointStore, EventType, InvalidRequest, NotFound, Position, Revision
from tests.store.other_process import calling
from tests.store.samples import UNUSED_ID, chain_is_intact, revisions, stream


def checkpoints(store: CheckpointStore, checkpoint_id: str, **arguments: Any) -> list[Checkpoint]:
    return [each.checkpoint for each in store.history(checkpoint_id, **arguments) if isinstance(each, Revision)]


def test_every_revision_oldest_first_and_chained(store: CheckpointStore) -> None:
    written = stream(store, 5)
    found = revisions(store, written[0].id)
    assert [each.checkpoint for each in found] == written
    assert chain_is_intact(found)


def test_more_than_one_query_takes(store: CheckpointStore) -> None:
    written = [stream(store, 1)[0]]
    for _ in range(430):
        written.append(written[-1].next({"step": len(written)}))
    store.compare_and_swap_many([(each, each.revision - 1) for each in written[1:]])
    assert checkpoints(store, written[0].id) == written
    assert checkpoints(store, written[0].id, limit=250) == written[:250]
    assert checkpoints(store, written[0].id, after=199, limit=200) == written[200:400]


@pytest.mark.parametrize(("after", "limit"), [(-1, None), (-1, 2), (0, None), (1, 2), (3, 9), (4, None), (99, 1), (-1, 0)])
def test_after_and_limit(store: CheckpointStore, after: int, limit: int | None) -> None:
    written = stream(store, 5)
    behind = [each for each in written if each.revision > after]
    assert checkpoints(store, written[0].id, after=after, limit=limit) == behind[:limit]


def test_as_of_a_position(store: CheckpointStore) -> None:
    written = stream(store, 3)
    then = store.position()
    store.compare_and_swap(written[-1].next({}), 2)
    assert checkpoints(store, written[0].id, at=then) == written
    assert checkpoints(store, written[0].id, at=then, after=0, limit=1) == [written[1]]
    assert {each.as_of for each in store.history(written[0].id, at=then) if isinstance(each, Revision)} == {then}
    assert checkpoints(store, written[0].id, at=Position()) == []


def test_as_of_a_time(store: CheckpointStore) -> None:
    written = stream(store, 3)
    latest = store.load_revision(written[0].id)
    assert checkpoints(store, written[0].id, at=latest.recorded_at) == written


def test_the_deletion_is_part_of_it(store: CheckpointStore) -> None:
    written = stream(store, 2)
    store.delete(written[0].id, 1)
    found = revisions(store, written[0].id)
    assert [each.type for each in found] == [EventType.REVISION, EventType.REVISION, EventType.DELETED]
    assert found[-1].checkpoint.payload is None
    assert chain_is_intact(found)


def test_another_process_reads_the_same(store: CheckpointStore, second_address: str) -> None:
    written = stream(store, 3)
    (answer,) = calling(second_address, ("history", (written[0].id,), {}))
    assert answer == revisions(store, written[0].id)


def test_an_absent_one_is_not_found_at_once(store: CheckpointStore) -> None:
    with pytest.raises(NotFound, match=UNUSED_ID):
        store.history(UNUSED_ID)


@pytest.mark.parametrize(
    "arguments", [{"after": "0"}, {"after": None}, {"limit": -1}, {"limit": "2"}, {"limit": True}, {"after": 1.5}], ids=str
)
def test_a_malformed_question_is_refused(store: CheckpointStore, arguments: dict[str, Any]) -> None:
    # Once: `after` and `limit` are not checked: text for `after` silently gives nothing, a text limit is a bare TypeError.
    written = stream(store, 2)
    with pytest.raises(InvalidRequest):
        list(store.history(written[0].id, **arguments))
