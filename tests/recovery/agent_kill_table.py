"""Every place where the order agent (`order_agent.py`) can be killed, and exactly what is found and done afterwards.

A row is one durable position. Several kills lead to it: after one write, before the next, and in the call between them if there is one.
"""

from __future__ import annotations

from typing import NamedTuple

# What each tool has come to once the next one is called.
ENDS = {"look_up": "completed", "charge_card": "completed", "send_mail": "completed", "book_courier": "failed", "hold_stock": "completed"}


class Row(NamedTuple):
    """A position, and what follows from it.

    Arguments:
        found: what `Reject` says: absent (nothing was accepted), ready, in flight, completed.
        tool, state: the last effect that was announced, and what is known of it; those before it have come to their `ENDS`.
        refused: whether a retry stops at that tool, because nobody knows whether it has happened.
        truth: what a person then finds out on the other side.
        again: what is called once more than a run that nobody kills calls it. The model is asked again by each attempt of the turn.
        spent: how often the victim's 100 tokens are on record.
    """

    kills: tuple[str, ...]
    found: str = "in flight"
    tool: str = ""
    state: str = ""
    refused: bool = False
    truth: str = ""
    again: tuple[str, ...] = ()
    spent: int = 1


def _around(tool: str, *, sure: str, end: str = "effect_completed", last: str, after: str, truth: str = "completed") -> tuple[Row, ...]:
    """The positions of one effect: announced, prepared, started, called, ended. `sure`: what a kill in the middle of it leads to."""
    refused = sure == "refused"
    repeated = () if refused else (tool,)
    return (
        Row((f"after effect_announced {tool}", f"before effect_prepared {tool}"), tool=tool, state="absent"),
        Row((f"after effect_prepared {tool}", f"before effect_started {tool}"), tool=tool, state="prepared"),
        Row((f"after effect_started {tool}",), tool=tool, state="started", refused=refused, truth="not executed"),
        Row((f"in {tool}", f"before {end} {tool}"), tool=tool, state="started", refused=refused, truth=truth, again=repeated),
        Row((f"after {end} {tool}", f"before {after}"), tool=tool, state=last),
    )


GROUPS: dict[str, tuple[Row, ...]] = {
    "begin": (
        Row(("before effect_store_named", "after effect_store_named", "before agent_created"), found="absent", spent=0),
        Row(("after agent_created", "before turn_in_flight"), found="ready", spent=0),
        Row(("after turn_in_flight",), spent=0),
        Row(("in model", "before usage_spent"), again=("model",), spent=0),
        Row(("after usage_spent", "before effect_announced look_up")),
    ),
    "look_up": _around("look_up", sure="repeated", last="completed", after="effect_announced charge_card"),
    "charge_card": _around("charge_card", sure="repeated", last="completed", after="effect_announced send_mail"),
    "send_mail": _around("send_mail", sure="refused", last="completed", after="effect_announced book_courier"),
    "book_courier": _around(
        "book_courier", sure="refused", end="effect_failed", last="failed", after="effect_announced hold_stock", truth="failed"
    ),
    "hold_stock": (
        *_around(
            "hold_stock",
            sure="refused",
            end="effect_not_executed",
            last="prepared",
            after="effect_announced hold_stock again",
            truth="not executed",
        ),
        Row(("after effect_announced hold_stock again", "before effect_started hold_stock again"), tool="hold_stock", state="prepared"),
        Row(("after effect_started hold_stock again",), tool="hold_stock", state="started", refused=True, truth="not executed"),
        Row(
            ("in hold_stock again", "before effect_completed hold_stock again"),
            tool="hold_stock",
            state="started",
            refused=True,
            truth="completed",
        ),
        Row(("after effect_completed hold_stock again", "before turn_stable"), tool="hold_stock", state="completed"),
    ),
    "end": (
        Row(("after turn_stable", "before agent_completed"), found="ready"),
        Row(("after agent_completed",), found="completed"),
    ),
}
# A reconciler answers only when something was left started, so this one is reached by a second victim.
SETTLING = ("before effect_settled send_mail", "after effect_settled send_mail")


def known(row: Row) -> dict[str, str]:
    """What is known of each announced effect."""
    if not row.tool:
        return {}
    before = list(ENDS)[: list(ENDS).index(row.tool)]
    return {**{tool: ENDS[tool] for tool in before}, row.tool: row.state}


def all_kills() -> list[str]:
    """Every kill of the table."""
    return [kill for rows in GROUPS.values() for row in rows for kill in row.kills] + list(SETTLING)
