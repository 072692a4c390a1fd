"""The phases of a workflow's run, as they are written and read. Pure: no I/O, no clock. What may follow what: `workflow_record.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from eventlog.errors import InvalidPayload, SchemaMismatch
from eventlog.recovery.agent_phases import Completed, Failed
from eventlog.recovery.decisions import Decided, Decision, read_decision
from eventlog.recovery.decisions import written as written_decision
from eventlog.recovery.effect_phases import Announced, read_announced
from eventlog.recovery.fields import a_count, a_text, an_object, anything, others
from eventlog.recovery.workflow_layout import Node, Parallel, Race, Step, WaitForSignal, WaitForTimer


class Place(NamedTuple):
    """Where something is done: a step, or a branch of one."""

    step: str
    branch: str | None = None

    def __str__(self) -> str:
        return f"step {self.step}" if self.branch is None else f"branch {self.branch} of {self.step}"


class BranchState(StrEnum):
    """How far a branch has come."""

    NOT_BEGUN = "not_begun"  # for certain nothing of it was done
    IN_FLIGHT = "in_flight"
    COMPLETED = "completed"
    FAILED = "failed"  # its body said so
    CANCELLED = "cancelled"  # its body said so, or another branch of the race has won


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch. `attempt`, `since_ms`, `effects` and `decision` as in `StepInFlight`."""

    state: BranchState = BranchState.NOT_BEGUN
    attempt: int = 0
    since_ms: int = 0
    effects: tuple[Announced, ...] = ()
    output: Any = None
    message: str | None = None
    decision: Decided | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)

    def result(self) -> dict[str, Any]:
        """What is kept of it once all have ended."""
        kept: dict[str, Any] = {"state": self.state.value}
        if self.state is BranchState.COMPLETED:
            kept["output"] = self.output
        if self.state is BranchState.FAILED:
            kept["message"] = self.message
        return kept


@dataclass(frozen=True, slots=True)
class Ready:
    """Stable: everything that was done is in the outputs. `decision`: that it was rolled back to here."""

    name: ClassVar[str] = "ready"
    decision: Decided | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepInFlight:
    """Something may have been called outside since the last output was written.

    `attempt` says how often this step was begun, `since_ms` when this attempt was (its process's clock), and `effects` which effects it
    and the attempts before it have announced. `decision`: that it may be repeated, once.
    """

    name: ClassVar[str] = "step_in_flight"
    step: str
    attempt: int
    since_ms: int
    effects: tuple[Announced, ...] = ()
    decision: Decided | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParallelInFlight:
    """At least one branch was begun, and they have not been joined."""

    name: ClassVar[str] = "parallel_in_flight"
    step: str
    branches: Mapping[str, Branch]
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RaceInFlight:
    """The same, of which one branch at most is completed: the winner."""

    name: ClassVar[str] = "race_in_flight"
    step: str
    branches: Mapping[str, Branch]
    rest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def winner(self) -> str | None:
        """The branch that has won."""
        return next((name for name, each in self.branches.items() if each.state is BranchState.COMPLETED), None)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing is done, and nobody owns the run, until a signal comes or the log's clock has reached `until_ms`."""

    name: ClassVar[str] = "waiting"
    step: str
    until_ms: int | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


WorkflowPhase = Ready | StepInFlight | ParallelInFlight | RaceInFlight | Waiting | Completed | Failed
KNOWN: tuple[type[WorkflowPhase], ...] = (Ready, StepInFlight, ParallelInFlight, RaceInFlight, Waiting, Completed, Failed)


# -- written ----------------------------------------------------------------------------------------------------------


def written(phase: WorkflowPhase) -> dict[str, Any]:
    """As it stands in the payload: docs/payloads.md, `eventlog.workflow`."""
    if isinstance(phase, Failed):
        return phase.written()
    fields: dict[str, Any] = {**phase.rest, "state": phase.name}
    if isinstance(phase, Ready):
        fields |= written_decision(phase.decision)
    elif isinstance(phase, StepInFlight):
        fields |= {"step": phase.step, **_attempt(phase)}
    elif isinstance(phase, ParallelInFlight | RaceInFlight):
        fields |= {"step": phase.step, "branches": {name: _branch(each) for name, each in phase.branches.items()}}
    elif isinstance(phase, Waiting):
        fields |= {"step": phase.step, "until_ms": phase.until_ms}
    elif isinstance(phase, Completed):
        fields |= {"response": phase.response}
    return fields


def _attempt(at: StepInFlight | Branch) -> dict[str, Any]:
    return {
        "attempt": at.attempt,
        "since_ms": at.since_ms,
        "effects": [each.entry() for each in at.effects],
        **written_decision(at.decision),
    }


def _branch(branch: Branch) -> dict[str, Any]:
    fields = {**branch.rest, **branch.result()}
    return fields if branch.state is BranchState.NOT_BEGUN else {**fields, **_attempt(branch)}


# -- read -------------------------------------------------------------------------------------------------------------


