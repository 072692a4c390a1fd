"""A store limited to a tenant: ids of others do not exist, with the very words of an absent one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointError, CheckpointId, CheckpointStore, InvalidRequest, NotFound, Position, open_store
from tests.store.conftest import Opened, Shared, shared_with_state
from tests.store.samples import described, initial, nothing_written, numbered, stream


@pytest.fixture
def north(kind: str, shared: Shared, opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> CheckpointStore:
    """`store` once more, limited to a tenant; opened once a run, for opening takes seconds on Kafka."""
    name = f"{kind} north"
    if name not in opened:
        address = shared_with_state(shared.address, tmp_path_factory.mktemp("north") / "state")
        opened[name] = Shared(address, open_store(address, tenant="north"))
    return opened[name].store


def refusal(call: Callable[[], object], checkpoint_id: str) -> list[Any]:
    """Everything that can be seen of an error, with the id blotted out."""
    with pytest.raises(CheckpointError) as caught:
        call()
    return [repr(each).replace(checkpoint_id, "ID") for each in described(caught.value)]


CALLS: dict[str, Callable[[CheckpointStore, Checkpoint], object]] = {
    "load": lambda store, known: store.load(known.id),
    "load revision": lambda store, known: store.load(known.id, revision=1),
    "load unknown revision": lambda store, known: store.load(known.id, revision=77),
    "load at": lambda store, known: store.load(known.id, at=Position()),
    "load at the end": lambda store, known: store.load(known.id, at=store.position()),
    "load at least": lambda store, known: store.load(known.id, at_least=Position()),
    "load_revision": lambda store, known: store.load_revision(known.id),
    "history": lambda store, known: list(store.history(known.id)),
    "compare_and_swap": lambda store, known: store.compare_and_swap(numbered(known, 2), 1),
    "compare_and_swap a wrong one": lambda store, known: store.compare_and_swap(numbered(known, 9), 8),
    "compare_and_swap the same event": lambda store, known: store.compare_and_swap(known, 0),
    "delete": lambda store, known: store.delete(known.id, 1),
    "delete a wrong one": lambda store, known: store.delete(known.id, 7),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("deleted", [False, True], ids=["living", "deleted"])
def test_another_tenants_id_is_as_absent(store: CheckpointStore, north: CheckpointStore, call: str, deleted: bool) -> None:
    theirs = stream(store, 2, tenant="south")[-1]
    if deleted:
        store.delete(theirs.id, 1)
    absent = numbered(initial(tenant="north"), 1)
    disguised = theirs.model_copy(update={"tenant": "north"})
    with nothing_written(store):
        refused = refusal(lambda: CALLS[call](north, disguised), theirs.id)
        assert refused == refusal(lambda: CALLS[call](north, absent), absent.id)
    assert repr(NotFound) == refused[0]


def test_another_tenants_event_is_not_resolved(store: CheckpointStore, north: CheckpointStore) -> None:
    theirs = stream(store, 2, tenant="south")
    for each in theirs:
        assert north.resolve(each.event_id) is None
        assert north.resolve(each) is None
        assert store.resolve(each) is not None


def test_an_imported_id_of_another_tenant_is_not_revealed_by_resolve(store: CheckpointStore, north: CheckpointStore) -> None:
    # Once: OutcomeUnknown, where an absent id gives None
    theirs = numbered(initial(tenant="south"), 5)
    store.import_revision(theirs)
    assert north.resolve(numbered(theirs, 2)) is None


def test_another_tenants_id_cannot_be_taken(store: CheckpointStore, north: CheckpointStore) -> None:
    theirs = stream(store, 1, tenant="south")[0]
    mine = initial(tenant="north").model_copy(update={"id": CheckpointId(theirs.id)})
    with nothing_written(store), pytest.raises(NotFound):
        north.compare_and_swap(mine, None)


def test_a_revision_of_another_tenant_is_refused(store: CheckpointStore, north: CheckpointStore) -> None:
    with nothing_written(store), pytest.raises(InvalidRequest, match="tenant"):
        north.compare_and_swap(initial(tenant="south"), None)


def test_one_sees_ones_own(store: CheckpointStore, north: CheckpointStore) -> None:
    before = store.position()
    theirs = stream(store, 2, tenant="south")
    mine = initial(tenant="north")
    receipt = north.compare_and_swap(mine, None)
    assert north.load(mine.id) == mine
    assert north.resolve(mine.event_id) == receipt
    assert [each.checkpoint for each in north.subscribe(before, idle_timeout=0)] == [mine]
    assert {each.checkpoint.id for each in store.subscribe(before, idle_timeout=0)} == {theirs[0].id, mine.id}


def test_lists_hold_ones_own_alone(store: CheckpointStore, north: CheckpointStore) -> None:
    kind = f"tenants.k{CheckpointId.new()}"
    mine = stream(store, 1, tenant="north", kind=kind)[0]
    theirs = stream(store, 1, tenant="south", kind=kind)[0]
    assert [each.id for each in north.list(kind=kind).items] == [mine.id]
    assert north.list(kind=kind, tenant="south").items == ()
    assert {each.id for each in store.list(kind=kind).items} == {mine.id, theirs.id}
    assert [each.id for each in store.list(kind=kind, tenant="south").items] == [theirs.id]


@pytest.mark.parametrize("wrong", ["", "a b", "x" * 101, "ä", "a..b", "a\n", 5])
def test_a_malformed_tenant_is_refused(address: str, wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match="tenant"):
        open_store(address, tenant=wrong)
