"""A right that is taken away while the store is open, and given back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from eventlog import CheckpointId, CheckpointStore, MissingRight, open_store
from eventlog.errors import CheckpointError
from eventlog.kafka.rights import KafkaRole, Operation, Resource, Right, rights_of
from tests.kafka_log.samples import initial
from tests.security.secured import SecuredBroker
from tests.security.test_rights import Store
from tests.waiting import eventually

_SOON = 15.0  # seconds: half of what a call waits for a broker that is away


def outcome(store: CheckpointStore, checkpoint_id: str) -> str:
    try:
        store.load(checkpoint_id)
    except CheckpointError as error:
        return type(error).__name__
    return "loaded"


@pytest.mark.parametrize("resource", [Resource.TOPIC, Resource.TRANSACTIONAL_ID])
def test_a_writer_that_may_write_no_more_says_so_and_goes_on_when_it_may_again(
    secured: SecuredBroker, topic: str, tmp_path: Path, resource: Resource
) -> None:
    made = Store(secured, topic, tmp_path)
    made.make()
    rights = rights_of(KafkaRole.WRITER, topic)
    secured.grant(made.user, rights)
    (right,) = [each for each in rights if each.resource is resource and each.operation is Operation.WRITE]
    with open_store(made.outside()) as store, open_store(made.inside()) as watching:
        store.compare_and_swap(initial(), None)
        secured.revoke(made.user, [right])
        refused = initial()
        begun = time.monotonic()
        with pytest.raises(MissingRight) as caught:
            store.compare_and_swap(refused, None)
        assert time.monotonic() - begun < _SOON
        assert (caught.value.operation, caught.value.resource) == ("Write", resource)
        assert outcome(watching, refused.id) == "NotFound", "what was refused is not written"
        secured.grant(made.user, [right])
        assert store.compare_and_swap(refused, None).revision == 0
        assert outcome(watching, refused.id) == "loaded"


def test_many_writers_at_once_are_each_told(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    made = Store(secured, topic, tmp_path)
    made.make()
    rights = rights_of(KafkaRole.WRITER, topic)
    secured.grant(made.user, rights)
    told: list[str] = []
    with open_store(made.outside()) as store:
        store.compare_and_swap(initial(), None)
        secured.revoke(made.user, [Right(Resource.TOPIC, topic, Operation.WRITE)])

        def write() -> None:
            try:
                store.compare_and_swap(initial(), None)
            except CheckpointError as error:
                told.append(type(error).__name__)

        callers = [threading.Thread(target=write) for _ in range(20)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(timeout=30)
    assert told == ["MissingRight"] * 20


def test_a_reader_that_may_read_no_more_says_so_and_misses_nothing_when_it_may_again(
    secured: SecuredBroker, topic: str, tmp_path: Path
) -> None:
    made = Store(secured, topic, tmp_path)
    made.make()
    secured.grant(made.user, rights_of(KafkaRole.READER, topic))
    right = Right(Resource.TOPIC, topic, Operation.READ)
    with open_store(made.inside()) as writer, open_store(made.outside()) as reader:
        before = initial()
        writer.compare_and_swap(before, None)
        assert outcome(reader, before.id) == "loaded"
        position = reader.position()
        secured.grant(made.user, [right._replace(operation=Operation.DESCRIBE)])
        secured.revoke(made.user, [right])
        unseen: list[CheckpointId] = []

        def is_refused() -> bool:
            meanwhile = initial()
            writer.compare_and_swap(meanwhile, None)
            unseen.append(meanwhile.id)
            return outcome(reader, meanwhile.id) == "MissingRight"

        eventually(is_refused)  # a fetch that was let in before is answered yet
        begun = time.monotonic()
        with pytest.raises(MissingRight) as caught:
            reader.load(unseen[-1])
        assert time.monotonic() - begun < _SOON
        assert (caught.value.operation, caught.value.resource, caught.value.name) == ("Read", "Topic", topic)
        with pytest.raises(MissingRight):
            next(reader.subscribe(position, idle_timeout=30))
        secured.grant(made.user, [right])
        eventually(lambda: outcome(reader, unseen[-1]) == "loaded")
        assert {outcome(reader, each) for each in unseen} == {"loaded"}


def test_a_reader_that_may_not_even_see_the_topic_any_more_says_so(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    made = Store(secured, topic, tmp_path)
    made.make()
    secured.grant(made.user, rights_of(KafkaRole.READER, topic))
    right = Right(Resource.TOPIC, topic, Operation.READ)
    with open_store(made.outside()) as reader:
        secured.revoke(made.user, [right])
        begun = time.monotonic()
        with pytest.raises(MissingRight) as caught:
            reader.load(initial().id)
        assert time.monotonic() - begun < _SOON
        assert caught.value.name == topic
        secured.grant(made.user, [right])
        eventually(lambda: outcome(reader, initial().id) == "NotFound")
