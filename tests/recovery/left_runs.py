"""Runs that were left in flight in each phase there is, and what it takes to finish them. Each body leaves a line outside."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

from eventlog import CheckpointStore
from eventlog.recovery import (
    AgentRun,
    EffectClass,
    EffectStore,
    Parallel,
    Policy,
    Race,
    WaitForSignal,
    WorkflowRun,
)
from tests.recovery import order_runs
from tests.recovery.samples import Lost, Outside, begun, resumed

LAYOUTS: dict[str, tuple[Any, ...]] = {
    "step": ("ship",),
    "parallel": (Parallel("fanout", ["stock", "credit"]),),
    "race": (Race("quote", ["post", "courier"]),),
    "waiting": (WaitForSignal("approval"),),
}
WHAT = {
    "turn": "turn 1",
    "step": "step ship",
    "parallel": "branch credit of fanout",
    "race": "branch post of quote",
    "waiting": "waiting for approval",
}
IN_FLIGHT = ("turn", "step", "parallel", "race")


class LeftRun:
    """A run whose process has gone, in a phase.

    Arguments:
        how: the class of the effect that its body runs.
        answered: whether the effect's answer had arrived when it went.
    """

    def __init__(
        self,
        store: CheckpointStore,
        outside: Outside,
        phase: str,
        *,
        how: EffectClass = EffectClass.IDEMPOTENT_WRITE,
        answered: bool = True,
        effects: EffectStore | None = None,
    ) -> None:
        self.store = store
        self.outside = outside
        self.phase = phase
        self.how = how
        self.effects = EffectStore(store) if effects is None else effects
        self._answers = answered
        self.run: Any = self._started()
        self.id = self.run.checkpoint_id
        self.key = f"{self.id}-charge"
        with contextlib.suppress(Lost):
            self.work(self.run, leave=True)
        self._answers = True

    def resume(self, policy: Policy | None = None, **fields: Any) -> Any:
        """As a new process would."""
        if self.phase == "turn":
            return resumed(self.store, self.id, policy, **fields)
        return order_runs.again(self.store, self.run, *LAYOUTS[self.phase], policy=policy, **fields)

    def work(self, run: AgentRun | WorkflowRun, *, leave: bool = False) -> None:
        """From where the run is to its end; or until it is left."""
        if isinstance(run, AgentRun):
            with run.turn() as turn:
                turn.spend(tokens=100)
                turn.commit(state=self._body(turn, "turn", leave))
        elif self.phase == "step":
            with run.step("ship") as step:
                step.commit(output=self._body(step, "ship", leave))
        elif self.phase == "waiting":
            run.wait_for_signal("approval")
            return
        else:
            self._branches(run, leave)
        run.complete("done")

    def calls(self) -> dict[str, int]:
        """How often each body and the effect have reached the outside."""
        return dict(Counter(self.outside.calls()))

    def _started(self) -> AgentRun | WorkflowRun:
        if self.phase == "turn":
            return begun(self.store, effects=self.effects)
        return order_runs.begun(self.store, *LAYOUTS[self.phase], effects=self.effects)

    def _branches(self, flow: WorkflowRun, leave: bool) -> None:
        name = "fanout" if self.phase == "parallel" else "quote"
        with (flow.parallel if self.phase == "parallel" else flow.race)(name) as branches:
            for each in branches.remaining:
                with branches.branch(each) as branch:
                    branch.commit(output=self._body(branch, each, leave) if each != "stock" else self._counted(each))
                if self.phase == "race":
                    return

    def _body(self, body: Any, name: str, leave: bool) -> Any:
        self._counted(name)
        output = body.effect("charge", {"order": 7}, self._charge, effect_class=self.how, idempotency_key=self.key)
        if leave:
            raise Lost
        return output

    def _charge(self, order: dict[str, int]) -> dict[str, int]:
        self.outside.call("charge")
        if not self._answers:
            raise Lost
        return {"charged": order["order"]}

    def _counted(self, name: str) -> str:
        self.outside.call(name)
        return name
