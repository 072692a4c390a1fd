"""The workflow's phases, pure: what may follow what, and what is refused by name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog import InvalidPayload, InvalidRequest, SchemaMismatch
from eventlog.recovery import (
    Announced,
    Branch,
    BranchCancelled,
    BranchState,
    Completed,
    EffectClass,
    NotOwner,
    Parallel,
    Race,
    RaceInFlight,
    Ready,
    StepInFlight,
    WaitForSignal,
    WaitForTimer,
    Waiting,
)
from eventlog.recovery.workflow_layout import layout_of
from eventlog.recovery.workflow_phases import Place
from eventlog.recovery.workflow_record import Owner, WorkflowIdentity, WorkflowRecord
from tests.core.json_values import JSON, TEXT
from tests.recovery.samples import as_checkpoint
from tests.recovery.schemas import conforms, validator

LAYOUT = layout_of(
    ["validate", Parallel("fanout", ["stock", "credit"]), Race("quote", ["a", "b", "c"]), WaitForSignal("ok"), WaitForTimer("cool"), "ship"]
)
EFFECT = Announced("charge_card", "order-7", EffectClass.IDEMPOTENT_WRITE, "0197a0b0-0000-8000-8000-000000000001")
VALIDATE, STOCK, CREDIT = Place("validate"), Place("fanout", "stock"), Place("fanout", "credit")
A, B, C = Place("quote", "a"), Place("quote", "b"), Place("quote", "c")
SHIP = Place("ship")

READY = WorkflowRecord.first(WorkflowIdentity("order", 2, LAYOUT), {"order": 7}).with_effects("a store")
IN_STEP = READY.begin(VALIDATE, 1, 5).announce(VALIDATE, EFFECT)
VALIDATED = IN_STEP.finish(VALIDATE, {"valid": True})
IN_PARALLEL = VALIDATED.begin(STOCK, 1, 5).announce(STOCK, EFFECT)
HALF = IN_PARALLEL.finish(STOCK, 3).begin(CREDIT, 1, 6)
JOINED = HALF.give_up(CREDIT, "declined").join("fanout")
RACING = JOINED.begin(A, 1, 5).begin(B, 1, 6)
WON = RACING.finish(B, 39)
QUOTED = WON.join("quote")
WAITING = QUOTED.claim(Owner("worker-1", 30_000)).wait("ok", None)
WOKEN = WAITING.wake("ok", {"by": "signal", "value": True, "signal_id": None})
TIMER = WOKEN.wait("cool", 99)
LAST = TIMER.wake("cool", {"by": "timer"}).claim(Owner("worker-2", 500))
COMPLETED = LAST.begin(SHIP, 1, 7).finish(SHIP, "gone").complete({"shipped": True})
ALL = {
    "ready": READY,
    "step": IN_STEP,
    "one done": VALIDATED,
    "parallel": IN_PARALLEL,
    "half": HALF,
    "joined": JOINED,
    "racing": RACING,
    "won": WON,
    "waiting": WAITING,
    "timer": TIMER,
    "owned": LAST,
    "completed": COMPLETED,
}


def test_a_step_is_in_flight_until_its_output_is_there() -> None:
    begun = READY.begin(VALIDATE, 1, 5)
    assert (begun.phase, begun.outputs) == (StepInFlight("validate", 1, 5), {})
    done = begun.finish(VALIDATE, {"valid": True})
    assert (done.phase, done.outputs) == (Ready(), {"validate": {"valid": True}})
    assert done.next == LAYOUT[1]


def test_a_repeated_step_or_branch_keeps_what_it_has_announced() -> None:
    assert IN_STEP.begin(VALIDATE, 2, 9).phase == StepInFlight("validate", 2, 9, (EFFECT,))
    again = IN_PARALLEL.begin(STOCK, 2, 9).branches("fanout")["stock"]
    assert (again.attempt, again.since_ms, again.effects) == (2, 9, (EFFECT,))


def test_an_effect_is_announced_once() -> None:
    assert IN_STEP.announce(VALIDATE, EFFECT) == IN_STEP
    assert IN_PARALLEL.announce(STOCK, EFFECT) == IN_PARALLEL


def test_branches_end_each_for_itself() -> None:
    assert IN_PARALLEL.branches("fanout")["credit"] == Branch()
    assert list(HALF.in_flight()) == [CREDIT]
    assert HALF.unjoined("fanout") == ["credit in flight"]
    assert JOINED.outputs["fanout"] == {"stock": {"state": "completed", "output": 3}, "credit": {"state": "failed", "message": "declined"}}
    cancelled = HALF.give_up(CREDIT, None).join("fanout")
    assert cancelled.outputs["fanout"]["credit"] == {"state": "cancelled"}


def test_the_first_of_a_race_wins_and_cancels_what_is_in_flight() -> None:
    assert isinstance(WON.phase, RaceInFlight)
    assert WON.phase.winner == "b"
    assert {name: each.state.value for name, each in WON.phase.branches.items()} == {"a": "cancelled", "b": "completed", "c": "not_begun"}
    assert (WON.in_flight(), WON.unjoined("quote")) == ({}, [])
    beaten: list[Callable[[], object]] = [
        lambda: WON.finish(A, 40),
        lambda: WON.announce(A, EFFECT),
        lambda: WON.give_up(A, None),
        lambda: WON.begin(C, 1, 9),
    ]
    for call in beaten:
        with pytest.raises(BranchCancelled, match="was beaten by b"):
            call()
    assert QUOTED.outputs["quote"] == {"a": {"state": "cancelled"}, "b": {"state": "completed", "output": 39}, "c": {"state": "not_begun"}}


def test_a_race_that_nobody_wins_ends_when_all_have() -> None:
    failed = RACING.give_up(A, "no").give_up(B, "no")
    assert failed.unjoined("quote") == ["c not begun"]
    assert failed.begin(C, 1, 9).give_up(C, "no").join("quote").next == LAYOUT[3]


def test_a_waiting_run_is_nobodys_and_is_woken_once() -> None:
    assert (WAITING.phase, WAITING.owner, WAITING.token) == (Waiting("ok"), None, 1)
    with pytest.raises(InvalidRequest):
        WOKEN.wake("ok", {"by": "timer"})
    with pytest.raises(InvalidRequest, match="until"):
        WOKEN.wait("cool", None)


def test_each_claim_has_a_token_of_its_own() -> None:
    first = READY.claim(Owner("worker-1", 30_000))
    second = first.claim(Owner("worker-2", 500))
    assert (first.token, second.token, second.release().token) == (1, 2, 2)
    second.check_owner("id", "worker-2", 2)
    second.release().check_owner("id", None, None)
    forged: list[tuple[str | None, int | None]] = [("worker-1", 1), ("worker-1", 2), ("worker-2", 1), ("worker-2", 3), (None, None)]
    for name, token in forged:
        with pytest.raises(NotOwner, match="worker-2's by claim 2") as refused:
            second.check_owner("id", name, token)
        assert (refused.value.given_owner, refused.value.given_token) == (name, token)


@pytest.mark.parametrize(
    ("record", "recorded", "now", "claimable"),
    [
        (READY, 0, 0, True),
        (READY.claim(Owner("w", 100)), 50, 149, False),
        (READY.claim(Owner("w", 100)), 50, 150, True),
        (IN_STEP.claim(Owner("w", 100)), 50, 150, True),
        (IN_STEP, 50, 10**9, False),  # somebody runs it without a claim
        (IN_STEP.claim(Owner("w", 100)).release(), 50, 10**9, False),  # left for a person
        (HALF.claim(Owner("w", 100)).release(), 50, 10**9, False),
        (WON.claim(Owner("w", 100)).release(), 50, 51, True),
        (WAITING, 50, 10**9, False),
        (TIMER, 50, 98, False),
        (TIMER, 50, 99, True),
        (TIMER.claim(Owner("w", 100)), 50, 149, False),
        (TIMER.claim(Owner("w", 100)), 50, 150, True),
        (COMPLETED, 0, 10**9, False),
    ],
)
def test_what_there_is_to_take(record: WorkflowRecord, recorded: int, now: int, claimable: bool) -> None:
    assert record.claimable(recorded, now) is claimable


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a step that is not next": (lambda: READY.begin(SHIP, 1, 1), "validate is next"),
    "a step that is done": (lambda: VALIDATED.begin(VALIDATE, 1, 1), "fanout is next"),
    "a step begun twice": (lambda: IN_STEP.begin(VALIDATE, 1, 1), "was begun 1 times"),
    "an attempt left out": (lambda: READY.begin(VALIDATE, 2, 1), "was begun 0 times"),
    "a branch as a step": (lambda: VALIDATED.begin(Place("fanout"), 1, 1), "is a parallel"),
    "a step as a branch": (lambda: READY.begin(Place("validate", "stock"), 1, 1), "is a step"),
    "an unknown branch": (lambda: VALIDATED.begin(Place("fanout", "pay"), 1, 1), "is not one of fanout's: stock, credit"),
    "a branch that is done": (lambda: HALF.begin(STOCK, 2, 1), "is not run again"),
    "a branch that has failed": (lambda: HALF.give_up(CREDIT, "no").begin(CREDIT, 2, 1), "is failed; it is not run again"),
    "a step that is not in flight": (lambda: READY.finish(VALIDATE, 1), "not in flight"),
    "a branch that is not in flight": (lambda: IN_PARALLEL.finish(CREDIT, 1), "not in flight"),
    "an effect of nothing": (lambda: READY.announce(VALIDATE, EFFECT), "not in flight"),
    "a join too early": (lambda: HALF.join("fanout"), "credit in flight"),
    "a join of what is not begun": (lambda: IN_PARALLEL.finish(STOCK, 1).join("fanout"), "credit not begun"),
    "a join of a step": (lambda: READY.join("validate"), "is a step"),
    "waiting for a step": (lambda: READY.wait("validate", None), "is a step"),
    "waiting twice": (lambda: WAITING.wait("ok", None), "is waiting, not ready"),
    "waking what does not wait": (lambda: QUOTED.wake("ok", {"by": "timer"}), "is ready, not waiting"),
    "the end too early": (lambda: VALIDATED.complete(1), "fanout was not done"),
    "the end in a step": (lambda: IN_STEP.complete(1), "is step_in_flight, not ready"),
    "the end with branches open": (lambda: HALF.complete(1), "is parallel_in_flight, not ready"),
    "going on after the end": (lambda: COMPLETED.begin(SHIP, 1, 1), "all steps are done"),
    "claiming what is over": (lambda: COMPLETED.claim(Owner("w", 1)), "nothing to claim"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_follow_is_refused(name: str) -> None:
    change, said = REFUSED[name]
    with pytest.raises(InvalidRequest, match=said):
        change()


@pytest.mark.parametrize("name", ALL)
def test_what_is_written_is_read_back_and_is_as_documented(name: str) -> None:
    payload = ALL[name].payload()
    conforms("eventlog.workflow.v1", payload)
    assert WorkflowRecord.of(as_workflow(payload)) == ALL[name]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(extra=st.dictionaries(TEXT.map("x-{}".format), JSON, max_size=3), record=st.sampled_from(list(ALL.values())))
def test_fields_that_this_version_does_not_know_survive(extra: dict[str, Any], record: WorkflowRecord) -> None:
    payload = {**record.payload(), **extra}
    payload["layout"] = [{**each, **extra} for each in payload["layout"]]
    payload["phase"] = {**payload["phase"], **extra}
    if payload["owner"] is not None:
        payload["owner"] = {**payload["owner"], **extra}
    if "branches" in payload["phase"]:
        payload["phase"]["branches"] = {name: {**each, **extra} for name, each in payload["phase"]["branches"].items()}
    conforms("eventlog.workflow.v1", payload)
    read = WorkflowRecord.of(as_workflow(copy.deepcopy(payload)))
    assert read.payload() == payload
    assert read.identity == record.identity


def test_unknown_fields_survive_a_whole_run() -> None:
    read = WorkflowRecord.of(as_workflow({**READY.payload(), "trace": {"id": 7}}))
    assert read.begin(VALIDATE, 1, 1).finish(VALIDATE, 1).claim(Owner("w", 1)).payload()["trace"] == {"id": 7}


def as_workflow(payload: Any, **fields: Any) -> Any:
    return as_checkpoint(payload, **{"kind": "eventlog.workflow", **fields})


def phase(record: WorkflowRecord, **changes: Any) -> dict[str, Any]:
    return {**record.payload(), "phase": {**record.payload()["phase"], **changes}}


def branch(record: WorkflowRecord, name: str, **changes: Any) -> dict[str, Any]:
    found = record.payload()["phase"]["branches"]
    return phase(record, branches={**found, name: {**found.get(name, {}), **changes}})


def outputs(record: WorkflowRecord, **changes: Any) -> dict[str, Any]:
    return {**record.payload(), "outputs": {**record.payload()["outputs"], **changes}}


def without(payload: dict[str, Any], name: str) -> dict[str, Any]:
    return {field: value for field, value in payload.items() if field != name}


WON_TWICE = {"state": "completed", "output": 1}
UNFIT: dict[str, tuple[Any, str]] = {
    "no object": (["x"], "$"),
    "workflow missing": (without(READY.payload(), "workflow"), "$.workflow"),
    "version 0": ({**READY.payload(), "version": 0}, "$.version"),
    "no layout": ({**READY.payload(), "layout": []}, "$.layout"),
    "layout no list": ({**READY.payload(), "layout": "validate"}, "$.layout"),
    "step without a type": ({**READY.payload(), "layout": [{"name": "validate"}]}, "$.layout[0].type"),
    "parallel without branches": ({**READY.payload(), "layout": [{"name": "x", "type": "parallel"}]}, "$.layout[0].branches"),
    "parallel of nothing": ({**READY.payload(), "layout": [{"name": "x", "type": "parallel", "branches": []}]}, "$.layout[0].branches"),
    "a branch that is no text": ({**READY.payload(), "layout": [{"name": "x", "type": "race", "branches": [7]}]}, "$.layout[0].branches"),
    "value missing": (without(READY.payload(), "value"), "$.value"),
    "effect store no text": ({**READY.payload(), "effect_store": 7}, "$.effect_store"),
    "outputs no object": ({**READY.payload(), "outputs": []}, "$.outputs"),
    "token negative": ({**READY.payload(), "fencing_token": -1}, "$.fencing_token"),
    "owner without a token": ({**READY.payload(), "owner": {"name": "w", "lease_ms": 5}}, "$.fencing_token"),
    "owner without a name": ({**LAST.payload(), "owner": {"lease_ms": 5}}, "$.owner.name"),
    "owner without a lease": ({**LAST.payload(), "owner": {"name": "w"}}, "$.owner.lease_ms"),
    "lease of 0": ({**LAST.payload(), "owner": {"name": "w", "lease_ms": 0}}, "$.owner.lease_ms"),
    "phase no object": ({**READY.payload(), "phase": "ready"}, "$.phase"),
    "phase without a state": ({**READY.payload(), "phase": {}}, "$.phase.state"),
    "step without an attempt": ({**READY.payload(), "phase": {"state": "step_in_flight", "step": "validate"}}, "$.phase.effects"),
    "attempt 0": (phase(IN_STEP, attempt=0), "$.phase.attempt"),
    "branches missing": ({**HALF.payload(), "phase": without(HALF.payload()["phase"], "branches")}, "$.phase.branches"),
    "a completed branch without an output": (branch(HALF, "credit", state="completed"), "$.phase.branches.credit.output"),
    "a failed branch without a message": (branch(HALF, "credit", state="failed"), "$.phase.branches.credit.message"),
    "a branch without a state": (branch(HALF, "credit", state=None), "$.phase.branches.credit.state"),
    "waiting without an end": ({**WAITING.payload(), "phase": {"state": "waiting", "step": "ok"}}, "$.phase.until_ms"),
    "completed without a response": ({**COMPLETED.payload(), "phase": {"state": "completed"}}, "$.phase.response"),
}
# Where one part of the payload contradicts another, which a JSON Schema cannot say.
CONTRADICTING: dict[str, tuple[Any, str]] = {
    "a step twice": ({**READY.payload(), "layout": [{"name": "x", "type": "step"}] * 2}, "$.layout"),
    "a step that is not next": (phase(IN_STEP, step="ship"), "$.phase.step"),
    "a parallel step where a step is": ({**READY.payload(), "phase": {**HALF.payload()["phase"], "step": "validate"}}, "$.phase.state"),
    "a race where a parallel step is": (phase(HALF, state="race_in_flight"), "$.phase.state"),
    "waiting where a step is": ({**READY.payload(), "phase": {"state": "waiting", "step": "validate", "until_ms": None}}, "$.phase.state"),
    "a timer without an end": (phase(TIMER, until_ms=None), "$.phase.until_ms"),
    "a branch too many": (branch(HALF, "pay", state="not_begun"), "$.phase.branches"),
    "a branch too few": (phase(HALF, branches={"stock": HALF.payload()["phase"]["branches"]["stock"]}), "$.phase.branches"),
    "two winners": (branch(WON, "a", **WON_TWICE), "$.phase.branches"),
    "a winner and a branch in flight": (branch(WON, "a", state="in_flight"), "$.phase.branches"),
    "completed with steps left": ({**READY.payload(), "phase": {"state": "completed", "response": 1}}, "$.phase.state"),
    "completed with branches open": ({**HALF.payload(), "phase": {"state": "completed", "response": 1}}, "$.phase.state"),
    "completed and owned": ({**COMPLETED.payload(), "owner": LAST.payload()["owner"]}, "$.owner"),
    "an output of no step": (outputs(READY, pay=1), "$.outputs"),
    "an output before its time": (outputs(VALIDATED, ship=1), "$.outputs"),
    "an output missing": ({**JOINED.payload(), "outputs": without(JOINED.payload()["outputs"], "validate")}, "$.outputs"),
    "an output of other branches": (outputs(JOINED, fanout={"stock": WON_TWICE}), "$.outputs.fanout"),
    "an output of an open branch": (outputs(JOINED, fanout={"stock": WON_TWICE, "credit": {"state": "in_flight"}}), "$.outputs.fanout"),
    "an output of a branch not begun": (outputs(JOINED, fanout={"stock": WON_TWICE, "credit": {"state": "not_begun"}}), "$.outputs.fanout"),
    "an output of two winners": (outputs(QUOTED, quote={"a": WON_TWICE, "b": WON_TWICE, "c": {"state": "cancelled"}}), "$.outputs.quote"),
    "an output of a race not run": (outputs(QUOTED, quote={name: {"state": "not_begun"} for name in "abc"}), "$.outputs.quote"),
    "woken by nothing": (outputs(WOKEN, ok={"by": "luck"}), "$.outputs.ok.by"),
    "a timer woken by a signal": (outputs(LAST, cool={"by": "signal"}), "$.outputs.cool.by"),
}


@pytest.mark.parametrize("name", [*UNFIT, *CONTRADICTING])
def test_a_payload_that_does_not_fit_is_refused_with_its_path(name: str) -> None:
    payload, path = {**UNFIT, **CONTRADICTING}[name]
    with pytest.raises(InvalidPayload) as refused:
        WorkflowRecord.of(as_workflow(payload))
    assert refused.value.path.startswith(path)
    if name in UNFIT:
        assert not validator("eventlog.workflow.v1").is_valid(payload)


@pytest.mark.parametrize(
    ("payload", "kind", "version", "named"),
    [
        ({**READY.payload(), "phase": {"state": "paused"}}, "eventlog.workflow", 1, "paused"),
        ({**READY.payload(), "layout": [{"name": "x", "type": "loop"}]}, "eventlog.workflow", 1, "loop"),
        (branch(HALF, "credit", state="skipped"), "eventlog.workflow", 1, "skipped"),
        (READY.payload(), "eventlog.workflow", 2, "eventlog.workflow 2"),
        (READY.payload(), "runifold.workflow", 1, "runifold.workflow 1"),
    ],
)
def test_an_unknown_phase_type_kind_or_version_is_refused_by_name(payload: Any, kind: str, version: int, named: str) -> None:
    with pytest.raises(SchemaMismatch, match=named):
        WorkflowRecord.of(as_workflow(payload, kind=kind, schema_version=version))


@pytest.mark.parametrize(
    ("layout", "field"),
    [
        ([], "layout"),
        ("validate", "layout"),
        (7, "layout"),
        (["a", "a"], "layout"),
        (["a", 7], "layout[1]"),
        ([""], "layout[0]"),
        ([Parallel("p", [])], "layout[0].branches"),
        ([Parallel("p", "ab")], "layout[0].branches"),
        ([Race("p", ["a", "a"])], "layout[0].branches"),
        ([Race("p", ["a\n"])], "layout[0].branches"),
    ],
)
def test_a_malformed_layout_is_refused(layout: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        layout_of(layout)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: WorkflowIdentity("", 1, LAYOUT), "workflow"),
        (lambda: WorkflowIdentity("x", 0, LAYOUT), "version"),
        (lambda: WorkflowIdentity("x", cast(Any, True), LAYOUT), "version"),
        (lambda: Owner("", 1), "owner"),
        (lambda: Owner("w", 0), "lease"),
        (lambda: Owner("w", 24 * 3600 * 1000 + 1), "lease"),
    ],
)
def test_a_malformed_identity_or_owner_is_refused(made: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        made()
    assert refused.value.field == field


def test_a_completed_run_holds_its_response_and_every_output() -> None:
    assert COMPLETED.phase == Completed({"shipped": True})
    assert list(COMPLETED.outputs) == [node.name for node in LAYOUT]
    assert COMPLETED.outputs["quote"]["c"]["state"] == BranchState.NOT_BEGUN
