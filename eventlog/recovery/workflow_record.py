"""What a revision of a workflow's run says, and what may follow it. Pure: no I/O, no clock.

    ready -> step_in_flight | parallel_in_flight | race_in_flight | waiting -> ready -> ... -> completed

A person may also decide about what is in flight: that it may be repeated, back to ready, or failed (`decided_runs.py`).

Whoever owns the run, and for how long, is in every revision too: claiming it is a revision, so that compare-and-swap is the fence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eventlog.checkpoint import LAST_REVISION, Checkpoint, check_text
from eventlog.errors import InvalidPayload, InvalidRequest
from eventlog.recovery import workflow_layout, workflow_phases
from eventlog.recovery.agent_phases import Completed, Failed
from eventlog.recovery.effect_phases import Announced
from eventlog.recovery.errors import BranchCancelled, NotOwner
from eventlog.recovery.fields import a_count, a_text, an_object, anything, others
from eventlog.recovery.identity import check_kind
from eventlog.recovery.workflow_layout import LONGEST_NAME, Layout, Node, Parallel, Race, Step, WaitForTimer
from eventlog.recovery.workflow_phases import (
    Branch,
    BranchState,
    ParallelInFlight,
    Place,
    RaceInFlight,
    Ready,
    StepInFlight,
    Waiting,
    WorkflowPhase,
    check_result,
)

WORKFLOW_KIND = "eventlog.workflow"
WORKFLOW_VERSION = 1
MAX_LEASE_MS = 24 * 3600 * 1000
_FIELDS = frozenset({"workflow", "version", "layout", "effect_store", "value", "outputs", "fencing_token", "owner", "phase"})


@dataclass(frozen=True, slots=True)
class WorkflowIdentity:
    """What must be the same for a run to be gone on with."""

    workflow: str
    version: int
    layout: Layout

    def __post_init__(self) -> None:
        check_text("workflow", self.workflow, LONGEST_NAME)
        if type(self.version) is not int or not 1 <= self.version <= LAST_REVISION:
            raise InvalidRequest("version", f"{self.version!r:.40} is not a whole number from 1 on")

    def fields(self) -> dict[str, Any]:
        """By the names that a mismatch is told with."""
        return {"workflow": self.workflow, "version": self.version, "layout": workflow_layout.compared(self.layout)}


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has claimed a run, and how long each of its revisions keeps it claimed."""

    name: str
    lease_ms: int
    rest: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text("owner", self.name, LONGEST_NAME)
        if type(self.lease_ms) is not int or not 1 <= self.lease_ms <= MAX_LEASE_MS:
            raise InvalidRequest("lease", f"{self.lease_ms!r:.40} ms are not within 1 ms and a day")


