"""Somebody writes to the topic past the fence: only ACLs can prevent that, but it must be noticed, contained and reported."""

from __future__ import annotations

import pytest

from eventlog import CheckpointStore, EventId, Quarantined, Revision
from eventlog.event import GENESIS
from eventlog.findings import FaultKind
from eventlog.recovery import Migrations, Refusal, plan_migration, run_migration
from eventlog.verification import verify
from tests.kafka_log.conftest import OpenStore
from tests.kafka_log.samples import event_of, initial, write_foreign


def good_head(store: CheckpointStore, checkpoint_id: str) -> bytes:
    revisions = [each for each in store.history(checkpoint_id) if isinstance(each, Revision)]
    return revisions[-1].hash


@pytest.fixture
def spoiled(broker: str, topic: str, store: CheckpointStore) -> dict[str, str]:
    """Checkpoints of partition 0, each followed by a foreign record; by what is wrong with it."""
    made: dict[str, str] = {}
    for fault in ("out of sequence", "repeated revision", "broken chain", "undecodable", "newer schema", "tombstone"):
        checkpoint = initial({"good": True}, partition=0)
        store.compare_and_swap(checkpoint, None)
        key = checkpoint.id.encode()
        head = good_head(store, checkpoint.id)
        following = checkpoint.next({"good": False})
        value: bytes | None
        if fault == "out of sequence":
            value = event_of(following.model_copy(update={"revision": 7}), head, 6)
        elif fault == "repeated revision":
            value = event_of(checkpoint.model_copy(update={"payload": {"good": False}, "event_id": EventId.new()}), GENESIS)
        elif fault == "broken chain":
            value = event_of(following, b"x" * 32, 0)
        elif fault == "undecodable":
            value = b"\xc3\x01 this is not an event"
        elif fault == "newer schema":
            value = b"\xc3\x01" + bytes(range(8)) + event_of(following, head, 0)[10:]
        else:
            value = None
        write_foreign(broker, topic, (0, key, value))
        made[fault] = checkpoint.id
    return made


def test_the_checkpoint_is_read_only_at_its_last_good_revision(store: CheckpointStore, spoiled: dict[str, str]) -> None:
    for fault, checkpoint_id in spoiled.items():
        loaded = store.load(checkpoint_id)
        assert loaded.payload == {"good": True}, fault
        with pytest.raises(Quarantined) as caught:
            store.compare_and_swap(loaded.next({"good": "again"}), 0)
        assert caught.value.last_good_revision == 0, fault
        assert [each.checkpoint.revision for each in store.history(checkpoint_id) if isinstance(each, Revision)] == [0], fault


def test_everything_else_goes_on(store: CheckpointStore, spoiled: dict[str, str]) -> None:
    assert spoiled
    for partition in (0, 1):
        other = initial(partition=partition)
        store.compare_and_swap(other, None)
        store.compare_and_swap(other.next({"step": 1}), 0)
        assert store.load(other.id).revision == 1


def test_a_migration_names_what_is_read_only_and_goes_on(store: CheckpointStore, spoiled: dict[str, str]) -> None:
    other = initial(partition=1)
    store.compare_and_swap(other, None)
    steps = Migrations().register(from_=(other.kind, 1), to=(other.kind, 2), up=lambda payload: payload)
    planned, done = plan_migration(store, steps), run_migration(store, steps)
    assert planned == done
    assert {each.checkpoint_id for each in done.refused} == set(spoiled.values())
    assert {each.why for each in done.refused} == {Refusal.QUARANTINED}
    assert store.load(other.id).schema_version == 2


def test_what_was_found_is_reported_with_its_reason(store: CheckpointStore, spoiled: dict[str, str]) -> None:
    for checkpoint_id in spoiled.values():
        store.load(checkpoint_id)
    reasons = store.log.view.quarantined()  # type: ignore[attr-defined]
    assert set(reasons) == set(spoiled.values())
    assert "after revision 0" in reasons[spoiled["out of sequence"]]
    assert "hash chain" in reasons[spoiled["broken chain"]]
    assert "cannot be decoded" in reasons[spoiled["undecodable"]] or "unknown schema" in reasons[spoiled["undecodable"]]
    assert "unknown schema, fingerprint 0001020304050607" in reasons[spoiled["newer schema"]]
    assert "tombstone" in reasons[spoiled["tombstone"]]
    rows = store.catalog.sql("SELECT checkpoint_id FROM checkpoint_heads WHERE quarantined").rows
    assert {str(row[0]) for row in rows} == set(spoiled.values())


