"""A migration that is killed at any of its commits and started again has migrated each checkpoint once, and a live writer lost nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointId, CheckpointStore, EventType
from eventlog.recovery import Migrations, Selection, run_migration, undo_migration
from tests.recovery.migration_kill_table import CHECKPOINTS, kills
from tests.recovery.migration_samples import orders
from tests.recovery.victims import Job, Victims, victims
from tests.store.other_process import finish, start
from tests.store.samples import chain_is_intact, initial, revisions
from tests.waiting import eventually

pytestmark = pytest.mark.long_on_kafka


@pytest.fixture(scope="module")
def killer() -> Iterator[Victims]:
    with victims() as made:
        yield made


def three_orders(store: CheckpointStore, tenant: str) -> list[Checkpoint]:
    made = [initial({"price": price}, tenant=tenant, usage={"tokens": price}) for price in range(CHECKPOINTS)]
    for each in made:
        store.compare_and_swap(each, None)
    return made


@pytest.mark.parametrize("mode", ["migrate", "undo"])
def test_killed_before_or_after_any_commit_and_started_again_each_is_migrated_once(
    store: CheckpointStore, second_address: str, killer: Victims, tmp_path: Path, mode: str
) -> None:
    for kill in kills(mode):
        tenant = f"t{CheckpointId.new()}"
        made, selection = three_orders(store, tenant), Selection(tenant=tenant)
        if mode == "undo":
            run_migration(store, orders(), selection)
        killer.kill(Job(second_address, tenant, "", str(tmp_path / "outside"), kill, mode))
        when, _, number = kill.split()
        by_the_victim = int(number) - (when == "before")
        report = (run_migration if mode == "migrate" else undo_migration)(store, orders(), selection)
        assert (report.moves.total(), report.refused, kill) == (CHECKPOINTS - by_the_victim, [], kill)
        expected = ["REVISION", "MIGRATED"] + ["MIGRATED"] * (mode == "undo")
        for each in made:
            history = revisions(store, each.id)
            assert [one.type.value for one in history] == expected
            assert chain_is_intact(history)
            last = history[-1].checkpoint
            assert last.usage == each.usage
            assert last.payload == (each.payload if mode == "undo" else {"cents": each.payload["price"] * 100, "currency": "EUR"})
        again = (run_migration if mode == "migrate" else undo_migration)(store, orders(), selection)
        assert again.moves.total() == 0


def test_a_live_writer_in_another_process_loses_nothing(store: CheckpointStore, second_address: str) -> None:
    written = [initial({"by": "nobody"}) for _ in range(2)]
    for each in written:
        store.compare_and_swap(each, None)
    there_and_back = Migrations().register(
        from_=("acme.order", 1), to=("acme.order", 2), up=lambda payload: payload, down=lambda payload: payload
    )
    wanted = 40
    hot = written[0].id
    writer = start(second_address, race=(hot, wanted, 10**6))
    eventually(lambda: store.load(hot).revision > 0)
    selection = Selection(ids=[each.id for each in written])
    moves: Counter[str] = Counter()
    conflicts = 0
    while True:
        done = writer.poll() is not None
        for migrate in (run_migration, undo_migration):
            report = migrate(store, there_and_back, selection)
            assert {each.why.value for each in report.refused} <= {"busy"}
            moves[migrate.__name__] += report.moves.total()
            conflicts += report.conflicts
        if done:
            break
    answers = finish(writer)
    history = revisions(store, hot)
    assert chain_is_intact(history)
    committed = [each.checkpoint.event_id for each in history if each.type is EventType.REVISION][1:]
    assert committed == [answer[1].event_id for answer in answers if answer[0] == "won"]
    assert len(committed) == wanted
    assert not {answer[1] for answer in answers if answer[0] == "lost"} & {each.checkpoint.event_id for each in history}
    migrated = [each for each in history if each.type is EventType.MIGRATED]
    other = [each for each in revisions(store, written[1].id) if each.type is EventType.MIGRATED]
    assert len(migrated) + len(other) == moves.total()
    assert len(migrated) >= 2
    assert [each.checkpoint.schema_version for each in migrated] == [2, 1] * (len(migrated) // 2) + [2] * (len(migrated) % 2)
    assert history[-1].checkpoint.payload == {"by": "another"}
