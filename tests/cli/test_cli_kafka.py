"""topic create and check against a real broker; what is said of a broker that does not run."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command_line import inside


def test_a_topic_is_created_once_and_is_as_it_must_be(broker: str, topic: str) -> None:
    address = f"kafka://{broker}/{topic}"
    missing = inside("topic", "check", "--store", address)
    assert missing.code == 15
    assert topic in missing.err
    made = inside("topic", "create", "--store", address, "--partitions", "3", "--format", "json").json()
    assert made == {"topic": topic, "servers": broker, "partitions": 3}
    assert inside("topic", "check", "--store", address).code == 0
    assert inside("topic", "create", "--store", address).code == 15


def test_every_difference_of_a_foreign_topic_is_listed(broker: str, topic: str) -> None:
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=broker)
    try:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1, "configs": {"cleanup.policy": "delete"}}})
    finally:
        admin.close()
    run = inside("topic", "check", "--store", f"kafka://{broker}/{topic}", "--format", "csv")
    assert run.code == 1
    assert "cleanup.policy" in run.out
    assert len(run.out.splitlines()) > 2
    doctor = inside("doctor", "--store", f"kafka://{broker}/{topic}")
    assert doctor.code == 1
    assert "cleanup.policy" in doctor.out


def test_the_rights_that_a_role_needs_are_listed_without_asking_a_broker() -> None:
    address = "kafka://broker.invalid:9092/orders?sasl_plain_password=hunter2"
    rows = inside("topic", "acls", address, "--of", "reader", "--format", "json").json()
    assert [(row["resource"], row["name"], row["operation"]) for row in rows] == [
        ("Topic", "orders", "Read"),
        ("Topic", "orders", "DescribeConfigs"),
        ("Topic", "orders.keys", "Describe"),
        ("Topic", "orders.access", "Describe"),
    ]
    told = inside("topic", "acls", address, "--of", "writer", "--principal", "User:w", "--commands").out
    lines = told.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("kafka-acls.sh --bootstrap-server broker.invalid:9092 ") for line in lines)
    assert lines[-1].endswith("--operation Write --transactional-id 'orders-writer-' --resource-pattern-type prefixed")
    assert "hunter2" not in told


def test_the_status_of_a_broker_that_was_never_started_is_an_answer(tmp_path: Path) -> None:
    state = inside("broker", "status", "--dir", tmp_path / "broker", "--format", "json").json()
    assert (state["running"], state["bootstrap"]) == (False, None)
    assert inside("broker", "down", "--dir", tmp_path / "broker", "--format", "json").json()["running"] is False
