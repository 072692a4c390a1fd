"""An agent with two tools and a scripted model, which dies in the middle of a turn and is resumed.

    python examples/tool_calling_agent.py DIRECTORY

The model is a list of replies, so that the example needs no key and always does the same. Everything else is as with a real one.
"""

from __future__ import annotations

import sys
from typing import Any

from eventlog import CheckpointStore, create_store, open_store
from eventlog.recovery import AgentRun, AmbiguousResume, EffectClass, EffectStore, Model, RetryInFlight

IDENTITY: dict[str, Any] = {"agent": "order-desk", "model": Model("scripted", "replies-1"), "definition_version": 1}
ORDER = 4711
SCRIPT: list[dict[str, Any]] = [
    {"calls": [{"tool": "look_up", "arguments": {"order": ORDER}}], "tokens": 212},
    {"calls": [{"tool": "refund", "arguments": {"order": ORDER, "cents": 3900}}], "tokens": 348},
    {"text": "I have refunded 39.00 EUR for the teapot.", "tokens": 96},
]
refunds: list[dict[str, Any]] = []  # the payment provider's books


def ask_model(given: dict[str, Any]) -> dict[str, Any]:
    """The reply that follows so many replies."""
    return SCRIPT[[message["role"] for message in given["messages"]].count("assistant")]


def look_up(arguments: dict[str, Any]) -> dict[str, Any]:
    """Reads; may be run any number of times."""
    return {"order": arguments["order"], "item": "teapot", "cents": 3900}


def refund(arguments: dict[str, Any]) -> dict[str, Any]:
    """Moves money; a real provider is given the idempotency key."""
    if arguments not in refunds:
        refunds.append(arguments)
    return {"refunded": arguments["cents"]}


TOOLS = {"look_up": (look_up, EffectClass.READ_ONLY), "refund": (refund, EffectClass.IDEMPOTENT_WRITE)}


def work(run: AgentRun, *, dies_after: str = "") -> str:
    """Turn after turn until the model answers in words. `dies_after` a tool, where a test or a power cut ends it."""
    while True:
        messages = run.state["messages"]
        with run.turn() as turn:
            # The reply is on record too: a repeated turn gets the same one, and so asks for the same effects.
            reply = turn.effect("model", {"messages": messages}, ask_model, effect_class=EffectClass.READ_ONLY)
            turn.spend(tokens=reply["tokens"])
            messages.append({"role": "assistant", **reply})
            for number, call in enumerate(reply.get("calls", ())):
                handler, effect_class = TOOLS[call["tool"]]
                key = f"{run.checkpoint_id}/{turn.number}/{number}"
                output = turn.effect(call["tool"], call["arguments"], handler, effect_class=effect_class, idempotency_key=key)
                if call["tool"] == dies_after:
                    raise SystemExit("the power is cut")
                messages.append({"role": "tool", "content": output})
            turn.commit(state={"messages": messages})
        if "text" in reply:
            run.complete({"text": reply["text"]})
            return str(reply["text"])


def main(directory: str) -> None:
    create_store(directory)
    with open_store(directory, actor="order-desk") as store:
        effects = EffectStore(store)
        run = AgentRun.start(store, effects=effects, state={"messages": [{"role": "user", "content": "My teapot is broken."}]}, **IDENTITY)
        try:
            work(run, dies_after="refund")
        except SystemExit as cut:
            print(f"turn 2: {cut}")
        print(f"refunds so far: {refunds}")
        answer = resumed(store, effects, run.checkpoint_id)
        print(f"answer: {answer}")
        print(f"refunds: {len(refunds)}, usage: {store.load(run.checkpoint_id).usage['tokens']} tokens")


def resumed(store: CheckpointStore, effects: EffectStore, checkpoint_id: str) -> str:
    """As a process does that knows nothing but the id."""
    try:
        return work(AgentRun.resume(store, checkpoint_id, **IDENTITY))
    except AmbiguousResume as found:
        print(f"refused: {found.what} has been in flight; " + ", ".join(f"{each.capability} {each.state}" for each in found.effects))
    # Everything that was started is known to have ended, so repeating the turn repeats nothing outside.
    return work(AgentRun.resume(store, checkpoint_id, policy=RetryInFlight(effects=effects), **IDENTITY))


if __name__ == "__main__":
    main(sys.argv[1])
