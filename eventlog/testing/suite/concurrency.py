"""Many at once: one winner a revision, and no history that the log and real time contradict."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from eventlog.checkpoint import Checkpoint
from eventlog.errors import Conflict
from eventlog.ids import EventId
from eventlog.testing.checker import check
from eventlog.testing.forgetful import Forgetful
from eventlog.testing.journal import MemoryJournal
from eventlog.testing.recorder import Recorder, log_of
from eventlog.testing.suite.features import Feature, Subject, close, needs
from eventlog.testing.suite.samples import held, initial, is_receipt, outcome, pairs, stream
from eventlog.testing.workload import Workload


def raced(store: Any, proposals: list[Checkpoint], expected: int | None) -> list[Any]:
    """All proposals at the same moment, each from its own thread."""
    gate = threading.Barrier(len(proposals))

    def propose(checkpoint: Checkpoint) -> Any:
        gate.wait()
        return outcome(store, checkpoint, expected)

    with ThreadPoolExecutor(len(proposals)) as pool:
        return list(pool.map(propose, proposals))


def the_winner(proposals: list[Checkpoint], results: list[Any]) -> Checkpoint:
    """The one whose proposal was acknowledged."""
    winners = [proposal for proposal, result in zip(proposals, results, strict=True) if is_receipt(result, proposal)]
    assert len(winners) == 1
    return winners[0]


class Concurrency(Subject):
    """Races, and a recorded workload. `writers` and `turns` may be lowered for a slow store, or raised."""

    writers: ClassVar[int] = 12
    turns: ClassVar[int] = 60

    @pytest.mark.parametrize("round_", range(3))
    def test_one_of_many_threads_wins_and_each_loser_is_told_the_revision(self, store: Any, round_: int) -> None:
        written = stream(store, 3)
        proposals = [written[-1].next({"writer": number, "round": round_}) for number in range(self.writers)]
        results = raced(store, proposals, 2)
        winner = the_winner(proposals, results)
        for proposal, result in zip(proposals, results, strict=True):
            if proposal is not winner:
                assert isinstance(result, Conflict)
                assert (result.expected, result.actual, result.proposed) == (2, 3, 3)
        assert held(store, winner.id) == pairs(*written, winner)

    @pytest.mark.parametrize("round_", range(3))
    def test_of_concurrent_creations_one_wins(self, store: Any, round_: int) -> None:
        first = initial()
        proposals = [first.model_copy(update={"payload": [number, round_], "event_id": EventId.new()}) for number in range(self.writers)]
        results = raced(store, proposals, None)
        winner = the_winner(proposals, results)
        assert {result.actual for result in results if isinstance(result, Conflict)} == {0}
        assert held(store, first.id) == pairs(winner)

    @needs(Feature.RETRY)
    def test_the_same_event_from_many_threads_is_written_once_and_all_get_its_receipt(self, store: Any) -> None:
        first = initial()
        results = raced(store, [first] * self.writers, None)
        assert all((result.event_id, result.revision) == (first.event_id, 0) for result in results)
        if all(hasattr(result, "duplicate") for result in results):
            assert sum(not result.duplicate for result in results) == 1
        assert held(store, first.id) == pairs(first)

    def test_a_recorded_workload_breaks_no_rule(self, store: Any, another: Any, opening: Callable[[], Any]) -> None:
        """Two opened stores, their writers at once; each tenth request or answer gets lost. Held against the log by the checker."""
        work = Workload(
            seed=random.randrange(10**6),
            checkpoints=3,
            retries=self.has(Feature.RETRY),
            resolves=self.has(Feature.RESOLVE),
            deletes=self.has(Feature.DELETE),
        )
        chance = random.Random(work.seed)
        journals = [MemoryJournal(f"store {number}") for number in range(2)]
        lines = [Forgetful(each, lose=lambda: chance.choice(["request", "answer", *[None] * 18])) for each in (store, another)]
        recorders = [Recorder(line, journal) for line, journal in zip(lines, journals, strict=True)]
        work.run(recorders * max(1, self.writers // 4), turns=self.turns)
        final = opening()
        verdict = check([*journals[0], *journals[1]], log_of(final, work.ids))
        close(final)
        assert not verdict.violations, f"seed {work.seed}: {verdict}"
        # Conflicts show the contention. Whether calls overlap does not: those of a store in memory are over too soon.
        verdict.summary.require(committed=self.turns, conflicts=self.turns // 6, unknown=1, reads=self.turns)
