"""A hold and a deletion of one thing: whatever comes first in the log wins, and the other one is told. On Kafka, too, across partitions."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from eventlog import CheckpointId, CheckpointStore, HeldByLegalHold, Receipt
from eventlog.holds.deleting import Deletion
from eventlog.retention import Holds, HoldTarget, Placement
from tests.retention.samples import orders
from tests.store.samples import stream


@pytest.mark.parametrize("by", ["checkpoint", "label"])
def test_a_hold_placed_between_the_look_and_the_commit_refuses_the_deletion(
    store: CheckpointStore, opening: Callable[..., CheckpointStore], tenant: str, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    made = stream(store, 1, tenant=tenant, labels={"case": tenant})[0]
    target = HoldTarget.of_checkpoint(made.id) if by == "checkpoint" else HoldTarget.of_label("case", tenant)
    holds = Holds(opening())
    placed: list[Placement] = []
    append = store._deleter._append

    def held_first(proposals: Sequence[Any], timeout: float) -> Any:
        if not placed:
            placed.append(holds.place(target, reason="case 4711"))
        return append(proposals, timeout)

    monkeypatch.setattr(store._deleter, "_append", held_first)
    with pytest.raises(HeldByLegalHold) as caught:
        store.delete(made.id, 0)
    assert caught.value.holds == (placed[0].hold.id,)
    assert (placed[0].kept, placed[0].already_deleted) == (1, ())
    assert store.load(made.id) == made


def test_a_change_of_other_holds_meanwhile_refuses_nothing(store: CheckpointStore, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stream(store, 1, tenant=tenant)[0]
    append, left = store._deleter._append, [3]

    def others_first(proposals: Sequence[Any], timeout: float) -> Any:
        if left[0]:
            left[0] -= 1
            Holds(store).place(HoldTarget.of_tenant(f"{tenant}-other"), reason="case 4711")
        return append(proposals, timeout)

    monkeypatch.setattr(store._deleter, "_append", others_first)
    assert store.delete(made.id, 0).revision == 1
    assert left == [0]


def test_in_any_race_the_log_has_the_deletion_first_or_none(
    store: CheckpointStore, opening: Callable[..., CheckpointStore], tenant: str
) -> None:
    other = opening()
    for turn in range(6):
        name = f"{tenant}-{turn}"
        made = orders(store, 12, tenant=name)
        chance = random.Random(turn)
        outcomes: dict[str, Any] = {}
        ready = threading.Barrier(2)

        def delete(made: list[Any] = made, outcomes: dict[str, Any] = outcomes, ready: threading.Barrier = ready) -> None:
            ready.wait()
            for each in made:
                (outcomes[each.id],) = store._deleter.delete([Deletion(each.id, 0)], timeout=30)

        deleting = threading.Thread(target=delete)
        deleting.start()
        ready.wait()
        threading.Event().wait(chance.uniform(0, 0.01))
        placed = Holds(other).place(HoldTarget.of_tenant(name), reason="case 4711")
        deleting.join()
        for identity, outcome in outcomes.items():
            assert isinstance(outcome, Receipt | HeldByLegalHold), outcome
            if isinstance(outcome, Receipt):
                assert outcome.position.offsets[0] < entered_at(store, identity, placed.hold.id)
                assert CheckpointId(identity) in placed.already_deleted
            else:
                assert outcome.holds == (placed.hold.id,)
        assert placed.kept == sum(isinstance(each, HeldByLegalHold) for each in outcomes.values())


def entered_at(store: CheckpointStore, checkpoint_id: str, hold_id: str) -> tuple[int, int]:
    """Where the register of a checkpoint's partition first named a hold."""
    register = store._deleter.register.id_of(store.log.partition_of(checkpoint_id))
    for revision in store.history(register):
        if hold_id in [each["id"] for each in revision.checkpoint.payload["holds"]]:  # type: ignore[union-attr]
            return revision.position.offsets[0]  # type: ignore[union-attr]
    raise AssertionError("the hold was never entered")


def test_holds_that_are_placed_at_once_are_all_in_force(
    store: CheckpointStore, opening: Callable[..., CheckpointStore], tenant: str
) -> None:
    made = stream(store, 1, tenant=tenant)[0]
    stores, placed = (store, opening()), []

    def place(where: CheckpointStore) -> None:
        for _ in range(5):
            placed.append(Holds(where).place(HoldTarget.of_checkpoint(made.id), reason="case").hold.id)

    threads = [threading.Thread(target=place, args=(each,)) for each in (*stores, *stores)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with pytest.raises(HeldByLegalHold) as caught:
        store.delete(made.id, 0)
    assert caught.value.holds == tuple(sorted(placed))
    assert len(placed) == 20
