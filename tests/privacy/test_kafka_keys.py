"""What is particular to keys in a topic: its settings, what makes a store there encrypted, and rotation against destruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaProducer

from eventlog import ConfigurationError, Corrupted, Quarantined, create_store, open_store
from eventlog.address import KafkaAddress, parse_address
from eventlog.codec import decode
from eventlog.doctor import State, examine
from eventlog.findings import FaultKind
from eventlog.kafka.client import admin
from eventlog.kafka.keys import KafkaKeys
from eventlog.kafka.keys_topic import KeysTopicSpec, check_topics, create_topics, keys_address, open_key_table
from eventlog.kafka.topic import create_topic
from eventlog.privacy.keys import WrappedKey, new_key_id
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.verification import verify
from tests.kafka_log.samples import event_of, write_foreign
from tests.privacy.conftest import OpenStore
from tests.store.samples import initial, outcome, stream

pytestmark = pytest.mark.broker


@pytest.fixture
def kind() -> str:
    return "kafka"


@pytest.fixture
def where(address: str) -> KafkaAddress:
    found = parse_address(address)
    assert isinstance(found, KafkaAddress)
    return found


@pytest.fixture
def tables(where: KafkaAddress) -> Iterator[tuple[KafkaKeys, KafkaKeys]]:
    one, other = open_key_table(where), open_key_table(where)
    assert one is not None
    assert other is not None
    yield one, other
    one.close()
    other.close()


def key(checkpoint_id: str) -> WrappedKey:
    return WrappedKey(checkpoint_id, new_key_id(checkpoint_id), "default", "1", b"w" * 60, 0)


def test_a_rotation_that_has_read_before_cannot_bring_a_destroyed_key_back(tables: tuple[KafkaKeys, KafkaKeys]) -> None:
    rotator, eraser = tables
    gone, stays = key("a"), key("b")
    for each in (gone, stays):
        rotator.put(each)
    assert rotator.replace([(each, each._replace(version="2")) for each in (gone, stays)]) == 2  # and has the topic's producer from now on
    assert eraser.get("a", gone.key_id) == gone._replace(version="2")
    assert eraser.destroy("a") == 1
    assert eraser.destroy("a") == 0
    again = [(each._replace(version="2"), each._replace(version="3")) for each in (gone, stays)]
    assert rotator.replace(again) == 1
    for table in tables:
        assert table.of("a") == []
        assert table.of("b") == [stays._replace(version="3")]
    assert {each.checkpoint_id for each in rotator.all()} == {"store", "b"}


def test_of_two_that_rotate_at_once_none_undoes_the_other(tables: tuple[KafkaKeys, KafkaKeys]) -> None:
    one, other = tables
    first = key("a")
    one.put(first)
    assert one.replace([(first, first._replace(version="2"))]) == 1
    assert other.replace([(first, first._replace(version="x"))]) == 0
    assert other.replace([(first._replace(version="2"), first._replace(version="3"))]) == 1
    assert one.replace([(first._replace(version="2"), first._replace(version="4"))]) == 0
    assert one.of("a") == [first._replace(version="3")]


def test_a_topic_of_keys_with_other_settings_is_refused_listing_them(where: KafkaAddress, address: str, tmp_path: Path) -> None:
    from kafka.admin import ConfigResource

    client = admin(where)
    try:
        client.alter_configs(
            [ConfigResource("TOPIC", keys_address(where).topic, {"cleanup.policy": "delete", "min.compaction.lag.ms": "9"})]
        )
    finally:
        client.close()
    with pytest.raises(ConfigurationError) as raised:
        open_store(f"{address}?state={tmp_path / 'state'}")
    assert any("cleanup.policy is delete" in each for each in raised.value.differences)
    assert any(f"{where.topic}.keys" in each for each in check_topics(where))
    checks = {check.check: check for check in examine(f"{address}?state={tmp_path / 'state'}")}
    assert checks["topic"].state is State.FAIL


def test_a_store_whose_topic_of_keys_is_gone_is_not_taken_for_one_in_clear_text(
    opening: OpenStore, where: KafkaAddress, address: str, tmp_path: Path
) -> None:
    store = opening()
    stream(store, 1)
    store.close()
    client = admin(where)
    try:
        client.delete_topics([keys_address(where).topic])
    finally:
        client.close()
    with pytest.raises(ConfigurationError, match="topic of keys is gone"):
        open_store(f"{address}?state={tmp_path / 'fresh'}")
    with pytest.raises(ConfigurationError, match="encrypted"):  # its own projection knows
        open_store(f"{address}?state={tmp_path / 'state-0'}")


def test_a_log_is_made_neither_over_another_nor_over_keys_that_are_left(where: KafkaAddress, opening: OpenStore, key_file: KeyFile) -> None:
    with pytest.raises(ConfigurationError, match="already exists"):
        create_topics(where, partitions=1, replication=1, encryption=key_file)
    store = opening()
    stream(store, 1)
    store.close()
    client = admin(where)
    try:
        client.delete_topics([where.topic])
    finally:
        client.close()
    for encryption in (None, key_file):
        with pytest.raises(ConfigurationError, match="a log that was here before"):
            create_topics(where, partitions=1, replication=1, encryption=encryption)


def test_what_a_process_left_that_died_making_a_store_is_used(broker: str, topic: str, tmp_path: Path) -> None:
    where = KafkaAddress((broker,), topic)
    create_topic(keys_address(where), spec=KeysTopicSpec(), partitions=1, replication=1)
    provider = KeyFile(path=tmp_path / "key.json")
    create_topics(where, partitions=1, replication=1, encryption=provider)
    open_store(replace(where, settings={"state": str(tmp_path / "state")})).close()


def test_an_event_in_clear_text_from_somebody_else_is_quarantined_by_name(opening: OpenStore, where: KafkaAddress) -> None:
    store = opening()
    (ours,) = stream(store, 1)
    foreign = initial({"text": "in clear"})
    write_foreign(where.servers[0], where.topic, (0, foreign.id.encode(), event_of(foreign)))
    store.position()  # it has been seen
    refused = outcome(store, foreign, None)
    assert isinstance(refused, Quarantined)
    assert "in clear text, and this store is encrypted" in refused.reason
    assert [each.id for each in store.list().items] == [ours.id]
    assert verify(store).fault_counts == {FaultKind.WRONG_ENCRYPTION: 1}


def test_a_sealed_event_in_a_store_in_clear_text_is_quarantined_by_name(opening: OpenStore, where: KafkaAddress, tmp_path: Path) -> None:
    (sealed,) = stream(opening(), 1)
    record = opening().log.revision(sealed.id, 0)
    assert record is not None
    assert record.value is not None
    assert decode(record.value).header.encryption is not None
    plain = replace(where, topic=f"{where.topic}-plain", settings={"state": str(tmp_path / "plain")})
    create_store(plain, partitions=1, replication=1)
    with open_store(plain) as store:
        stream(store, 1)
        write_foreign(plain.servers[0], plain.topic, (0, sealed.id.encode(), record.value))
        store.position()
        refused = outcome(store, sealed, None)
        assert isinstance(refused, Quarantined)
        assert "this store is not encrypted" in refused.reason


def test_a_record_that_is_no_key_is_reported_and_not_passed_over(where: KafkaAddress, address: str, tmp_path: Path) -> None:
    producer = KafkaProducer(bootstrap_servers=list(where.servers))
    try:
        producer.send(keys_address(where).topic, key=b"a/b", value=b"{}").get(timeout=10)
    finally:
        producer.close(timeout=5)
    with pytest.raises(Exception, match="topic of keys") as raised:
        open_store(f"{address}?state={tmp_path / 'state'}")
    assert isinstance(raised.value, Corrupted) or "format" in str(raised.value)
