"""A writer that dies at any boundary: what it acknowledged is there, what it refused is not, what was in flight is there at most once."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from eventlog import Checkpoint, CheckpointId, RunId, create_store, open_store
from eventlog.testing import FileJournal, RecordedHistory
from tests.faults.kafka.evidence import hold_against, in_flight, last_acknowledged, read_topic
from tests.faults.kafka.points import BATCH_EVENTS, COMMITTED, IN_FLIGHT, KILLS, NOT_COMMITTED, Point
from tests.faults.kafka.victims import Victim
from tests.faults.kafka.workload import Errand, Writing

EVERYTHING = 'SELECT * FROM checkpoint_history ORDER BY partition, "offset"'


@pytest.fixture
def victim(request: pytest.FixtureRequest, broker: str, topic: str, tmp_path: Path) -> Iterator[Victim]:
    """A process on its way to its point."""
    address = f"kafka://{broker}/{topic}?state={tmp_path / 'state'}"
    create_store(address, partitions=1)
    ids = tuple(CheckpointId.new() for _ in range(BATCH_EVENTS + 2))
    started = Victim(Errand(address, tmp_path / "victim", ids, request.getfixturevalue("point"), SIGKILL))
    try:
        yield started
    finally:
        started.end()


@pytest.mark.parametrize("point", KILLS, ids=str)
def test_a_writer_killed_at_any_boundary_loses_nothing_and_claims_nothing_false(
    point: Point, victim: Victim, broker: str, topic: str, tmp_path: Path
) -> None:
    victim.await_death()
    errand = victim.errand
    before = list(RecordedHistory([errand.history]))
    undecided = in_flight(before)
    with FileJournal.open(tmp_path / "heir", session="heir") as journal, open_store(errand.address, actor="heir", timeout=20) as store:
        heir = Writing(store, journal)
        for checkpoint_id, revision in last_acknowledged(before).items():
            assert heir.recorder.load(checkpoint_id).revision >= revision, "an open transaction of the dead hides what it acknowledged"
        started = time.monotonic()
        heir.commit(errand.ids[-1])  # never in flight here
        took_over, settled = time.monotonic() - started, time.monotonic_ns()
        for each in before:
            if each.event_id in undecided:
                place = Checkpoint.initial(CheckpointId(each.checkpoint_id or ""), RunId.new(), "test.victim", 1, {})
                receipt = heir.recorder.resolve(place.model_copy(update={"revision": each.proposed, "event_id": each.event_id}))
                assert heir.recorder.resolve(each.event_id) == receipt
        for checkpoint_id in errand.ids:
            heir.commit(checkpoint_id)
        inherited = store.catalog.sql(EVERYTHING).rows
        store.catalog.rebuild()
        assert store.catalog.sql(EVERYTHING).rows == inherited, "the projection that was left behind is not what the log says"
    seen = read_topic(broker, topic)
    hold_against(list(RecordedHistory([errand.history, tmp_path / "heir"], ended={errand.history: settled})), seen)
    committed = [event for event in undecided if event in seen.event_ids]
    if IN_FLIGHT[point.boundary] == NOT_COMMITTED:
        assert committed == [], "committed before the commit was asked for"
    elif IN_FLIGHT[point.boundary] == COMMITTED:
        assert committed == undecided, "the coordinator had said that it was committed"
    sys.stdout.write(f"KILLED {point}: in flight {len(undecided)}, committed {len(committed)}, aborted {seen.aborted} records, ")
    sys.stdout.write(f"acknowledged {sum(each.outcome == 'committed' for each in before)}, taken over in {took_over:.3f} s\n")
