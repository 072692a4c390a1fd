"""An agent whose every step outside leaves a line in a file, so that what it did can be counted after it was killed.

One turn: it asks the model, looks the order up, charges the card (idempotent), sends a mail (not idempotent), books a courier (refused for
certain), holds stock (no connection at first, then held), and is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventlog.recovery import (
    AgentRun,
    AsyncAgentRun,
    CertainFailure,
    Effect,
    EffectClass,
    EffectFailed,
    NotExecuted,
    Settlement,
)
from tests.recovery.samples import Outside

TOOLS = ("look_up", "charge_card", "send_mail", "book_courier", "hold_stock", "hold_stock again")
CLASSES = {
    "look_up": EffectClass.READ_ONLY,
    "charge_card": EffectClass.IDEMPOTENT_WRITE,
    "send_mail": EffectClass.NON_IDEMPOTENT_WRITE,
    "book_courier": EffectClass.NON_IDEMPOTENT_WRITE,
    "hold_stock": EffectClass.NON_IDEMPOTENT_WRITE,
}
FIRST_STATE: dict[str, Any] = {"order": 7, "messages": []}
LAST_STATE: dict[str, Any] = {"order": 7, "messages": ["pay, tell, ship"], "done": ["look_up", "charge_card", "send_mail", "hold_stock"]}
RESPONSE = {"answer": "charged and mailed; no courier today"}


class OrderAgent:
    """Runs one order.

    Arguments:
        at: told where the work has come to: `in model`, `in send_mail` (the other side has it, its answer is on the way).
    """

    def __init__(self, outside: Outside, at: Callable[[str], object] = str) -> None:
        self.outside = outside
        self.at = at
        self.tool = ""  # the one that is being called, for naming the writes around it
        self.reconcile: Callable[[Effect], Settlement] | None = None  # for the mail

    def label(self, boundary: str) -> str:
        """How a write is named: effects by their tool."""
        return f"{boundary} {self.tool}" if boundary.startswith("effect_") and self.tool else boundary

    def work(self, run: AgentRun) -> None:
        """From wherever the run is to its end."""
        if run.phase.name != "ready_for_turn" or run.state == FIRST_STATE:
            with run.turn() as turn:
                self._ask_model()
                turn.spend(tokens=100)
                for tool in TOOLS:
                    arguments = self._call(tool, run.checkpoint_id)
                    try:
                        turn.effect(*arguments[0], **arguments[1])
                    except (EffectFailed, NotExecuted):
                        continue
                turn.commit(state=LAST_STATE)
        run.complete(RESPONSE)

    async def work_async(self, run: AsyncAgentRun) -> None:
        """The same on an event loop."""
        if run.phase.name != "ready_for_turn" or run.state == FIRST_STATE:
            async with run.turn() as turn:
                self._ask_model()
                await turn.spend(tokens=100)
                for tool in TOOLS:
                    arguments = self._call(tool, run.checkpoint_id)
                    try:
                        await turn.effect(*arguments[0], **arguments[1])
                    except (EffectFailed, NotExecuted):
                        continue
                await turn.commit(state=LAST_STATE)
        await run.complete(RESPONSE)

    def _call(self, tool: str, checkpoint_id: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self.tool = tool
        name = tool.removesuffix(" again")
        key = f"{checkpoint_id}-{name}"
        reconcile = self.reconcile if name == "send_mail" else None
        return (name, {"order": 7}, getattr(self, name)), {"effect_class": CLASSES[name], "idempotency_key": key, "reconcile": reconcile}

    def _ask_model(self) -> None:
        self.outside.call("model")
        self.at("in model")

    def look_up(self, order: dict[str, int]) -> dict[str, Any]:
        return self._done("look_up", {"order": order["order"], "amount": 39})

    def charge_card(self, order: dict[str, int]) -> dict[str, Any]:
        return self._done("charge_card", {"charged": order["order"]})

    def send_mail(self, order: dict[str, int]) -> dict[str, Any]:
        return self._done("send_mail", {"mailed": order["order"]})

    def book_courier(self, order: dict[str, int]) -> None:
        self._done("book_courier", order)
        raise CertainFailure("no courier today")

    def hold_stock(self, order: dict[str, int]) -> dict[str, Any]:
        if self.outside.call("knock") == 1:
            self.at("in hold_stock")
            raise NotExecuted("nobody opened")
        self.outside.call("hold_stock")
        self.at("in hold_stock again")
        return {"held": order["order"]}

    def _done(self, name: str, output: dict[str, Any]) -> dict[str, Any]:
        self.outside.call(name)
        self.at(f"in {name}")
        return output
