"""What the bodies of both kinds of workflow runs have in common: what may be asked of them without waiting."""

from __future__ import annotations

from eventlog.errors import InvalidRequest
from eventlog.recovery.workflow_layout import Parallel, Race
from eventlog.recovery.workflow_phases import BranchState
from eventlog.recovery.workflow_steps import StepCore, WorkflowCore


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
