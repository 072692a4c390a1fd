"""Each step of the protocol is needed: a variant of the writer that leaves one out breaks a promise in the model.

The scheduler is Hypothesis, with a fixed seed, and stops at the first run that breaks. Three removals need a schedule of a dozen exact
moves, which a search of a few seconds does not meet; theirs are written down.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from eventlog.kafka.ownership import Ownership
from eventlog.kafka.partition import PartitionWriter, State
from tests.protocol_model.machine import Protocol
from tests.protocol_model.promises import PromiseBroken
from tests.protocol_model.removed_steps import (
    APPEND,
    STEPS,
    TAKE,
    Removal,
    SettlesByBelief,
    TakesTheHighWatermarkTooEarly,
    TakesTheLastStableOffset,
)
from tests.protocol_model.simulated_client import Fault
from tests.protocol_model.simulated_process import Order, Variant
from tests.protocol_model.world import World

REMOVALS = {name: removal for removals in STEPS.values() if isinstance(removals, dict) for name, removal in removals.items()}
SOONEST = settings(
    max_examples=1_000,
    stateful_step_count=20,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_numbered_step_of_the_protocol_can_be_removed() -> None:
    documented = {
        (name, int(number))
        for name, function in ((TAKE, Ownership.take), (APPEND, PartitionWriter._begin))
        for number in re.findall(r"^\s+(\d+)\. ", function.__doc__ or "", re.MULTILINE)
    }
    assert documented == set(STEPS), "a step was added or taken away: give it a removal, and see the model fail without it"


def test_a_step_that_is_held_elsewhere_is() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    for held in STEPS.values():
        assert not isinstance(held, str) or f"def {held}(" in tests


@pytest.mark.parametrize("name", REMOVALS)
def test_a_promise_breaks_when(name: str) -> None:
    removal: Removal = REMOVALS[name]

    class WithoutIt(Protocol):
        variant = removal.variant
        moves = (*removal.faults, *removal.usual)
        processes = 2
        strict = False

    with pytest.raises(PromiseBroken):
        run_state_machine_as_test(WithoutIt, settings=SOONEST)


def state_of(world: World, process: int) -> State:
    return world.processes[process].writer.state


def take_over_behind_an_undecided_last_stable_offset(variant: Variant) -> None:
    """A commit is decided and its marker written, but readers do not have it yet; then another process takes over."""
    world = World(processes=2, variant=variant, strict=False)
    try:
        world.warm_up()
        for process in (0, 1):
            world.propose(process, 0, 0, 1, timeout=30.0)
        before = len(world.broker.decided)
        while len(world.broker.decided) == before:
            world.work(1, 1, 100, Order.WRITER_FIRST)
        while state_of(world, 0) is not State.IDLE:
            world.work(0, 1, 100, Order.WRITER_FIRST)
        world.wait(0.6)
        world.work(0, 60, 100, Order.WRITER_FIRST)
        world.settle_down()
    finally:
        world.close()


def test_a_promise_breaks_when_the_last_stable_offset_stands_for_the_high_watermark() -> None:
    take_over_behind_an_undecided_last_stable_offset(Variant())
    with pytest.raises(PromiseBroken):
        take_over_behind_an_undecided_last_stable_offset(Variant(offsets=TakesTheLastStableOffset))


def commit_between_the_high_watermark_and_the_fence(variant: Variant) -> None:
    """A process takes over; when it has taken its first step towards that, the owner commits what both have proposed."""
    world = World(processes=2, variant=variant, strict=False)
    try:
        world.warm_up()
        world.processes[0].poll()
        for process in (0, 1):
            world.propose(process, 0, 0, 1, timeout=30.0)
        while state_of(world, 0) is not State.IDLE:
            world.work(0, 1, 100, Order.WRITER_FIRST)
        world.wait(0.6)
        while not any(task.started for task in world.processes[0].pool.tasks):
            world.work(0, 1, 100, Order.WRITER_FIRST)
        world.work(0, 1, 100, Order.WRITER_FIRST)
        assert state_of(world, 0) is State.ACQUIRING
        world.work(1, 60, 100)
        world.work(0, 60, 100, Order.WRITER_FIRST)
        world.settle_down()
    finally:
        world.close()


def test_a_promise_breaks_when_the_high_watermark_is_taken_before_the_fence() -> None:
    commit_between_the_high_watermark_and_the_fence(Variant())
    with pytest.raises(PromiseBroken):
        commit_between_the_high_watermark_and_the_fence(Variant(ownership=TakesTheHighWatermarkTooEarly))


def resolve_at_an_owner_that_was_fenced(variant: Variant) -> None:
    """A commit is on the wire when its process dies; a process that was the owner before is asked what became of the event."""
    world = World(processes=2, variant=variant, late_first=True, strict=False)
    try:
        world.warm_up()
        world.processes[1].fault = Fault.COMMIT_LATE
        world.propose(1, 0, 0, 1, timeout=30.0)
        world.work(1, 60, 100)
        world.kill(1)
        assert state_of(world, 0) is State.READY
        world.resolve(0, 0, timeout=30.0)
        world.work(0, 60, 100)
        world.settle_down()
        assert world.happened["resolved: not in the log"] + world.happened["resolved: in the log"] == 1
    finally:
        world.close()


def test_a_promise_breaks_when_resolve_believes_an_owner_that_may_have_been_fenced() -> None:
    resolve_at_an_owner_that_was_fenced(Variant())
    with pytest.raises(PromiseBroken):
        resolve_at_an_owner_that_was_fenced(Variant(writer=SettlesByBelief))
