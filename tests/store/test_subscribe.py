"""subscribe: every revision behind a position, as it is committed."""

from __future__ import annotations

import threading
import time

import pytest

from eventlog import CheckpointStore, EventType, Position, Receipt, Revision, StoreClosed, open_store
from tests.store.other_process import finish, start
from tests.store.samples import initial, since, stream


def test_from_the_start(fresh_address: str) -> None:
    with open_store(fresh_address) as store:
        assert since(store, Position()) == []
        one, two = stream(store, 2), stream(store, 2)
        store.delete(one[0].id, 1)
        found = since(store, Position())
    assert sorted(each.checkpoint.event_id for each in found[:-1] if each.type is EventType.REVISION) <= sorted(
        each.event_id for each in [*one, *two]
    )
    assert len(found) == 5
    for written in (one, two):
        mine = [each.checkpoint for each in found if each.checkpoint.id == written[0].id and each.type is EventType.REVISION]
        assert mine == written


def test_from_now(store: CheckpointStore) -> None:
    stream(store, 2)
    now = store.position()
    written = stream(store, 3)
    assert [each.checkpoint for each in since(store, now)] == written


def test_every_receipt_points_just_behind_its_event(store: CheckpointStore) -> None:
    first = initial()
    receipt = store.compare_and_swap(first, None)
    assert isinstance(receipt, Receipt)
    (found,) = (each for each in since(store, Position()) if each.checkpoint.event_id == first.event_id)
    assert (found.position, found.recorded_at) == (receipt.position, receipt.recorded_at)
    assert store.position().covers(receipt.position)


def test_it_resumes_behind_any_revision(store: CheckpointStore) -> None:
    now = store.position()
    written = stream(store, 5)
    found = since(store, now)
    assert [each.checkpoint for each in found] == written
    for number, each in enumerate(found):
        offsets = {**dict(now.offsets), **dict(each.position.offsets)}
        assert [later.checkpoint for later in since(store, Position.of(offsets))] == written[number + 1 :]


def test_it_sees_commits_as_they_come(store: CheckpointStore) -> None:
    now = store.position()
    first = initial()
    found: list[Revision] = []
    seen = threading.Event()

    def follow() -> None:
        for each in store.subscribe(now, idle_timeout=20):
            found.append(each)
            seen.set()
            if len(found) == 3:
                return

    follower = threading.Thread(target=follow)
    follower.start()
    checkpoint, expected = first, None
    written = []
    for _ in range(3):
        seen.clear()
        store.compare_and_swap(checkpoint, expected)
        written.append(checkpoint)
        assert seen.wait(10)
        checkpoint, expected = checkpoint.next({}), checkpoint.revision
    follower.join(10)
    assert not follower.is_alive()
    assert [each.checkpoint for each in found] == written


def test_it_sees_other_processes_commits(store: CheckpointStore, second_address: str) -> None:
    now = store.position()
    written = [initial({"number": number}) for number in range(3)]
    process = start(second_address, [("compare_and_swap", (each, None), {}) for each in written])
    found = []
    for each in store.subscribe(now, idle_timeout=60):
        found.append(each)
        if len(found) == 3:
            break
    finish(process)
    assert sorted(each.checkpoint.event_id for each in found) == sorted(each.event_id for each in written)
    assert {each.actor for each in found} == {"another process"}


def test_it_ends_after_the_idle_time(store: CheckpointStore) -> None:
    begun = time.monotonic()
    assert list(store.subscribe(store.position(), idle_timeout=0.2)) == []
    assert 0.2 <= time.monotonic() - begun < 10


def test_closing_the_store_ends_it(fresh_address: str) -> None:
    store = open_store(fresh_address)
    ended: list[BaseException] = []

    def follow() -> None:
        try:
            list(store.subscribe(Position()))
        except StoreClosed as error:
            ended.append(error)

    follower = threading.Thread(target=follow)
    follower.start()
    store.close()
    follower.join(20)
    assert not follower.is_alive()
    assert len(ended) == 1


def test_two_subscribers_get_the_same(store: CheckpointStore) -> None:
    now = store.position()
    written = stream(store, 4)
    one, two = store.subscribe(now, idle_timeout=0), store.subscribe(now, idle_timeout=0)
    pairs = list(zip(one, two, strict=True))
    assert [each.checkpoint for each, _ in pairs] == written
    assert all(left == right for left, right in pairs)


def test_a_closed_store_refuses(fresh_address: str) -> None:
    store = open_store(fresh_address)
    first = stream(store, 1)[0]
    store.close()
    store.close()
    for call in (
        lambda: store.load(first.id),
        lambda: store.compare_and_swap(first.next({}), 0),
        lambda: list(store.subscribe(Position())),
        lambda: store.position(),
        lambda: store.list(),
        lambda: store.resolve(first),
        lambda: list(store.history(first.id)),
        lambda: store.delete(first.id, 0),
    ):
        with pytest.raises(StoreClosed):
            call()
