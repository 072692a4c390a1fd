"""The scheduler: Hypothesis chooses who moves, what is lost, and what comes late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.protocol_model.simulated_client import Fault
from tests.protocol_model.simulated_process import Cut, Order, Variant
from tests.protocol_model.world import IDS, World

FAULTS = tuple(fault.value for fault in Fault)
MOVES = (
    *FAULTS,
    "propose",
    "compete",
    "small steps",
    "cut",
    "interrupt",
    "kill",
    "lose",
    "arrive",
    "ask again",
    "resolve",
    "load",
    "sleep",
    "single steps",
    "keep house",
)
process = st.runner().flatmap(lambda machine: st.integers(0, machine.processes - 1))
fault = st.runner().flatmap(lambda machine: st.sampled_from([each for each in Fault if each.value in machine.moves]))
which = st.integers(0, len(IDS) - 1)
some = st.integers(0, 7)
batch = st.sampled_from([1, 2, 100])
order = st.sampled_from(Order)
timeout = st.sampled_from([30.0, 30.0, 2.0])


def only(*moves: str) -> Callable[[Any], bool]:
    return lambda machine: any(each in machine.moves for each in moves)


class Protocol(RuleBasedStateMachine):
    """`variant`: what the processes are made of."""

    variant: ClassVar[Variant] = Variant()
    strict: ClassVar[bool] = True
    processes: ClassVar[int] = 3
    moves: ClassVar[Sequence[str]] = MOVES

    @initialize(init_waits=st.booleans(), eager=st.booleans(), late_first=st.booleans(), warm=st.booleans())
    def start(self, init_waits: bool, eager: bool, late_first: bool, warm: bool) -> None:
        self.world = World(
            processes=self.processes, variant=self.variant, init_waits=init_waits, eager=eager, late_first=late_first, strict=self.strict
        )
        if warm or not self.strict:
            self.world.warm_up()

    # -- callers ------------------------------------------------------------------------------------------------

    @precondition(only("propose"))
    @rule(process=process, which=which, jump=st.sampled_from([0, 0, 0, 0, -1, -2, -3, 1]), count=st.integers(1, 3), timeout=timeout)
    def propose(self, process: int, which: int, jump: int, count: int, timeout: float) -> None:
        self.world.propose(process, which, jump, count, timeout)

    @precondition(only("compete"))
    @rule(first=process, second=process, which=which)
    def compete(self, first: int, second: int, which: int) -> None:
        for each in (first, second):
            self.world.propose(each, which, 0, 1, 30.0)

    @precondition(lambda self: "ask again" in self.moves and self.world.promises.unclear())
    @rule(process=process, index=some)
    def ask_again(self, process: int, index: int) -> None:
        self.world.propose_again(process, index, 30.0)

    @precondition(lambda self: "resolve" in self.moves and self.world.promises.unclear())
    @rule(process=process, index=some)
    def resolve(self, process: int, index: int) -> None:
        self.world.resolve(process, index, 30.0)

    @precondition(only("load"))
    @rule(process=process, which=which)
    def load(self, process: int, which: int) -> None:
        self.world.load(process, which)

    # -- everybody's steps, in their usual order for a while ----------------------------------------------------

    @precondition(only("small steps"))
    @rule(process=process, steps=st.integers(1, 4), batch=batch, order=order)
    def work_a_little(self, process: int, steps: int, batch: int, order: Order) -> None:
        self.world.work(process, steps, batch, order)

    @precondition(only("small steps"))
    @rule(process=process, steps=st.integers(5, 20), batch=batch, order=order)
    def work(self, process: int, steps: int, batch: int, order: Order) -> None:
        self.world.work(process, steps, batch, order)

    @rule(process=process)
    def work_on(self, process: int) -> None:
        self.world.work(process, 60, 100)

    @rule(process=process, order=order)
    def work_behind_the_hold(self, process: int, order: Order) -> None:
        self.world.wait(0.6)
        self.world.work(process, 60, 100, order)

    # -- single steps out of their usual order ------------------------------------------------------------------

    @precondition(only("single steps"))
    @rule(process=process, steps=st.integers(1, 3))
    def turn(self, process: int, steps: int) -> None:
        for _ in range(steps):
            self.world.processes[process].turn()

    @precondition(only("single steps"))
    @rule(process=process, most=st.integers(1, 3))
    def poll(self, process: int, most: int) -> None:
        self.world.processes[process].poll(most)

    @precondition(lambda self: "arrive" in self.moves and self.world.wire)
    @rule(index=some, answer=st.booleans())
    def arrive(self, index: int, answer: bool) -> None:
        self.world.arrive(index, answer=answer)

    @precondition(only("keep house"))
    @rule(what=st.sampled_from(["markers", "stable", "compaction", "projection"]), process=process)
    def keep_house(self, what: str, process: int) -> None:
        if what == "markers":
            self.world.broker.write_markers()
        elif what == "stable":
            self.world.broker.advance_stable()
        elif what == "compaction":
            self.world.broker.compact()
        else:
            self.world.processes[process].view.write_pending()

    # -- time and faults ----------------------------------------------------------------------------------------

    @precondition(only("small steps"))
    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0]))
    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    @precondition(only("sleep"))
    @rule(seconds=st.sampled_from([2.5, 5.5, 11.0, 16.0, 100.0]))
    def wait_long(self, seconds: float) -> None:
        self.world.wait(seconds)

    @precondition(only("cut"))
    @rule(process=process, cut=st.sampled_from(Cut))
    def cut(self, process: int, cut: Cut) -> None:
        self.world.processes[process].cut = cut

    @precondition(only("kill"))
    @rule(process=process)
    def kill(self, process: int) -> None:
        self.world.kill(process)

    @precondition(lambda self: "lose" in self.moves and self.world.wire)
    @rule(index=some)
    def lose(self, index: int) -> None:
        self.world.lose(index)

    @precondition(only("interrupt"))
    @rule(process=process)
    def interrupt(self, process: int) -> None:
        self.world.interrupt(process)

    @precondition(only(*FAULTS))
    @rule(process=process, fault=fault)
    def fail(self, process: int, fault: Fault) -> None:
        self.world.processes[process].fault = fault

    def check_invariants(self, *arguments: object, **named: object) -> None:
        super().check_invariants(*arguments, **named)  # type: ignore[arg-type]
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.world.settle_down()
            finally:
                self.world.close()
