"""Promise 1: of any number of concurrent writers exactly one wins, and each loser is told the current revision."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointStore, Conflict, EventId, Receipt
from tests.store.other_process import finish, start
from tests.store.samples import chain_is_intact, initial, outcome, revisions, stream

WRITERS = 12


def raced(store: CheckpointStore, proposals: list[Checkpoint], expected: int | None) -> list[Any]:
    """All proposals at the same moment, each from its own thread."""
    gate = threading.Barrier(len(proposals))

    def propose(checkpoint: Checkpoint) -> Any:
        gate.wait()
        return outcome(store, checkpoint, expected)

    with ThreadPoolExecutor(len(proposals)) as pool:
        return list(pool.map(propose, proposals))


def the_winner(proposals: list[Checkpoint], results: list[Any]) -> Checkpoint:
    winners = [proposal for proposal, result in zip(proposals, results, strict=True) if isinstance(result, Receipt)]
    assert len(winners) == 1
    return winners[0]


@pytest.mark.parametrize("round_", range(5))
def test_one_of_many_threads_wins_and_each_loser_is_told_the_revision(store: CheckpointStore, round_: int) -> None:
    written = stream(store, 3)
    proposals = [written[-1].next({"writer": number, "round": round_}) for number in range(WRITERS)]
    results = raced(store, proposals, 2)
    winner = the_winner(proposals, results)
    for proposal, result in zip(proposals, results, strict=True):
        if proposal is not winner:
            assert isinstance(result, Conflict)
            assert (result.expected, result.actual, result.proposed) == (2, 3, 3)
    assert [each.checkpoint for each in revisions(store, winner.id)] == [*written, winner]


@pytest.mark.parametrize("round_", range(5))
def test_of_concurrent_creations_one_wins(store: CheckpointStore, round_: int) -> None:
    first = initial()
    proposals = [first.model_copy(update={"payload": [number, round_], "event_id": EventId.new()}) for number in range(WRITERS)]
    results = raced(store, proposals, None)
    winner = the_winner(proposals, results)
    assert {result.actual for result in results if isinstance(result, Conflict)} == {0}
    assert [each.checkpoint for each in revisions(store, first.id)] == [winner]


def test_the_same_event_from_many_threads_is_written_once_and_all_get_its_receipt(store: CheckpointStore) -> None:
    first = initial()
    results = raced(store, [first] * WRITERS, None)
    assert {result._replace(duplicate=False) for result in results} == {results[0]._replace(duplicate=False)}
    assert sum(not result.duplicate for result in results) == 1
    assert len(revisions(store, first.id)) == 1


def test_of_many_processes_one_wins_each_revision(store: CheckpointStore, second_address: str) -> None:
    first = stream(store, 1)[0]
    if second_address.startswith("kafka://"):
        wanted, processes = 3, 2
        addresses = [f"{second_address}-{number}" for number in range(processes)]
    else:
        wanted, processes = 40, 4
        addresses = [second_address] * processes
    running = [start(address, race=(first.id, wanted, wanted * processes)) for address in addresses]
    answers = [answer for process in running for answer in finish(process)]
    history = revisions(store, first.id)
    won = {answer[1].event_id: answer[1].revision for answer in answers if answer[0] == "won"}
    lost = [answer for answer in answers if answer[0] == "lost"]
    assert {each.checkpoint.event_id: each.checkpoint.revision for each in history[1:]} == won
    assert len(history) == 1 + wanted * processes
    assert chain_is_intact(history)
    committed = {each.checkpoint.event_id for each in history}
    assert not committed & {event_id for _, event_id, _ in lost}
