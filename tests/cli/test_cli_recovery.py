"""`eventlog recovery`: what is in flight, what is on record of it, and a decision, as a person types it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, open_store
from eventlog.recovery import Claims, EffectClass, WaitForTimer
from tests.cli.command_line import Result, inside, new_store
from tests.recovery import order_runs
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import Outside, begun
from tests.store.samples import initial, nothing_written

DUE = datetime(2031, 1, 31, 8, tzinfo=UTC)


class Desk:
    """A store with a run left in each kind of phase, and the command line."""

    def __init__(self, address: Path, store: CheckpointStore, outside: Outside) -> None:
        self.address = address
        self.store = store
        begun(store).complete("done")
        store.compare_and_swap(initial({"phase": "turn_in_flight"}), None)  # is no run
        self.turn = LeftRun(store, outside, "turn", how=EffectClass.NON_IDEMPOTENT_WRITE, answered=False)
        self.race = LeftRun(store, outside, "race")
        Claims(store, owner="worker-1").claim(self.race.id)
        waiting = order_runs.begun(store, WaitForTimer("cool_off"))
        waiting.wait_for_timer("cool_off", until=DUE)
        self.timer = waiting.checkpoint_id

    def __call__(self, *arguments: str, **options: Any) -> Result:
        return inside("recovery", *arguments, "--store", self.address, **options)

    def json(self, *arguments: str) -> Any:
        return self(*arguments, "--format", "json").json()


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    address = new_store(tmp_path)
    with open_store(address, actor="tester") as store:
        yield Desk(address, store, Outside(tmp_path / "outside"))


def test_the_list_has_what_is_in_flight_or_waits_and_nothing_else_oldest_first(desk: Desk) -> None:
    listed = desk.json("list")
    assert [each["id"] for each in listed] == [desk.turn.id, desk.race.id, desk.timer]
    assert [each["what"] for each in listed] == ["turn 1", "branch post of quote", "waiting for cool_off"]
    assert [each["owner"] for each in listed] == [None, "worker-1", None]
    assert [each["wakes_at"] for each in listed] == [None, None, "2031-01-31T08:00:00.000Z"]
    assert listed[1]["lease_ends"] > listed[1]["recorded_at"] >= listed[1]["since"]
    begun_at = [desk.store.load_revision(each["id"], revision=1).recorded_at for each in listed]
    assert [datetime.fromisoformat(each["since"]) for each in listed] == begun_at
    assert [each["id"] for each in desk.json("list", "--kind", "eventlog.workflow")] == [desk.race.id, desk.timer]
    assert desk.json("list", "--older-than", "1h") == []
    assert desk.json("list", "--older-than", DUE.isoformat()) == listed
    assert desk.json("list", "--tenant", "north") == []
    short = desk("list", "--limit", "1")
    assert short.out.splitlines()[1].startswith(desk.turn.id)
    assert "raise --limit" in short.err
    assert desk("list", "--format", "csv").out.splitlines()[0].startswith("id,kind,tenant,phase,what,since")
    assert desk("list", "--kind", "eventlog.clock").err == "no runs are in flight\n"


def test_a_run_that_cannot_be_read_hides_no_other(desk: Desk) -> None:
    last = desk.store.load(desk.turn.id)
    desk.store.compare_and_swap(last.next({**last.payload, "turns": 9}), last.revision)
    listed = desk.json("list")
    assert [each["id"] for each in listed] == [desk.turn.id, desk.race.id, desk.timer]
    assert "$.phase.turn" in listed[0]["problem"]
    assert "$.phase.turn" in desk("list").out


def test_what_is_shown_is_on_record(desk: Desk) -> None:
    shown = desk.json("show", desk.turn.id)
    stored = desk.store.load_revision(desk.turn.id)
    assert (shown["revision"], shown["phase"], shown["what"]) == (stored.checkpoint.revision, "turn_in_flight", "turn 1")
    assert shown["usage"] == stored.checkpoint.usage
    assert datetime.fromisoformat(shown["since"]) == desk.store.load_revision(desk.turn.id, revision=1).recorded_at
    stable = desk.store.load_revision(desk.turn.id, revision=0)
    assert (shown["last_stable"]["revision"], shown["last_stable"]["position"]) == (0, str(stable.position))
    (effect,) = shown["effects"]
    history = list(desk.store.history(effect["checkpoint_id"]))
    assert [each["phase"] for each in effect["history"]] == ["prepared", "started"]
    assert [datetime.fromisoformat(each["recorded_at"]) for each in effect["history"]] == [each.recorded_at for each in history]  # type: ignore[union-attr]
    assert (effect["capability"], effect["idempotency_key"], effect["state"]) == ("charge", desk.turn.key, "started")
    assert effect["effect_class"] == "non_idempotent_write"
    assert shown["policies"]["Reject"] == "refuses: AmbiguousResume about turn 1"
    assert desk.turn.key in shown["policies"]["RetryInFlight"]
    assert shown["decisions"]["retry"].startswith("refused: ")
    text = desk("show", desk.race.id).out
    for part in ("worker-1", "branch post of quote", "replayed from its record", "roll-back", "revision 4 is revision 0 once more"):
        assert part in text, part
    assert "repeats branch post of quote; without worker-1's claim it refuses: NotOwner" in text
    assert "gives the stored response" not in text
    waiting = desk.json("show", desk.timer)
    assert (waiting["wakes_at"], waiting["last_stable"]["revision"]) == ("2031-01-31T08:00:00.000Z", 1)
    assert waiting["policies"]["Reject"] == "goes on: the run is waiting for cool_off"


def test_a_person_settles_decides_and_is_on_record(desk: Desk) -> None:
    ann = ("--actor", "ann", "--reason", "seen on the statement")
    with nothing_written(desk.store):
        refused = desk("resolve", desk.turn.id, "--decision", "retry", *ann)
    assert refused.code == 4
    assert "eventlog recovery settle" in refused.err
    (effect,) = desk.json("show", desk.turn.id)["effects"]
    settled = desk.json("settle", effect["checkpoint_id"], "--outcome", "completed", "--output", '{"charged": 7}', *ann)
    assert (settled["state"], settled["idempotency_key"]) == ("completed", desk.turn.key)
    made = desk.json("resolve", desk.turn.id, "--decision", "retry", *ann)
    assert (made["decision"], made["phase"]) == ("retry", "turn_in_flight")
    last = inside("log", desk.turn.id, "--store", desk.address, "--format", "json").json()[-1]
    assert (last["actor"], last["revision"]) == ("ann", made["revision"])
    assert last["decision"] == {
        "choice": "retry",
        "actor": "ann",
        "reason": "seen on the statement",
        "revision": made["revision"] - 1,
        "what": "turn 1",
    }
    assert "retry by ann: seen on the statement" in inside("log", desk.turn.id, "--store", desk.address).out
    assert "decision" not in inside("log", desk.timer, "--store", desk.address).out
    assert "retry by ann" in desk("list").out
    desk.turn.work(desk.turn.resume())
    assert desk.turn.calls()["charge"] == 2  # once in each of the two runs


def test_roll_back_and_mark_failed_are_typed_as_they_are_named(desk: Desk) -> None:
    ann = ("--actor", "ann", "--reason", "not wanted")
    revision = str(desk.store.load(desk.race.id).revision)
    assert desk.json("resolve", desk.race.id, "--decision", "roll-back", "--expected", revision, *ann)["phase"] == "ready"
    assert desk("resolve", desk.race.id, "--decision", "mark-failed", "--expected", revision, *ann).code == 4
    assert desk.json("resolve", desk.timer, "--decision", "mark-failed", *ann)["phase"] == "failed"
    assert [each["id"] for each in desk.json("list")] == [desk.turn.id]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--decision", "retry", "--reason", "x"), 6),  # whoever decides says who that is
        (("--decision", "retry", "--actor", "ann", "--reason", " "), 6),
        (("--decision", "retry", "--actor", "ann"), 2),
        (("--decision", "undo", "--actor", "ann", "--reason", "x"), 2),
        (("--actor", "ann", "--reason", "x"), 2),
    ],
)
def test_a_decision_is_somebodys_and_has_a_reason(desk: Desk, arguments: tuple[str, ...], code: int) -> None:
    with nothing_written(desk.store):
        assert desk("resolve", desk.race.id, *arguments).code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("--outcome", "completed"),
        ("--outcome", "failed"),
        ("--outcome", "not-executed", "--output", "1"),
        ("--outcome", "completed", "--output", "1", "--message", "x"),
    ],
)
def test_a_settlement_says_what_its_outcome_needs(desk: Desk, arguments: tuple[str, ...]) -> None:
    (effect,) = desk.json("show", desk.turn.id)["effects"]
    with nothing_written(desk.store):
        assert desk("settle", effect["checkpoint_id"], *arguments, "--actor", "ann", "--reason", "x").code == 6
    failed = desk.json("settle", effect["checkpoint_id"], "--outcome", "failed", "--message", "no", "--actor", "ann", "--reason", "x")
    assert failed["state"] == "failed"
    with nothing_written(desk.store):
        again = desk("settle", effect["checkpoint_id"], "--outcome", "not-executed", "--actor", "ann", "--reason", "x")
        assert again.code == 6
        assert desk("settle", desk.turn.id, "--outcome", "not-executed", "--actor", "ann", "--reason", "x").code == 8
