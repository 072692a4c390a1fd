"""Promise 1 among processes; among threads it is in the contract."""

from __future__ import annotations

from eventlog import CheckpointStore
from tests.store.other_process import finish, start
from tests.store.samples import chain_is_intact, revisions, stream


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
