"""A writer that was idle for longer than Kafka remembers it: the first commit afterwards is answered truthfully, and nothing is twice."""

from __future__ import annotations

import sys

import pytest

from eventlog import Checkpoint, CheckpointStore, Conflict, Revision
from eventlog.kafka.log import KafkaLog
from tests.faults.topic.conftest import OpenTopic
from tests.faults.topic.topics import Topic
from tests.kafka_log.samples import initial
from tests.waiting import eventually


def takeovers(store: CheckpointStore) -> int:
    assert isinstance(store.log, KafkaLog)
    return store.log.ownership.takeovers


def history(store: CheckpointStore, checkpoint: Checkpoint) -> list[str]:
    return [each.checkpoint.event_id for each in store.history(checkpoint.id) if isinstance(each, Revision)]


@pytest.fixture
def idle(made: Topic, opening: OpenTopic) -> tuple[CheckpointStore, Checkpoint]:
    """A store that owns partition 0, and the one checkpoint that it has committed there."""
    store = opening(timeout=20)
    checkpoint = initial(partition=0)
    store.compare_and_swap(checkpoint, None)
    assert made.knows_producers(0)
    assert made.knows_writer(0)
    return store, checkpoint


def test_a_writer_whose_sequence_numbers_were_forgotten_goes_on(made: Topic, idle: tuple[CheckpointStore, Checkpoint]) -> None:
    store, checkpoint = idle
    eventually(lambda: not made.knows_producers(0))
    following = checkpoint.next({"after": "the producer id expired"})
    assert store.compare_and_swap(following, 0).duplicate is False
    assert store.compare_and_swap(following, 0).duplicate is True
    assert history(store, checkpoint) == [checkpoint.event_id, following.event_id]


def test_a_writer_whose_transactional_id_was_forgotten_takes_over_again_and_commits_once(
    made: Topic, idle: tuple[CheckpointStore, Checkpoint], opening: OpenTopic
) -> None:
    store, checkpoint = idle
    before = takeovers(store)
    eventually(lambda: not made.knows_writer(0))
    following = checkpoint.next({"after": "the transactional id expired"})
    assert store.compare_and_swap(following, 0).revision == 1
    assert takeovers(store) > before, "an expired producer cannot have committed"
    assert history(store, checkpoint) == history(opening(), checkpoint) == [checkpoint.event_id, following.event_id]


def test_a_forgotten_writer_reads_what_another_one_wrote_meanwhile_before_it_judges(
    made: Topic, idle: tuple[CheckpointStore, Checkpoint], opening: OpenTopic
) -> None:
    """After the expiry the other writer gets a new producer id, so that no epoch fences the first one: only the coordinator does."""
    store, checkpoint = idle
    eventually(lambda: not made.knows_writer(0))
    other = opening(timeout=20)
    theirs = checkpoint.next({"by": "the other"})
    other.compare_and_swap(theirs, 0)
    before = takeovers(store)
    with pytest.raises(Conflict) as caught:
        store.compare_and_swap(checkpoint.next({"by": "the forgotten"}), 0)
    assert caught.value.actual == 1
    ours = store.load(checkpoint.id).next({"by": "the forgotten, now informed"})
    store.compare_and_swap(ours, 1)
    assert history(store, checkpoint) == [checkpoint.event_id, theirs.event_id, ours.event_id]
    sys.stdout.write(f"take-overs after the expiry: {takeovers(store) - before}\n")


def test_expiries_again_and_again_lose_nothing_and_repeat_nothing(made: Topic, idle: tuple[CheckpointStore, Checkpoint]) -> None:
    store, checkpoint = idle
    committed = [checkpoint]
    for number in range(2):
        eventually(lambda: not made.knows_writer(0))
        for _ in range(3):
            committed.append(committed[-1].next({"round": number}))
            store.compare_and_swap(committed[-1], committed[-1].revision - 1)
    assert history(store, checkpoint) == [each.event_id for each in committed]
