"""Clocks that jump: the order and the past are the log's own, and time-outs are nobody's wall clock."""

from __future__ import annotations

import itertools
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from eventlog import Checkpoint, CheckpointStore, Conflict, NotFound, OutcomeUnknown, Position, Revision
from eventlog.kafka import client
from tests.faults.topic.conftest import OpenTopic
from tests.faults.topic.topics import Topic
from tests.kafka_log.samples import event_of, initial

# Milliseconds behind the first record; the log's clock is their running maximum.
JUMPS = (0, 10_000, 5_000, 20_000, 1_000, 20_000, 30_000, 0, 29_999, 40_000)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def exists_at(store: CheckpointStore, checkpoint: Checkpoint, moment: datetime) -> bool:
    try:
        return store.load(checkpoint.id, at=moment).id == checkpoint.id
    except NotFound:
        return False


def require_past_by_running_maximum(store: CheckpointStore, checkpoints: list[Checkpoint]) -> int:
    """Every recorded time, and the millisecond before it; returns how often the log's clock stood still."""
    placed = {(record.key or b"").decode(): record.recorded_at for records, _ in store.log.read(Position()) for record in records}
    recorded = [placed[each.id] for each in checkpoints]
    running = list(itertools.accumulate(recorded, max))
    for millis in sorted({each - less for each in recorded for less in (0, 1)}):
        moment = _EPOCH + timedelta(milliseconds=millis)
        known = [exists_at(store, each, moment) for each in checkpoints]
        assert known == [reached <= millis for reached in running], moment
    return sum(one > other for one, other in itertools.pairwise(recorded))


def test_the_past_is_told_by_the_running_maximum_of_the_logs_clock(made: Topic, opening: OpenTopic) -> None:
    """Times as an administrator's mistake or a broker's clock makes them: the topic takes the writer's for a while."""
    store = opening()
    made.alter({"message.timestamp.type": "CreateTime"})
    checkpoints = [initial(partition=0) for _ in JUMPS]
    beginning = int(time.time() * 1000) - 60_000
    owner = made.producer(made.transactional_id(0))
    for checkpoint, jump in zip(checkpoints, JUMPS, strict=True):
        owner.begin_transaction()
        owner.send(made.name, key=checkpoint.id.encode(), value=event_of(checkpoint), partition=0, timestamp_ms=beginning + jump).get(10)
        owner.commit_transaction()
    client.discard(owner)
    made.alter({"message.timestamp.type": "LogAppendTime"})
    assert require_past_by_running_maximum(store, checkpoints) == 3
    store.catalog.rebuild()
    assert require_past_by_running_maximum(store, checkpoints) == 3
    assert require_past_by_running_maximum(opening(), checkpoints) == 3


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """This process's wall clock shows another day at every look."""
    actual, looks = time.time, itertools.cycle((0.0, -86_400.0, 86_400.0 * 30, -86_400.0 * 365))
    shown: list[float] = []

    def look() -> float:
        shown.append(actual() + next(looks))
        return shown[-1]

    monkeypatch.setattr(time, "time", look)
    return shown


def test_a_writer_whose_clock_jumps_commits_conflicts_and_waits_as_ever(made: Topic, opening: OpenTopic, jumping: list[float]) -> None:
    store, other = opening(), opening()
    checkpoint = initial(partition=0)
    store.compare_and_swap(checkpoint, None)
    for number in range(1, 6):
        following = checkpoint.next({"number": number})
        store.compare_and_swap(following, number - 1)
        with pytest.raises(Conflict):
            other.compare_and_swap(checkpoint.next({"late": number}), number - 1)
        checkpoint = following
    assert [each.checkpoint.revision for each in store.history(checkpoint.id) if isinstance(each, Revision)] == list(range(6))
    assert store.catalog.sql("SELECT reason FROM quarantined_records").rows == []

    blocker = made.producer(f"{made.name}-somebody-else", transaction_timeout_ms=8_000)
    blocker.begin_transaction()
    never = initial(partition=0)
    blocker.send(made.name, key=never.id.encode(), value=event_of(never), partition=0).get(10)
    client.discard(blocker)
    started = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        store.compare_and_swap(checkpoint.next({}), 5, timeout=2)
    waited = time.monotonic() - started
    assert 1.9 < waited < 6, "a time-out of 2 s by a clock that nobody sets"
    assert len(jumping) >= 8, "nobody looked at the clock"
    sys.stdout.write(f"{len(jumping)} looks at a jumping clock; a time-out of 2 s took {waited:.2f} s\n")
