"""A writer that is stopped at any boundary while another takes over, and goes on: what it had in hand then is never visible."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGSTOP

import pytest
from kafka import KafkaAdminClient

from eventlog import CheckpointId, Gap, Revision, create_store, open_store
from eventlog.kafka.boundaries import Boundary
from eventlog.kafka.local import LocalBroker
from eventlog.testing import FileJournal, RecordedHistory
from tests.faults.kafka.compaction import HOLD_MS, compact
from tests.faults.kafka.evidence import Topic, hold_against, in_flight, read_topic
from tests.faults.kafka.points import BATCH_EVENTS, COMMITTED, IN_FLIGHT, NOT_COMMITTED, STOPS, Point
from tests.faults.kafka.victims import Victim
from tests.faults.kafka.workload import Errand, Writing
from tests.waiting import eventually

OPEN_AT_THE_BROKER = [point for point in STOPS if point.boundary in (Boundary.ACKNOWLEDGED, Boundary.COMMIT_SENT)]
TRANSACTION_TIMEOUT_MS = 3_000

Stopping = Callable[..., Victim]


@pytest.fixture
def address(cleaning_broker: LocalBroker, topic: str) -> str:
    made = f"kafka://{cleaning_broker.bootstrap}/{topic}"
    create_store(made, partitions=1)
    return made


@pytest.fixture
def stopping(address: str, tmp_path: Path) -> Iterator[Stopping]:
    """Starts a victim, and returns it once it is stopped at its point."""
    victims: list[Victim] = []

    def start(point: Point, **settings: int) -> Victim:
        ids = tuple(CheckpointId.new() for _ in range(BATCH_EVENTS + 2))
        victims.append(Victim(Errand(f"{address}?state={tmp_path / 'zombie-state'}", tmp_path / "zombie", ids, point, SIGSTOP, **settings)))
        victims[0].await_stop()
        return victims[0]

    yield start
    for each in victims:
        each.end()


@pytest.mark.parametrize("point", STOPS, ids=str)
def test_a_zombie_is_never_heard_nor_after_a_compaction(
    point: Point, stopping: Stopping, address: str, cleaning_broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    zombie = stopping(point)
    *ids, filler = zombie.errand.ids
    undecided = in_flight(list(RecordedHistory([tmp_path / "zombie"])))
    with (
        FileJournal.open(tmp_path / "rival", session="rival") as journal,
        open_store(f"{address}?state={tmp_path / 'rival-state'}", actor="rival", timeout=20) as store,
    ):
        rival = Writing(store, journal)
        started = time.monotonic()
        rival.commit(ids[0])
        took_over = time.monotonic() - started
        for each in zombie.errand.ids:
            rival.commit(each)
        zombie.resume()
        zombie.await_end()
        for each in zombie.errand.ids:
            rival.commit(each)
        seen = read_topic(cleaning_broker.bootstrap, topic)
        summary = hold_against(list(RecordedHistory([tmp_path / "zombie", tmp_path / "rival"])), seen)
        committed = _judge(point, undecided, seen)
        compact(cleaning_broker, topic, seen.end, rival, filler)
    left = read_topic(cleaning_broker.bootstrap, topic)
    winners = {each.header.checkpoint_id: each for each in seen.committed if each.header.checkpoint_id != filler}
    kept = [each for each in left.written if each.header.checkpoint_id != filler]
    assert {each.header.checkpoint_id: each for each in kept} == winners, "compaction has kept another record than the winner"
    assert len(kept) == len(winners), "nothing was compacted"
    with open_store(f"{address}?hold_ms={HOLD_MS}&state={tmp_path / 'newcomer-state'}", timeout=20) as store:
        for checkpoint_id in ids:
            gap, last = store.history(checkpoint_id)
            assert isinstance(gap, Gap)
            assert isinstance(last, Revision)
            assert last.checkpoint.event_id == winners[checkpoint_id].header.event_id
            store.compare_and_swap(last.checkpoint.next({}), last.checkpoint.revision)
    sys.stdout.write(f"STOPPED {point}: in flight {len(undecided)}, committed {committed}, aborted {seen.aborted} records, ")
    sys.stdout.write(f"taken over in {took_over:.3f} s; {summary.committed} commits, {summary.conflicts} conflicts\n")


@pytest.mark.parametrize("rivals", [0, 1])
@pytest.mark.parametrize("point", OPEN_AT_THE_BROKER, ids=str)
def test_a_zombie_that_slept_beyond_its_transaction_time_out_tells_the_truth(
    point: Point, rivals: int, stopping: Stopping, address: str, cleaning_broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    zombie = stopping(point, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    undecided = in_flight(list(RecordedHistory([tmp_path / "zombie"])))
    assert len(undecided) == BATCH_EVENTS
    _await_the_end_of_its_transaction(cleaning_broker.bootstrap, f"{topic}-writer-0")
    with (
        FileJournal.open(tmp_path / "rival", session="rival") as journal,
        open_store(f"{address}?state={tmp_path / 'rival-state'}", actor="rival", timeout=20) as store,
    ):
        rival = Writing(store, journal)
        for each in zombie.errand.ids if rivals else ():
            rival.commit(each)
        zombie.resume()
        zombie.await_end()
        for each in zombie.errand.ids:
            rival.commit(each)
    seen = read_topic(cleaning_broker.bootstrap, topic)
    summary = hold_against(list(RecordedHistory([tmp_path / "zombie", tmp_path / "rival"])), seen)
    if rivals:
        _judge(point, undecided, seen)
    else:
        assert seen.event_ids >= set(undecided), "nobody stood in its way"
    sys.stdout.write(f"SLEPT {point}, {rivals} rivals: aborted {seen.aborted} records; {summary}\n")


def _judge(point: Point, undecided: list[str], seen: Topic) -> int:
    """How many of the events that were in flight are visible. Their checkpoints have gone on without them."""
    committed = [event for event in undecided if event in seen.event_ids]
    if IN_FLIGHT[point.boundary] == NOT_COMMITTED:
        assert committed == [], "the zombie's event is visible"
    elif IN_FLIGHT[point.boundary] == COMMITTED:
        assert committed == undecided
        assert len(committed) == BATCH_EVENTS
    return len(committed)


def _await_the_end_of_its_transaction(broker: str, transactional_id: str) -> None:
    """Until the broker has ended by itself what the zombie has left open."""
    admin = KafkaAdminClient(bootstrap_servers=broker)
    try:
        eventually(lambda: admin.describe_transactions([transactional_id])[transactional_id].state.value.startswith("Complete"))
    finally:
        admin.close()
