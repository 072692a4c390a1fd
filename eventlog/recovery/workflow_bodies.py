"""The bodies of steps and branches, for both kinds of workflow runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eventlog.errors import InvalidRequest
from eventlog.recovery.body import BodyCore
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effects import EffectLedger
from eventlog.recovery.fields import own_copy
from eventlog.recovery.steps import Steps
from eventlog.recovery.stream import RunStream
from eventlog.recovery.workflow_layout import Parallel, Race
from eventlog.recovery.workflow_phases import BranchState, Place
from eventlog.recovery.workflow_record import WorkflowRecord

if TYPE_CHECKING:
    from eventlog.recovery.workflow_steps import WorkflowCore


class StepCore(BodyCore[WorkflowRecord]):
    """A step or branch in flight."""

    def __init__(self, stream: RunStream[WorkflowRecord], effects: EffectLedger | None, place: Place) -> None:
        names = [each for each in place if each is not None]
        super().__init__(
            stream,
            effects,
            what=str(place),
            place="/".join([stream.checkpoint.id, *(each.replace("%", "%25").replace("/", "%2F") for each in names)]),
            announced=lambda record: record.at(place).effects,
            announce=lambda record, effect: record.announce(place, effect),
        )
        self.place = place
        self.attempt = stream.record.at(place).attempt

    def commit_steps(self, output: Any, usage: Mapping[str, int] | None) -> Steps[None]:
        """Makes its output durable."""
        kept = own_copy(output)
        return self.end_steps(
            lambda record: record.finish(self.place, kept),
            Boundary.STEP_STABLE if self.place.branch is None else Boundary.BRANCH_ENDED,
            usage,
        )

    def give_up_steps(self, message: str | None, usage: Mapping[str, int] | None) -> Steps[None]:
        """A branch has failed, or (no message) is cancelled."""
        return self.end_steps(lambda record: record.give_up(self.place, message), Boundary.BRANCH_ENDED, usage)

    def leave(self, error: BaseException | None) -> None:
        """The body has been left; that of a branch which was beaten meanwhile need not have said how it ended."""
        if self.place not in self._stream.record.in_flight():
            self._ended = True
        super().leave(error)


class StepFace:
    """A step or branch that may have been entered."""

    def __init__(self) -> None:
        self._core: StepCore | None = None

    @property
    def attempt(self) -> int:
        """How often this step or branch has been begun, from 1 on."""
        return self._begun.attempt

    @property
    def _begun(self) -> StepCore:
        if self._core is None:
            raise InvalidRequest("step", "has not begun", hint="Use it as a context manager: with flow.step(name) as step.")
        return self._core


class BranchesCore:
    """The branches of a parallel step or a race."""

    def __init__(self, run: WorkflowCore, step: str, node: type[Parallel] | type[Race]) -> None:
        self._run = run
        self._step = step
        self._node = node

    @property
    def states(self) -> dict[str, BranchState]:
        """How far each branch has come, as this process knows it to be durable."""
        return {name: each.state for name, each in self._run._branches(self._step).items()}

    @property
    def remaining(self) -> list[str]:
        """The branches that have not ended, in the layout's order; of a race that was won: none."""
        states = self.states
        if self._node is Race and BranchState.COMPLETED in states.values():
            return []
        return [name for name, state in states.items() if state in (BranchState.NOT_BEGUN, BranchState.IN_FLIGHT)]