def read(fields: dict[str, Any], node: Node | None) -> WorkflowPhase:
    """The phase of a payload whose next step is `node` (None: all are done).

    Raises `SchemaMismatch` for a phase or state of a branch that this version does not know, `InvalidPayload` for one that does not fit.
    """
    state = a_text(fields, "state", "$.phase")
    if state == Ready.name:
        return Ready(read_decision(fields, Decision.ROLL_BACK, "$.phase"), others(fields, frozenset({"state", "decision"})))
    if state == Failed.name:
        return Failed.read(fields)
    if state == Completed.name:
        if node is not None:
            raise InvalidPayload("$.phase.state", f"is completed, and {node.name} was not done")
        return Completed(anything(fields, "response", "$.phase"), others(fields, frozenset({"state", "response"})))
    if state not in {each.name for each in KNOWN}:
        raise SchemaMismatch(f"unknown phase {state!r:.60} of a workflow; this version knows {', '.join(each.name for each in KNOWN)}")
    step = a_text(fields, "step", "$.phase")
    if node is None or step != node.name:
        raise InvalidPayload("$.phase.step", f"is {step!r:.60}, where {'nothing' if node is None else node.name} is next")
    if state == StepInFlight.name and isinstance(node, Step):
        decided = read_decision(fields, Decision.RETRY, "$.phase")
        return StepInFlight(step, *_read_attempt(fields, "$.phase"), decided, others(fields, _STEP_FIELDS))
    if state == ParallelInFlight.name and isinstance(node, Parallel):
        return ParallelInFlight(step, _read_branches(fields, node), others(fields, _BRANCHES_FIELDS))
    if state == RaceInFlight.name and isinstance(node, Race):
        race = RaceInFlight(step, _read_branches(fields, node), others(fields, _BRANCHES_FIELDS))
        check_race({name: each.state for name, each in race.branches.items()}, "$.phase.branches")
        return race
    if state == Waiting.name and isinstance(node, WaitForSignal | WaitForTimer):
        until = anything(fields, "until_ms", "$.phase")
        if until is not None or isinstance(node, WaitForTimer):
            until = a_count(fields, "until_ms", "$.phase")
        return Waiting(step, until, others(fields, _WAITING_FIELDS))
    raise InvalidPayload("$.phase.state", f"is {state}, where the layout has a {node.type}")


def check_race(states: Mapping[str, BranchState], path: str) -> None:
    """Raises `InvalidPayload` for a race that two have won, or that goes on although one has."""
    counted = list(states.values())
    if counted.count(BranchState.COMPLETED) > 1:
        raise InvalidPayload(path, "has more than one winner")
    if BranchState.COMPLETED in counted and BranchState.IN_FLIGHT in counted:
        raise InvalidPayload(path, "has a winner and a branch in flight")


def check_result(node: Node, output: Any, path: str) -> None:
    """Raises `InvalidPayload` for an output that a step of this kind cannot have."""
    if isinstance(node, WaitForSignal | WaitForTimer):
        by = a_text(an_object(output, path), "by", path)
        if by not in ("timer", "signal") or (by == "signal" and isinstance(node, WaitForTimer)):
            raise InvalidPayload(f"{path}.by", f"is {by!r:.60} for a {node.type}")
    if not isinstance(node, Parallel | Race):
        return
    entries = an_object(output, path)
    _check_names(entries, node, path)
    states = {name: _state(an_object(each, f"{path}.{name}"), f"{path}.{name}") for name, each in entries.items()}
    if BranchState.IN_FLIGHT in states.values():
        raise InvalidPayload(path, "has a branch that has not ended")
    if isinstance(node, Race):
        check_race(states, path)
    won = isinstance(node, Race) and BranchState.COMPLETED in states.values()
    if BranchState.NOT_BEGUN in states.values() and not won:
        raise InvalidPayload(path, "has a branch that was never begun")


def _read_attempt(fields: dict[str, Any], path: str) -> tuple[int, int, tuple[Announced, ...]]:
    effects = read_announced(fields, path)
    return a_count(fields, "attempt", path, 1), a_count(fields, "since_ms", path), effects


def _read_branches(fields: dict[str, Any], node: Parallel | Race) -> dict[str, Branch]:
    entries = an_object(anything(fields, "branches", "$.phase"), "$.phase.branches")
    _check_names(entries, node, "$.phase.branches")
    return {name: _read_branch(an_object(each, f"$.phase.branches.{name}"), f"$.phase.branches.{name}") for name, each in entries.items()}


def _check_names(entries: Mapping[str, Any], node: Parallel | Race, path: str) -> None:
    if set(entries) != set(node.branches):
        raise InvalidPayload(path, f"has {sorted(entries)}, where the layout has {sorted(node.branches)}")


def _read_branch(fields: dict[str, Any], path: str) -> Branch:
    state = _state(fields, path)
    if state is BranchState.NOT_BEGUN:
        return Branch(rest=others(fields, frozenset({"state"})))
    branch = Branch(state, *_read_attempt(fields, path))
    known = _ATTEMPT_FIELDS
    if state is BranchState.IN_FLIGHT:
        branch, known = replace(branch, decision=read_decision(fields, Decision.RETRY, path)), known | {"decision"}
    if state is BranchState.COMPLETED:
        branch, known = replace(branch, output=anything(fields, "output", path)), known | {"output"}
    if state is BranchState.FAILED:
        branch, known = replace(branch, message=a_text(fields, "message", path)), known | {"message"}
    return replace(branch, rest=others(fields, known))


def _state(fields: Mapping[str, Any], path: str) -> BranchState:
    state = a_text(fields, "state", path)
    if state not in set(BranchState):
        raise SchemaMismatch(f"unknown state {state!r:.60} of a branch; this version knows {', '.join(BranchState)}")
    return BranchState(state)


_ATTEMPT_FIELDS = frozenset({"state", "attempt", "since_ms", "effects"})
_STEP_FIELDS = _ATTEMPT_FIELDS | {"step", "decision"}
_BRANCHES_FIELDS = frozenset({"state", "step", "branches"})
_WAITING_FIELDS = frozenset({"state", "step", "until_ms"})
