"""The demo's agent: it handles one order's complaint, turn by turn. Also its child processes:

python -m eventlog.demo.orders race STORE ID NAME    waits for a word, then tries to commit the next revision
python -m eventlog.demo.orders turn STORE ID NAME    commits that a turn is in flight, then waits for a payment that never comes
"""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from eventlog.checkpoint import Checkpoint
from eventlog.errors import Conflict
from eventlog.ids import CheckpointId, RunId
from eventlog.opening import open_store
from eventlog.store import CheckpointStore

KIND = "demo.order"
READY, IN_FLIGHT = "ready_for_turn", "turn_in_flight"

_OPENING = [
    {"role": "system", "content": "You handle complaints about orders. Refund at most once, and say what you did."},
    {"role": "user", "content": "Order 4711: the teapot came with a broken spout. I would like my money back."},
]


class Turn(NamedTuple):
    """One turn of the agent: what it says or calls, and what comes back."""

    call: str
    answer: str
    tokens: int


TURNS = (
    Turn("look_up(order=4711)", "4711: teapot, 39.00 EUR, paid by card, delivered yesterday", 212),
    Turn("check_photo(order=4711)", "the spout is broken off", 348),
)
NEXT_CALL = "refund(order=4711, amount=39.00 EUR)"


def opening() -> Checkpoint:
    """Revision 0: committed before any work is done."""
    payload = {"order": 4711, "phase": {"state": READY}, "messages": _OPENING}
    return Checkpoint.initial(
        CheckpointId.new(), RunId.new(), KIND, 1, payload, labels={"shop": "teapots"}, usage={"turns": 0, "tokens": 0}
    )


def in_flight(before: Checkpoint) -> Checkpoint:
    """The intent, committed before anything outside is called."""
    turn = before.usage["turns"] + 1
    return before.next({**before.payload, "phase": {"state": IN_FLIGHT, "turn": turn}})


def finished(before: Checkpoint, turn: Turn) -> Checkpoint:
    """The turn with all that explains it."""
    messages = [*before.payload["messages"], {"role": "assistant", "content": turn.call}, {"role": "tool", "content": turn.answer}]
    spent = {"turns": before.usage["turns"] + 1, "tokens": before.usage["tokens"] + turn.tokens}
    return before.next({**before.payload, "phase": {"state": READY}, "messages": messages}, usage=spent)


def note(before: Checkpoint, author: str) -> Checkpoint:
    """What each of the two racing writers proposes: a note of its own, for the same revision."""
    messages = [*before.payload["messages"], {"role": "user", "content": f"Note by {author}."}]
    return before.next({**before.payload, "messages": messages})


def _race(store: CheckpointStore, checkpoint_id: str, name: str) -> dict[str, Any]:
    loaded = store.load(checkpoint_id)
    _say({"ready": loaded.revision})
    sys.stdin.readline()  # both have loaded the same revision; now both are let go
    try:
        receipt = store.compare_and_swap(note(loaded, name), loaded.revision)
    except Conflict as error:
        return {"won": False, "told": str(error), "actual": error.actual}
    return {"won": True, "revision": receipt.revision}


def _turn(store: CheckpointStore, checkpoint_id: str) -> None:
    loaded = store.load(checkpoint_id)
    receipt = store.compare_and_swap(in_flight(loaded), loaded.revision)
    _say({"revision": receipt.revision})
    sys.stdin.read()  # the payment provider is called, and has not answered yet; ends with the demo at the latest


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


def _main() -> None:
    what, address, checkpoint_id, name = sys.argv[1:5]
    with open_store(address, actor=name) as store:
        if what == "race":
            _say(_race(store, checkpoint_id, name))
        else:
            _turn(store, checkpoint_id)


if __name__ == "__main__":
    _main()
