"""The protocol itself keeps every promise, whoever moves next and whatever is lost, late or false."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.protocol_model.machine import Protocol
from tests.protocol_model.removed_steps import NoHold
from tests.protocol_model.simulated_process import Order, Variant
from tests.protocol_model.world import World

EXAMPLES = int(os.environ.get("EVENTLOG_MODEL_EXAMPLES", "150"))

# What must have happened for a pass to mean anything, in each hundred runs.
ENOUGH = {"commits": 300, "Conflict": 100, "fenced": 50, "kills": 10, "resolved: not in the log": 10, "OutcomeUnknown": 5}


def test_no_promise_is_broken_whatever_is_lost_late_or_false(capsys: pytest.CaptureFixture[str]) -> None:
    happened: Counter[str] = Counter()

    class Counted(Protocol):
        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "world"):
                happened.update(self.world.happened)

    run_state_machine_as_test(
        Counted,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            deadline=None,
            print_blob=True,
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    with capsys.disabled():
        print(f"\nprotocol model, {EXAMPLES} runs: {dict(happened.most_common())}")  # noqa: T201 - a run says how much happened
    for what, times in ENOUGH.items():
        assert happened[what] >= times * EXAMPLES // 200, f"too little happened: {what} {happened[what]} times"


def commits_of_two_rivals(variant: Variant) -> int:
    """Two processes that always have something to write, step by step in turn, for 20 simulated seconds."""
    world = World(processes=2, variant=variant, eager=True)
    try:
        for _ in range(1_000):
            for process in (0, 1):
                world.work(process, 1, 100, Order.READER_FIRST)
            world.wait(0.005)
        return world.happened["commits"]
    finally:
        world.close()


def test_two_processes_that_write_at_once_get_on_and_without_a_hold_they_do_not() -> None:
    with_hold, without = commits_of_two_rivals(Variant()), commits_of_two_rivals(Variant(hold=NoHold))
    assert with_hold > 20
    assert without < with_hold / 4, "the hold is there to end this"