def test_a_store_that_opens_later_and_a_rebuilt_one_find_the_same(
    store: CheckpointStore, opening: OpenStore, spoiled: dict[str, str]
) -> None:
    later = opening()
    store.catalog.rebuild()
    for each in (later, store):
        for checkpoint_id in spoiled.values():
            assert each.load(checkpoint_id).payload == {"good": True}
            with pytest.raises(Quarantined):
                each.compare_and_swap(each.load(checkpoint_id).next({}), 0)


def test_a_retry_of_what_was_committed_before_still_gets_its_receipt(broker: str, topic: str, store: CheckpointStore) -> None:
    checkpoint = initial(partition=0)
    receipt = store.compare_and_swap(checkpoint, None)
    write_foreign(broker, topic, (0, checkpoint.id.encode(), b"rubbish"))
    assert store.compare_and_swap(checkpoint, None) == receipt._replace(duplicate=True)


def test_a_record_that_no_checkpoint_would_be_replaced_by_blocks_none(broker: str, topic: str, store: CheckpointStore) -> None:
    one, other = initial(partition=0), initial(partition=0)
    for each in (one, other):
        store.compare_and_swap(each, None)
    write_foreign(broker, topic, (0, b"not an id at all", event_of(one.next({}), good_head(store, one.id), 0)))
    # In the other partition compaction would not prefer it to the checkpoint's own records.
    write_foreign(broker, topic, (1, one.id.encode(), event_of(one.next({}), good_head(store, one.id), 0)))
    for each in (one, other):
        store.compare_and_swap(each.next({"fine": True}), 0)
        assert store.load(each.id).revision == 1
    reasons = store.catalog.sql('SELECT reason FROM quarantined_records ORDER BY partition, "offset"').rows
    assert [reason for (reason,) in reasons] == [
        f"its key is not the id of its checkpoint {one.id}",
        "it belongs to partition 0",
    ]


def test_verification_names_what_lies_in_another_partition_than_its_keys(broker: str, topic: str, store: CheckpointStore) -> None:
    one = initial(partition=0)
    store.compare_and_swap(one, None)
    head = good_head(store, one.id)
    write_foreign(broker, topic, (1, one.id.encode(), event_of(one.next({"foreign": True}), head, 0)), (1, one.id.encode(), b"rubbish"))
    store.compare_and_swap(one.next({"fine": True}), 0)
    found = verify(store)
    assert dict(found.fault_counts) == {FaultKind.WRONG_PARTITION: 1, FaultKind.UNREADABLE: 1}, found.faults
    wrong = next(fault for fault in found.faults if fault.kind is FaultKind.WRONG_PARTITION)
    assert (wrong.position, wrong.checkpoint_id, wrong.problem) == ("1:0", one.id, "belongs to partition 0")
    assert found.checkpoints == 1


def test_verification_and_projection_agree_on_what_a_foreign_record_blocks(broker: str, topic: str, store: CheckpointStore) -> None:
    """A checkpoint that begins with a foreign record has no good revision, whatever comes behind it."""
    squatted = initial(partition=0)
    write_foreign(broker, topic, (0, squatted.id.encode(), b"rubbish"), (0, squatted.id.encode(), event_of(squatted)))
    found = verify(store)
    assert dict(found.fault_counts) == {FaultKind.UNREADABLE: 1, FaultKind.BEHIND_A_FAULT: 1}, found.faults


def test_a_checkpoint_that_begins_with_a_foreign_record_cannot_be_written(broker: str, topic: str, store: CheckpointStore) -> None:
    squatted = initial(partition=0)
    write_foreign(broker, topic, (0, squatted.id.encode(), b"rubbish"))
    store.position()
    with pytest.raises(Quarantined) as caught:
        store.compare_and_swap(squatted, None)
    assert caught.value.last_good_revision is None


def test_subscribers_see_good_revisions_only(store: CheckpointStore, spoiled: dict[str, str]) -> None:
    from eventlog import Position

    seen = [each.checkpoint.id for each in store.subscribe(Position(), idle_timeout=0)]
    assert sorted(seen) == sorted(spoiled.values())
