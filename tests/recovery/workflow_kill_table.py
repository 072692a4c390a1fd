"""Every place where the order workflow (`order_workflow.py`) can be killed, and exactly what is found and done afterwards.

A row is one durable position. Several kills lead to it: after one write, before the next, and in the body between them if there is one.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A position, and what follows from it.

    Arguments:
        found: what a process finds that has no claim: absent (nothing was accepted), the victim's, or the phase.
        rejected: what `Reject` says to one that has claimed the run: the phase that it goes on from, or what is in flight.
        again: what is called once more than a run that nobody kills calls it.
        repeated: how many steps and branches are begun again.
    """

    kills: tuple[str, ...]
    rejected: str = "ready"
    found: str = "victim's"
    again: tuple[str, ...] = ()
    repeated: int = 0


CREDIT = "branch credit of fanout"
GROUPS: dict[str, tuple[Row, ...]] = {
    "begin": (
        Row(("before effect_store_named", "after effect_store_named", "before workflow_created"), found="absent"),
        Row(("after workflow_created", "before workflow_claimed 1"), found="ready"),
        Row(("after workflow_claimed 1", "before step_in_flight validate")),
        Row(("after step_in_flight validate",), "step validate", repeated=1),
        Row(("in validate", "before step_stable validate"), "step validate", again=("validate",), repeated=1),
        Row(("after step_stable validate", "before workflow_renewed")),
        Row(("after workflow_renewed", "before branch_in_flight stock")),
    ),
    "parallel": (
        Row(("after branch_in_flight stock",), "branch stock of fanout", repeated=1),
        Row(("in stock", "before branch_ended stock"), "branch stock of fanout", again=("stock",), repeated=1),
        Row(("after branch_ended stock", "before branch_in_flight credit"), "parallel_in_flight"),
        Row(("after branch_in_flight credit", "before effect_announced credit"), CREDIT, repeated=1),
        Row(("after effect_announced credit", "before effect_prepared credit"), CREDIT, repeated=1),
        Row(("after effect_prepared credit", "before effect_started credit"), CREDIT, repeated=1),
        Row(("after effect_started credit",), CREDIT, repeated=1),
        Row(("in credit", "before effect_completed credit"), CREDIT, again=("credit",), repeated=1),
        Row(("after effect_completed credit", "before branch_ended credit"), CREDIT, repeated=1),
        Row(("after branch_ended credit", "before branches_joined fanout"), "parallel_in_flight"),
        Row(("after branches_joined fanout", "before branch_in_flight cheap")),
    ),
    "race": (
        Row(("after branch_in_flight cheap",), "branch cheap of quote", repeated=1),
        Row(("in cheap", "before branch_in_flight fast"), "branch cheap of quote", again=("cheap",), repeated=1),
        Row(("after branch_in_flight fast",), "branch cheap of quote, branch fast of quote", again=("cheap",), repeated=2),
        Row(
            ("in fast", "before branch_ended fast"),
            "branch cheap of quote, branch fast of quote",
            again=("cheap", "fast"),
            repeated=2,
        ),
        Row(("after branch_ended fast", "before branches_joined quote"), "race_in_flight"),
        Row(("after branches_joined quote", "before workflow_waiting approval")),
    ),
    "wait": (
        Row(("after workflow_waiting approval", "before workflow_woken approval"), "waiting", found="waiting"),
        Row(("after workflow_woken approval", "before workflow_claimed 2"), found="ready"),
        Row(("after workflow_claimed 2", "before workflow_released")),
        Row(("after workflow_released", "before workflow_claimed 3"), found="ready"),
        Row(("after workflow_claimed 3", "before workflow_waiting cool_off")),
        Row(
            ("after workflow_waiting cool_off", "before clock_read", "after clock_read", "before workflow_claimed 4"),
            "waiting",
            found="waiting",
        ),
        Row(("after workflow_claimed 4", "before workflow_woken cool_off"), "waiting"),
        Row(("after workflow_woken cool_off", "before step_in_flight ship")),
    ),
    "end": (
        Row(("after step_in_flight ship",), "step ship", repeated=1),
        Row(("in ship", "before step_stable ship"), "step ship", again=("ship",), repeated=1),
        Row(("after step_stable ship", "before workflow_completed")),
        Row(("after workflow_completed",), found="completed"),
    ),
}


def all_kills() -> list[str]:
    """Every kill of the table."""
    return [kill for rows in GROUPS.values() for row in rows for kill in row.kills]
