"""Another topic under the same name, a log with its beginning cut off, partitions added, somebody else's projection: refused by name."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eventlog import (
    Checkpoint,
    CheckpointStore,
    ConfigurationError,
    NotFound,
    OutcomeUnknown,
    Position,
    Unavailable,
    create_store,
    open_store,
)
from eventlog.errors import Busy, CheckpointError
from eventlog.kafka.log import KafkaLog
from eventlog.kafka.tail import poll
from eventlog.projection_files import PROJECTION_FILE
from projections.identity import FORMAT_VERSION
from tests.faults.topic.conftest import OpenTopic
from tests.faults.topic.topics import Topic
from tests.kafka_log.samples import initial
from tests.waiting import eventually


def records_of(store: CheckpointStore) -> int:
    return sum(len(records) for records, _ in store.log.read(Position()))


def committed(store: CheckpointStore, count: int, *, partition: int = 0) -> Checkpoint:
    """A checkpoint with so many revisions in one partition."""
    checkpoint = initial(partition=partition)
    store.compare_and_swap(checkpoint, None)
    for revision in range(1, count):
        checkpoint = checkpoint.next({"revision": revision})
        store.compare_and_swap(checkpoint, revision - 1)
    return checkpoint


class TestTopicMadeAgain:
    def test_a_running_store_stops_by_name_and_writes_nothing_to_the_new_topic(self, made: Topic, opening: OpenTopic) -> None:
        old = opening()
        checkpoint = committed(old, 3)
        made.make_again()
        refusals: list[CheckpointError] = []

        def stopped() -> bool:
            try:
                old.compare_and_swap(old.load(checkpoint.id, at_least=Position()).next({}), 2, timeout=5)
            except CheckpointError as error:
                refusals.append(error)
            return isinstance(refusals[-1], ConfigurationError)

        eventually(stopped)
        assert all(isinstance(each, ConfigurationError | OutcomeUnknown | Unavailable) for each in refusals)
        assert "deleted and made again" in str(refusals[-1])
        with pytest.raises(ConfigurationError, match="deleted and made again"):
            old.load(checkpoint.id)
        new = opening("state of the new topic")
        assert records_of(new) == 0, "heads of the old topic were used to write to the new one"
        with pytest.raises(NotFound):
            new.load(checkpoint.id)
        new.compare_and_swap(checkpoint.model_copy(update={"revision": 0}), None)

    def test_a_store_that_only_reads_stops_by_name_and_shows_nothing_of_the_new_topic(
        self, made: Topic, opening: OpenTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The new one has records where the old one's next would stand, so that no offset is out of range."""
        old = opening()
        checkpoint = committed(old, 1)
        assert isinstance(old.log, KafkaLog)
        assert old.log._tail is not None
        slow, go_on = old.log._tail._thread, threading.Event()

        def poll_once_let_go(*arguments: Any) -> Any:
            if threading.current_thread() is slow:
                go_on.wait(60)
            return poll(*arguments)

        monkeypatch.setattr("eventlog.kafka.tail.poll", poll_once_let_go)
        made.make_again()
        new = opening("state of the new topic")
        others = committed(new, 10)
        go_on.set()

        def refused() -> bool:
            try:
                old.load(checkpoint.id, at_least=Position())
            except ConfigurationError as error:
                return "deleted and made again" in str(error)
            return False

        eventually(refused)
        with pytest.raises(ConfigurationError, match="deleted and made again"):
            old.load(others.id)

    def test_an_owner_that_has_not_noticed_yet_commits_nothing_to_the_new_topic(
        self, made: Topic, opening: OpenTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its tail is kept from noticing, so that only the writer's own steps are left: the place that the records got, the take-over."""
        old = opening()
        checkpoint = committed(old, 3)
        monkeypatch.setattr("eventlog.kafka.tail.require_topic", lambda *_: None)
        assert isinstance(old.log, KafkaLog)
        assert old.log._tail is not None
        old.log._tail.stop()
        made.make_again()
        with pytest.raises((ConfigurationError, OutcomeUnknown)):
            old.compare_and_swap(checkpoint.next({}), 2, timeout=20)
        new = opening("state of the new topic")
        assert records_of(new) == 0
        committed(new, 1)

    def test_between_runs_the_projection_of_the_old_topic_is_refused_and_left_alone(
        self, made: Topic, opening: OpenTopic, tmp_path: Path
    ) -> None:
        with opening("kept") as old:
            committed(old, 2)
        before = (tmp_path / "kept" / PROJECTION_FILE).read_bytes()
        made.make_again()
        with pytest.raises(ConfigurationError, match="has store_id") as caught:
            opening("kept")
        assert "state=DIR" in caught.value.hint
        assert (tmp_path / "kept" / PROJECTION_FILE).read_bytes() == before


class TestPositionOutsideTheLog:
    def test_a_store_whose_next_record_was_deleted_does_not_open(self, made: Topic, opening: OpenTopic) -> None:
        with opening("behind") as store:
            checkpoint = committed(store, 2)
        other = opening("ahead")
        end = other.compare_and_swap(checkpoint.next({}), 1).position.next_offset(0)
        other.compare_and_swap(initial(partition=0), None)
        made.delete_records(0, before=end)
        with pytest.raises(ConfigurationError, match=f"partition 0 begins at {end}, and what lay before it was deleted"):
            opening("behind")
        with pytest.raises(ConfigurationError, match="it from 0 on"):
            opening("without any projection")
        assert other.load(checkpoint.id).revision == 2, "who has read it goes on"
        other.compare_and_swap(other.load(checkpoint.id).next({}), 2)
        with pytest.raises(ConfigurationError, match="was deleted"):
            other.catalog.rebuild()
        assert other.load(checkpoint.id).revision == 3

    def test_a_store_that_has_read_more_than_there_is_does_not_open(self, opening: OpenTopic, tmp_path: Path) -> None:
        with opening("ahead") as store:
            end = committed(store, 2).revision + store.position().next_offset(0)
        with duckdb.connect(str(tmp_path / "ahead" / PROJECTION_FILE)) as file:
            file.execute("UPDATE positions SET next_offset = ? WHERE partition = 0", [end + 100])
        with pytest.raises(ConfigurationError, match=f"has read partition 0 up to {end + 100}, but it ends at"):
            opening("ahead")


class TestPartitionsAdded:
    def test_a_running_store_keeps_to_the_number_that_it_began_with(self, made: Topic, opening: OpenTopic) -> None:
        store = opening()
        checkpoints = [committed(store, 1, partition=number % 2) for number in range(12)]
        made.grow(5)
        for each in checkpoints:
            store.compare_and_swap(each.next({"after": "partitions were added"}), 0)
            assert store.load(each.id).revision == 1

    def test_between_runs_it_is_refused_with_the_old_projection_and_without_any(self, made: Topic, opening: OpenTopic) -> None:
        with opening("kept") as store:
            for number in range(12):
                committed(store, 1, partition=number % 2)
        made.grow(5)
        with pytest.raises(ConfigurationError, match="partitions 2, expected partitions 5"):
            opening("kept")
        with pytest.raises(ConfigurationError, match="has 5 partitions now and had fewer"):
            opening("fresh")


class TestSomebodyElsesProjection:
    def test_the_state_directory_of_another_topic_is_refused_while_it_is_in_use_and_afterwards(
        self, made: Topic, opening: OpenTopic, tmp_path: Path
    ) -> None:
        other = Topic(broker=made.broker, name=f"{made.name}-other", partitions=2, hold_ms=made.hold_ms)
        create_store(other.address, partitions=2)
        with opening("shared") as store:
            checkpoint = committed(store, 1)
            with pytest.raises(Busy, match="in use by process"):
                open_store(f"{other.address}&state={tmp_path / 'shared'}")
            store.compare_and_swap(checkpoint.next({}), 0)
        with pytest.raises(ConfigurationError, match="has store_id"):
            open_store(f"{other.address}&state={tmp_path / 'shared'}")
        assert opening("shared").load(checkpoint.id).revision == 1

    def test_the_directory_of_an_embedded_store_is_refused_and_left_alone(self, opening: OpenTopic, tmp_path: Path) -> None:
        create_store(tmp_path / "embedded")
        checkpoint = initial()
        with open_store(tmp_path / "embedded") as embedded:
            embedded.compare_and_swap(checkpoint, None)
            embedded.list()
        before = (tmp_path / "embedded" / PROJECTION_FILE).read_bytes()
        with pytest.raises(ConfigurationError, match="has store_id"):
            opening("embedded")
        assert (tmp_path / "embedded" / PROJECTION_FILE).read_bytes() == before

    def test_a_projection_of_a_newer_version_is_refused_with_what_to_do_and_left_alone(self, opening: OpenTopic, tmp_path: Path) -> None:
        with opening("newer") as store:
            checkpoint = committed(store, 2)
        path = tmp_path / "newer" / PROJECTION_FILE
        with duckdb.connect(str(path)) as file:
            file.execute("UPDATE meta SET format_version = format_version + 1")
            file.execute("ALTER TABLE meta RENAME COLUMN store_id TO whose")  # a newer version may name things anew
        before = path.read_bytes()
        with pytest.raises(
            ConfigurationError, match=f"format version {FORMAT_VERSION + 1}, expected format version {FORMAT_VERSION}"
        ) as caught:
            opening("newer")
        assert "Keep that file" in caught.value.hint
        assert path.read_bytes() == before
        assert opening("a new one").load(checkpoint.id).revision == 1
