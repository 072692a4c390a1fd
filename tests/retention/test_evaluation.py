"""What a policy makes of checkpoints: ages, numbers, precedence, and why something is kept. Without any store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from eventlog.holds.refusals import Wanted
from eventlog.holds.targets import HoldIndex, HoldTarget, Placed
from eventlog.ids import CheckpointId
from eventlog.retention.evaluation import Candidate, Item, Kept, Surroundings, evaluate
from eventlog.retention.policy import Policy

DAY = 86_400_000
NOW = 1000 * DAY
RUN = "00000000-0000-7000-8000-0000000000aa"


def candidate(name: str, *, days: float = 100, labels: dict[str, str] | None = None, **fields: Any) -> Candidate:
    """One that was written so many days ago."""
    values: dict[str, Any] = {
        "checkpoint_id": name,
        "partition": 0,
        "offset": 0,
        "recorded_at": int(NOW - days * DAY),
        "revision": 3,
        "run_id": f"run of {name}",
        "tenant": "default",
        "kind": "acme.order",
        "phase": "done",
        "labels": json.dumps(labels or {}),
        "revisions": 4,
        "stored_bytes": 100,
    }
    return Candidate(**{**values, **fields})


def rule(name: str = "r", **fields: Any) -> str:
    return "[[rule]]\n" + "\n".join(f"{key} = {toml(value)}" for key, value in {"name": name, **fields}.items()) + "\n"


def toml(value: Any) -> str:
    inline = isinstance(value, dict)
    return "{" + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + "}" if inline else json.dumps(value)


def judged(policy: str, candidates: Sequence[Candidate], **around: Any) -> dict[str, Item]:
    values: dict[str, Any] = {
        "holds_on": lambda _: (),
        "quarantined": frozenset(),
        "refused": {},
        "announced": lambda: frozenset(),
    }
    items = evaluate(Policy.parse(policy.encode()), candidates, now=NOW, around=Surroundings(**{**values, **around}))
    return {each.checkpoint_id: each for each in items}


def verdicts(found: dict[str, Item]) -> dict[str, str]:
    return {name: "goes" if each.kept is None else each.kept.value for name, each in found.items()}


def test_what_is_as_old_as_the_rule_says_goes_with_all_its_revisions() -> None:
    found = judged(rule(older_than="30d"), [candidate("old", days=30), candidate("young", days=29.999)])
    assert verdicts(found) == {"old": "goes"}
    old = found["old"]
    assert (old.revision, old.revisions, old.stored_bytes, old.rule, old.due_since) == (3, 4, 100, "r", NOW)


def test_the_newest_of_each_group_stay_and_the_others_are_due_since_they_were_overtaken() -> None:
    members = [candidate(f"{who}{days}", days=days, labels={"customer": who}) for who in "ab" for days in (1, 2, 3, 4)]
    found = judged(rule(keep_newest=2, group=["label.customer"]), members)
    assert verdicts(found) == {"a3": "goes", "a4": "goes", "b3": "goes", "b4": "goes"}
    assert (found["a3"].due_since, found["a4"].due_since) == (NOW - DAY, NOW - 2 * DAY)


def test_of_equal_age_the_log_says_which_is_newer() -> None:
    found = judged(rule(keep_newest=1), [candidate("first", offset=4), candidate("second", offset=5)])
    assert verdicts(found) == {"first": "goes"}


def test_with_an_age_and_a_number_both_must_say_so() -> None:
    members = [candidate(f"{days}", days=days) for days in (1, 20, 40)]
    found = judged(rule(keep_newest=1, older_than="30d"), members)
    assert (verdicts(found), found["40"].due_since) == ({"40": "goes"}, NOW - 10 * DAY)


def test_groups_are_by_tenant_and_kind_unless_said_otherwise() -> None:
    members = [candidate(f"{tenant} {kind}", tenant=tenant, kind=kind) for tenant in ("n", "s") for kind in ("a.b", "a.c")]
    assert judged(rule(keep_newest=1), members) == {}
    assert len(judged(rule(keep_newest=1, group=["tenant"]), members)) == 2
    assert len(judged(rule(keep_newest=1, group="phase"), members)) == 3


def test_the_first_rule_that_fits_decides_alone() -> None:
    policy = rule("keep longer", labels={"audit": "yes"}, older_than="365d") + rule("all", older_than="30d")
    found = judged(policy, [candidate("audited", labels={"audit": "yes"}), candidate("plain")])
    assert {name: each.rule for name, each in found.items()} == {"plain": "all"}


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"tenant": "default"}, True),
        ({"tenant": "other"}, False),
        ({"kind": "acme.order"}, True),
        ({"kind": "acme.*"}, True),
        ({"kind": "acme.order.*"}, False),
        ({"kind": "acme.orders"}, False),
        ({"phase": "done"}, True),
        ({"phase": ["ready", "done"]}, True),
        ({"phase": "ready"}, False),
        ({"labels": {"a": "1"}}, True),
        ({"labels": {"a": "1", "b": "2"}}, False),
        ({"labels": {"a": "2"}}, False),
    ],
    ids=str,
)
def test_a_rule_is_about_what_fits_all_that_it_names(fields: dict[str, Any], fits: bool) -> None:
    assert bool(judged(rule(older_than="1d", **fields), [candidate("it", labels={"a": "1"})])) is fits


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        ("eventlog.agent", "turn_in_flight"),
        ("eventlog.workflow", "step_in_flight"),
        ("eventlog.workflow", "parallel_in_flight"),
        ("eventlog.workflow", "race_in_flight"),
        ("eventlog.workflow", "waiting"),
        ("eventlog.effect", "started"),
    ],
)
def test_what_is_in_flight_never_goes_and_is_named(kind: str, phase: str) -> None:
    assert verdicts(judged(rule(older_than="1d"), [candidate("it", kind=kind, phase=phase)])) == {"it": "in flight"}
    assert verdicts(judged(rule(older_than="1d"), [candidate("it", kind=kind, phase="completed")])) == {"it": "goes"}


@pytest.mark.parametrize(
    ("run", "effect"),
    [
        ({"phase": "completed"}, "goes"),
        ({"phase": "waiting"}, "its run is kept"),
        ({"phase": "completed", "days": 1}, "its run is kept"),  # not due
        (None, "goes"),  # no run that is there
    ],
)
def test_effects_stay_as_long_as_their_run(run: dict[str, Any] | None, effect: str) -> None:
    done = candidate("effect", kind="eventlog.effect", phase="completed", run_id=RUN)
    there = [] if run is None else [candidate("run", kind="eventlog.workflow", run_id=RUN, **run)]
    assert verdicts(judged(rule(older_than="30d"), [done, *there]))["effect"] == effect


def test_an_effect_stays_that_another_run_in_flight_has_announced() -> None:
    done = candidate("effect", kind="eventlog.effect", phase="completed", run_id=RUN)
    assert verdicts(judged(rule(older_than="30d"), [done], announced=lambda: frozenset({"effect"}))) == {"effect": "its run is kept"}
    assert verdicts(judged(rule(older_than="30d"), [done], announced=lambda: None)) == {"effect": "its run is kept"}


def test_whatever_keeps_a_run_keeps_its_effects() -> None:
    run = candidate("run", kind="eventlog.agent", phase="completed", run_id=RUN)
    effect = candidate("effect", kind="eventlog.effect", phase="completed", run_id=RUN)
    holds = HoldIndex([Placed("h", HoldTarget.of_label("a", "1"))])
    assert len(holds) == 1
    found = judged(rule(older_than="30d"), [run, effect], holds_on=lambda each: ("h",) if each.checkpoint_id == "run" else ())
    assert verdicts(found) == {"run": "held", "effect": "its run is kept"}
    assert found["run"].holds == ("h",)


def test_what_runs_are_checked_against_is_nobodys_to_delete() -> None:
    assert judged(rule(older_than="1d"), [candidate("it", kind=kind) for kind in ("eventlog.effect_store", "eventlog.clock")]) == {}


def test_a_rule_about_more_leaves_what_has_a_floor() -> None:
    policy = '[floor]\n"acme.*" = "90d"\n"acme.order" = "183d"\n' + rule(older_than="30d")
    found = judged(policy, [candidate("order", days=182), candidate("bill", days=91, kind="acme.bill"), candidate("old", days=183)])
    assert verdicts(found) == {"order": "floor", "bill": "goes", "old": "goes"}
    overridden = judged(policy, [candidate("order", days=182), candidate("old", days=183)], floor_overridden=True)
    assert {name: (each.kept, each.below_floor) for name, each in overridden.items()} == {"order": (None, True), "old": (None, False)}


def test_the_reason_that_is_told_is_the_strongest() -> None:
    it = candidate("it", kind="eventlog.agent", phase="turn_in_flight")
    assert verdicts(judged(rule(older_than="1d"), [it], quarantined=frozenset({"it"}))) == {"it": "quarantined"}
    both = judged(rule(older_than="1d"), [it], quarantined=frozenset({"it"}), holds_on=lambda _: ("h",))
    assert verdicts(both) == {"it": "held"}


@pytest.mark.parametrize(
    ("refused", "kept"),
    [((3, Wanted.DELETE), None), ((2, Wanted.DELETE), Kept.MOVED_ON), ((3, Wanted.ERASE), Kept.TO_BE_ERASED)],
)
def test_a_refused_deletion_is_due_whatever_the_rules(refused: tuple[int, Wanted], kept: Kept | None) -> None:
    found = judged(rule(older_than="999d"), [candidate("it", days=1)], refused={"it": refused})
    assert [(each.rule, each.kept) for each in found.values()] == [("(refused before)", kept)]


def test_holds_are_found_by_every_way_in_at_once() -> None:
    first, second = str(CheckpointId.new()), str(CheckpointId.new())
    index = HoldIndex(
        [
            Placed("a", HoldTarget.of_checkpoint(first)),
            Placed("b", HoldTarget.of_run(RUN)),
            Placed("c", HoldTarget.of_tenant("north")),
            Placed("d", HoldTarget.of_label("case", "7")),
            Placed("e", HoldTarget.of_label("case", "7", tenant="south")),
            Placed("a", HoldTarget.of_checkpoint(first)),  # in another partition's register too
        ]
    )
    assert len(index) == 5
    assert index.on(checkpoint_id=first, run_id=RUN, tenant="north", labels=[("case", "7")]) == ("a", "b", "c", "d")
    assert index.on(checkpoint_id=second, run_id=second, tenant="south", labels=[("case", "7")]) == ("d", "e")
    assert index.on(checkpoint_id=second, run_id=second, tenant="east", labels=[("case", "8")]) == ()