@dataclass(frozen=True, slots=True)
class WorkflowRecord:
    """A revision. `outputs` are those of the steps that are done, by name; `rest` are fields that this version does not know."""

    identity: WorkflowIdentity
    effect_store: str | None
    value: Any
    outputs: Mapping[str, Any]
    token: int
    owner: Owner | None
    phase: WorkflowPhase
    rest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def first(cls, identity: WorkflowIdentity, value: Any) -> WorkflowRecord:
        """Revision 0, without effects."""
        return cls(identity, None, value, {}, 0, None, Ready())

    def with_effects(self, effect_store: str) -> WorkflowRecord:
        """The same, with the identity of the store of its effects."""
        return replace(self, effect_store=effect_store)

    # -- where it is ----------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node | None:
        """The step that comes next, or is in flight; None: all are done."""
        done = len(self.outputs)
        return self.identity.layout[done] if done < len(self.identity.layout) else None

    def in_flight(self) -> dict[Place, StepInFlight | Branch]:
        """What may have called something outside and has not said how it ended."""
        phase = self.phase
        if isinstance(phase, StepInFlight):
            return {Place(phase.step): phase}
        if isinstance(phase, ParallelInFlight | RaceInFlight):
            open_ones = {name: each for name, each in phase.branches.items() if each.state is BranchState.IN_FLIGHT}
            return {Place(phase.step, name): each for name, each in open_ones.items()}
        return {}

    def branches(self, step: str) -> Mapping[str, Branch]:
        """The branches of the parallel step or race that is next."""
        node, phase = self._next(step, Parallel, Race), self.phase
        if isinstance(phase, ParallelInFlight | RaceInFlight):
            return phase.branches
        assert isinstance(node, Parallel | Race)
        return {name: Branch() for name in node.branches}

    # -- steps and branches ---------------------------------------------------------------------------------------

    def begin(self, place: Place, attempt: int, since_ms: int) -> WorkflowRecord:
        """The attempt number `attempt`: the first, or one more, which only an explicit decision may ask for."""
        if place.branch is None:
            self._next(place.step, Step)
            before = self.phase.attempt if isinstance(self.phase, StepInFlight) else 0
            self._check_attempt(place, before, attempt)
            if isinstance(self.phase, StepInFlight):
                return replace(self, phase=replace(self.phase, attempt=attempt, since_ms=since_ms, decision=None))
            return replace(self, phase=StepInFlight(place.step, attempt, since_ms))
        branch = self._branch(place)
        if branch.state not in (BranchState.NOT_BEGUN, BranchState.IN_FLIGHT):
            raise InvalidRequest("branch", f"{place.branch} of {place.step} is {branch.state.value}; it is not run again")
        self._check_attempt(place, branch.attempt, attempt)
        return self._with(place, replace(branch, state=BranchState.IN_FLIGHT, attempt=attempt, since_ms=since_ms, decision=None))

    def at(self, place: Place) -> StepInFlight | Branch:
        """A step or branch that is in flight. Raises `BranchCancelled` for a branch that another one has beaten, `InvalidRequest`."""
        found = self.in_flight().get(place)
        if found is None:
            if place.branch is not None:
                self._branch(place)
            raise InvalidRequest("phase", f"{place} is not in flight", hint="Load the run and see what it is in.")
        return found

    def announce(self, place: Place, effect: Announced) -> WorkflowRecord:
        """An effect may be under way from here on."""
        at = self.at(place)
        if any(each.checkpoint_id == effect.checkpoint_id for each in at.effects):
            return self
        return self._with(place, replace(at, effects=(*at.effects, effect)))

    def finish(self, place: Place, output: Any) -> WorkflowRecord:
        """A step or branch is done; the first of a race has won, and what else is in flight there is cancelled."""
        at = self.at(place)
        if isinstance(at, StepInFlight):
            return self._done(place.step, output)
        following = self._with(place, replace(at, state=BranchState.COMPLETED, output=output))
        phase = following.phase
        if not isinstance(phase, RaceInFlight):
            return following
        beaten = {
            name: replace(each, state=BranchState.CANCELLED, decision=None) if each.state is BranchState.IN_FLIGHT else each
            for name, each in phase.branches.items()
        }
        return replace(following, phase=replace(phase, branches=beaten))

    def give_up(self, place: Place, message: str | None) -> WorkflowRecord:
        """A branch has failed for certain, or (no message) is cancelled."""
        at = self.at(place)
        assert isinstance(at, Branch)
        if message is None:
            return self._with(place, replace(at, state=BranchState.CANCELLED))
        if not isinstance(message, str) or not message:
            raise InvalidRequest("message", "must be a text that is not empty")
        return self._with(place, replace(at, state=BranchState.FAILED, message=message))

    def unjoined(self, step: str) -> list[str]:
        """Why the branches cannot be joined yet, one entry each."""
        branches = self.branches(step)
        if any(each.state is BranchState.COMPLETED for each in branches.values()) and isinstance(self.next, Race):
            return []
        states = {BranchState.NOT_BEGUN: "not begun", BranchState.IN_FLIGHT: "in flight"}
        return [f"{name} {states[each.state]}" for name, each in branches.items() if each.state in states]

    def join(self, step: str) -> WorkflowRecord:
        """Every branch of a parallel step has ended, or a race has its winner."""
        open_ones = self.unjoined(step)
        if open_ones:
            raise InvalidRequest("branches", f"of {step}: {', '.join(open_ones)}")
        return self._done(step, {name: each.result() for name, each in self.branches(step).items()})

    # -- waiting and the end --------------------------------------------------------------------------------------

    def wait(self, step: str, until_ms: int | None) -> WorkflowRecord:
        """Nothing is done until it is woken; whoever owned it no longer does."""
        node = self._next(step, workflow_layout.WaitForSignal, WaitForTimer)
        self._expect(Ready)
        if until_ms is None and isinstance(node, WaitForTimer):
            raise InvalidRequest("until", f"is needed: {step} is a timer")
        return replace(self, owner=None, phase=Waiting(step, until_ms))

    def wake(self, step: str, woken: dict[str, Any]) -> WorkflowRecord:
        """Once: by a signal, or because its time has come."""
        self._expect(Waiting)
        self._next(step, workflow_layout.WaitForSignal, WaitForTimer)
        return self._done(step, woken)

    def complete(self, response: Any) -> WorkflowRecord:
        """The run is done."""
        self._expect(Ready)
        if self.next is not None:
            raise InvalidRequest("phase", f"{self.next.name} was not done")
        return replace(self, owner=None, phase=Completed(response))

    # -- who runs it ----------------------------------------------------------------------------------------------

    def claim(self, owner: Owner) -> WorkflowRecord:
        """It is this owner's from here on, whoever had it before; the number shows everybody that it changed hands."""
        if isinstance(self.phase, Completed | Failed):
            raise InvalidRequest("phase", f"is {self.phase.name}; there is nothing to claim")
        return replace(self, owner=owner, token=self.token + 1)

    def release(self) -> WorkflowRecord:
        """Nobody's any more."""
        return replace(self, owner=None)

    def check_owner(self, checkpoint_id: str, name: str | None, token: int | None) -> None:
        """Raises `NotOwner` when the run is not this owner's, by this claim; without a name: when it is anybody's."""
        stored = (None, None) if self.owner is None else (self.owner.name, self.token)
        if stored != (name, token):
            raise NotOwner(checkpoint_id, owner=stored[0], token=stored[1], given_owner=name, given_token=token)

    def lease_ends(self, recorded_ms: int) -> int | None:
        """When it may be claimed by another, if its latest revision was recorded then; None: nobody owns it. By the log's clock."""
        return None if self.owner is None else recorded_ms + self.owner.lease_ms

    def claimable(self, recorded_ms: int, now_ms: int) -> bool:
        """Whether somebody should take it on: it can go on and nobody owns it, or its owner has not been heard of for a lease.

        What is in flight or waits without an owner is left: that is somebody's who runs it without a claim, or a person's to decide; once
        a person has decided that it may be repeated, it can go on.
        """
        ends = self.lease_ends(recorded_ms)
        if isinstance(self.phase, Completed | Failed) or (ends is not None and now_ms < ends):
            return False
        if isinstance(self.phase, Waiting):
            return self.phase.until_ms is not None and now_ms >= self.phase.until_ms
        undecided = [each for each in self.in_flight().values() if each.decision is None]
        return ends is not None or isinstance(self.phase, Ready) or (self.token > 0 and not undecided)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _next(self, step: str, *types: type[Node]) -> Node:
        node = self.next
        if node is None or node.name != step:
            is_next = "all steps are done" if node is None else f"{node.name} is next"
            raise InvalidRequest("step", f"{step!r:.60}: {is_next}")
        if not isinstance(node, types):
            raise InvalidRequest("step", f"{step} is a {node.type} in the layout")
        self._expect(Ready, StepInFlight, ParallelInFlight, RaceInFlight, Waiting)
        return node

    def _branch(self, place: Place) -> Branch:
        branches = self.branches(place.step)
        if place.branch is None or place.branch not in branches:
            raise InvalidRequest("branch", f"{place.branch!r:.60} is not one of {place.step}'s: {', '.join(branches)}")
        if isinstance(self.phase, RaceInFlight) and self.phase.winner not in (None, place.branch):
            raise BranchCancelled(f"{place} was beaten by {self.phase.winner}", step=place.step, branch=place.branch)
        return branches[place.branch]

    def _with(self, place: Place, at: StepInFlight | Branch) -> WorkflowRecord:
        if isinstance(at, StepInFlight):
            return replace(self, phase=at)
        assert place.branch is not None
        branches = {**self.branches(place.step), place.branch: at}
        if isinstance(self.phase, ParallelInFlight | RaceInFlight):
            return replace(self, phase=replace(self.phase, branches=branches))
        kind = RaceInFlight if isinstance(self.next, Race) else ParallelInFlight
        return replace(self, phase=kind(place.step, branches))

    def _done(self, step: str, output: Any) -> WorkflowRecord:
        return replace(self, outputs={**self.outputs, step: output}, phase=Ready())

    def _check_attempt(self, place: Place, before: int, attempt: int) -> None:
        if attempt != before + 1:
            raise InvalidRequest("attempt", f"{place} was begun {before} times; number {attempt} does not follow")

    def _expect(self, *wanted: type[WorkflowPhase]) -> None:
        if not isinstance(self.phase, wanted):
            names = " or ".join(each.name for each in wanted)
            raise InvalidRequest("phase", f"is {self.phase.name}, not {names}", hint="Load the run and see what it is in.")

    # -- the payload ----------------------------------------------------------------------------------------------

    def payload(self) -> dict[str, Any]:
        """As it stands in the log: docs/payloads.md, `eventlog.workflow`."""
        owner = self.owner
        return {
            **self.rest,
            "workflow": self.identity.workflow,
            "version": self.identity.version,
            "layout": workflow_layout.written(self.identity.layout),
            "effect_store": self.effect_store,
            "value": self.value,
            "outputs": self.outputs,
            "fencing_token": self.token,
            "owner": None if owner is None else {**owner.rest, "name": owner.name, "lease_ms": owner.lease_ms},
            "phase": workflow_phases.written(self.phase),
        }

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> WorkflowRecord:
        """What a checkpoint says. Raises `SchemaMismatch` for another kind, version or phase, `InvalidPayload` for what does not fit."""
        check_kind(checkpoint, WORKFLOW_KIND, WORKFLOW_VERSION)
        fields = an_object(checkpoint.payload, "$")
        layout = workflow_layout.read(fields, "$")
        identity = WorkflowIdentity(a_text(fields, "workflow", "$"), a_count(fields, "version", "$", 1), layout)
        outputs = an_object(anything(fields, "outputs", "$"), "$.outputs")
        done, following = _split(layout, outputs)
        for node in done:
            check_result(node, outputs[node.name], f"$.outputs.{node.name}")
        effect_store = anything(fields, "effect_store", "$")
        owner = anything(fields, "owner", "$")
        token = a_count(fields, "fencing_token", "$", 0 if owner is None else 1)
        phase = workflow_phases.read(an_object(anything(fields, "phase", "$"), "$.phase"), following)
        if owner is not None and isinstance(phase, Completed | Failed):
            raise InvalidPayload("$.owner", f"of a {phase.name} run")
        return cls(
            identity,
            None if effect_store is None else a_text(fields, "effect_store", "$"),
            anything(fields, "value", "$"),
            outputs,
            token,
            None if owner is None else _read_owner(an_object(owner, "$.owner")),
            phase,
            others(fields, _FIELDS),
        )


def _split(layout: Layout, outputs: Iterable[str]) -> tuple[Layout, Node | None]:
    """The steps that are done, which must be the first ones of the layout, and the next one."""
    names = [node.name for node in layout]
    given = list(outputs)
    if set(given) != set(names[: len(given)]):
        raise InvalidPayload("$.outputs", f"has {sorted(given)}, where the layout begins with {names[: max(len(given), 1)]}")
    done = layout[: len(given)]
    return done, layout[len(given)] if len(given) < len(layout) else None


def _read_owner(fields: dict[str, Any]) -> Owner:
    name, lease = a_text(fields, "name", "$.owner"), a_count(fields, "lease_ms", "$.owner", 1)
    try:
        return Owner(name, lease, others(fields, frozenset({"name", "lease_ms"})))
    except InvalidRequest as error:
        raise InvalidPayload(f"$.owner.{error.field}", error.problem) from error
