"""The topic is made only on request and checked exactly whenever a store opens."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient

from eventlog import ConfigurationError, InvalidRequest, NotAStore, create_store, open_store
from eventlog.address import KafkaAddress
from eventlog.kafka.keys_topic import check_topics
from eventlog.kafka.topic import DAY_MS, TopicSpec, TopicState, create_topic, differences, partition_of

RIGHT = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "min.compaction.lag.ms": "604800000",
    "max.compaction.lag.ms": "1209600000",
    "delete.retention.ms": "86400000",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "max.message.bytes": "8650752",
}


def state(**settings: str) -> TopicState:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return TopicState("cluster", "topic", 4, 3, {**RIGHT, **named}, "true")


def test_the_settings_are_these() -> None:
    assert TopicSpec().settings(replication=3) == RIGHT
    assert TopicSpec().settings(replication=1) == {**RIGHT, "min.insync.replicas": "1"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", "compact,delete"),
        ("message.timestamp.type", "CreateTime"),
        ("min.compaction.lag.ms", "0"),
        ("max.compaction.lag.ms", "9223372036854775807"),
        ("delete.retention.ms", str(DAY_MS - 1)),
        ("min.insync.replicas", "1"),
        ("unclean.leader.election.enable", "true"),
        ("max.message.bytes", "1048588"),
    ],
)
def test_each_wrong_setting_is_a_difference(name: str, wrong: str) -> None:
    found = differences(TopicState("cluster", "topic", 4, 3, {**RIGHT, name: wrong}, "true"), TopicSpec())
    assert found == [f"{name} is {wrong}; it must be {RIGHT[name]}"]


def test_brokers_that_do_not_verify_transactions_are_a_difference() -> None:
    found = differences(TopicState("cluster", "topic", 4, 3, RIGHT, "false"), TopicSpec())
    assert found == ["transaction.partition.verification.enable is false on the broker; it must be true"]


def test_a_topic_that_is_right_has_no_difference() -> None:
    assert differences(state(), TopicSpec()) == []


def test_opening_a_wrong_topic_is_refused_listing_every_difference(broker: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1, "configs": {"cleanup.policy": "delete"}}})
    admin.close()
    with pytest.raises(ConfigurationError) as caught:
        open_store(f"kafka://{broker}/{topic}")
    names = [difference.split(" is ")[0] for difference in caught.value.differences]
    assert "cleanup.policy" in names
    assert "min.compaction.lag.ms" in names
    assert "max.compaction.lag.ms" in names
    for difference in caught.value.differences:
        assert difference in str(caught.value)
    assert caught.value.differences == tuple(check_topics(KafkaAddress((broker,), topic)))


def test_opening_makes_no_topic(broker: str, topic: str) -> None:
    for _ in range(2):
        with pytest.raises(NotAStore, match=topic):
            open_store(f"kafka://{broker}/{topic}")


def test_a_topic_is_made_once(broker: str, topic: str) -> None:
    create_store(f"kafka://{broker}/{topic}", partitions=1)
    assert check_topics(KafkaAddress((broker,), topic)) == []
    with pytest.raises(ConfigurationError, match="already exists"):
        create_store(f"kafka://{broker}/{topic}", partitions=1)


@pytest.mark.parametrize(("partitions", "replication"), [(0, None), (1001, None), (True, None), (1, 0), (1, 11)])
def test_counts_out_of_range_are_refused(partitions: int, replication: int | None) -> None:
    with pytest.raises(InvalidRequest):
        create_topic(KafkaAddress(("127.0.0.1:1",), "orders"), partitions=partitions, replication=replication)


def test_more_copies_than_brokers_are_refused_in_words(broker: str, topic: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be made.*[Rr]eplication"):
        create_store(f"kafka://{broker}/{topic}", partitions=1, replication=3)


def test_a_checkpoint_keeps_its_partition_for_ever() -> None:
    """Golden: another function would scatter the revisions of a checkpoint over partitions."""
    ids = ["0197a0b0-0000-7000-8000-000000000001", "0197a0b0-0000-7000-8000-000000000002", "7d8f3b1e-5a44-4b57-9d6d-1f6a2b3c4d5e"]
    assert [partition_of(each, 4) for each in ids] == [3, 1, 0]
    assert [partition_of(each, 12) for each in ids] == [7, 5, 4]
