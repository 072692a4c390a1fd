"""A migrated revision: the only successor that may change kind and schema version, by the same compare-and-swap."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventlog import (
    AsyncCheckpointStore,
    Checkpoint,
    CheckpointStore,
    Conflict,
    Deleted,
    EventIdReused,
    EventType,
    InvalidRequest,
    NotFound,
    RunId,
)
from eventlog.verification import verify
from tests.store.other_process import calling
from tests.store.samples import chain_is_intact, initial, nothing_written, outcome, revisions, stream

USAGE = {"tokens": 100}


def migrated(checkpoint: Checkpoint, kind: str = "acme.invoice", version: int = 2, **fields: Any) -> Checkpoint:
    """The successor of a checkpoint as another kind and version."""
    return checkpoint.next({"migrated": True}, **fields).model_copy(update={"kind": kind, "schema_version": version})


def test_a_migrated_revision_changes_kind_and_schema_version_and_nothing_else(store: CheckpointStore) -> None:
    last = stream(store, 3, labels={"env": "prod"}, usage=USAGE)[-1]
    following = migrated(last)
    receipt = store.migrate_revision(following, 2)
    assert (receipt.revision, receipt.event_id, receipt.duplicate) == (3, following.event_id, False)
    found = store.load_revision(last.id)
    assert found.type is EventType.MIGRATED
    assert found.checkpoint == following
    assert (found.checkpoint.kind, found.checkpoint.schema_version) == ("acme.invoice", 2)
    assert (found.checkpoint.labels, found.checkpoint.usage, found.checkpoint.run_id) == ({"env": "prod"}, USAGE, last.run_id)
    assert chain_is_intact(revisions(store, last.id))
    assert [each.id for each in store.list(kind="acme.invoice", run_id=last.run_id).items] == [last.id]


def test_whoever_goes_on_from_a_migrated_revision_keeps_its_kind(store: CheckpointStore, second_address: str) -> None:
    last = stream(store, 1)[-1]
    following = migrated(last)
    store.migrate_revision(following, 0)
    with nothing_written(store):
        stale = outcome(store, last.next({"live": True}), 0)
        backwards = outcome(store, following.next({}).model_copy(update={"kind": last.kind, "schema_version": 1}), 1)
    assert isinstance(stale, Conflict)
    assert stale.actual == 1
    assert isinstance(backwards, InvalidRequest)
    (answer,) = calling(second_address, ("compare_and_swap", (following.next({"by": "another process"}), 1), {}))
    assert answer.revision == 2
    assert store.load(last.id).kind == "acme.invoice"


def test_a_migrated_revision_is_refused_where_a_plain_one_would_be(store: CheckpointStore) -> None:
    last = stream(store, 3, usage=USAGE)[-1]
    gone = stream(store, 1)[-1]
    store.delete(gone.id, 0)
    with nothing_written(store):
        with pytest.raises(Conflict) as caught:
            store.migrate_revision(migrated(last.model_copy(update={"revision": 1})), 1)
        assert caught.value.actual == 2
        with pytest.raises(NotFound):
            store.migrate_revision(migrated(initial()), 0)
        with pytest.raises(Deleted):
            store.migrate_revision(migrated(gone.model_copy(update={"revision": 1})), 1)
        with pytest.raises(InvalidRequest, match=r"usage\.tokens"):
            store.migrate_revision(migrated(last, usage={"tokens": 99}), 2)
        with pytest.raises(InvalidRequest, match="run_id"):
            store.migrate_revision(migrated(last).model_copy(update={"run_id": RunId.new()}), 2)
        with pytest.raises(InvalidRequest, match="kind"):
            store.migrate_revision(migrated(last, kind="no kind at all"), 2)
        with pytest.raises(InvalidRequest, match="expected"):
            store.migrate_revision(initial(), None)  # type: ignore[arg-type]


def test_a_migrated_revision_sent_again_gets_its_first_receipt_and_as_a_plain_one_is_refused(store: CheckpointStore) -> None:
    following = migrated(stream(store, 1)[-1])
    receipt = store.migrate_revision(following, 0)
    store.compare_and_swap(following.next({}), 1)
    assert store.migrate_revision(following, 0) == receipt._replace(duplicate=True)
    assert store.resolve(following) == receipt
    with nothing_written(store):
        error = outcome(store, following, 0)
    assert isinstance(error, EventIdReused)


def test_of_a_migration_and_a_live_writer_one_wins(store: CheckpointStore) -> None:
    last = stream(store, 1)[-1]
    store.compare_and_swap(last.next({"live": True}), 0)
    with nothing_written(store), pytest.raises(Conflict):
        store.migrate_revision(migrated(last), 0)


def test_on_an_event_loop_it_is_the_same(store: CheckpointStore) -> None:
    following = migrated(stream(store, 1)[-1])

    async def run() -> None:
        aio = AsyncCheckpointStore(store)
        receipt = await aio.migrate_revision(following, 0)
        assert await aio.migrate_revision(following, 0) == receipt._replace(duplicate=True)
        with pytest.raises(InvalidRequest, match="expected"):
            await aio.migrate_revision(initial(), None)  # type: ignore[arg-type]

    asyncio.run(run())
    assert store.load_revision(following.id).type is EventType.MIGRATED


def test_a_store_with_migrated_revisions_verifies_clean(fresh_address: str) -> None:
    from eventlog import open_store

    with open_store(fresh_address) as store:
        store.migrate_revision(migrated(stream(store, 2)[-1]), 1)
        assert verify(store).is_clean
