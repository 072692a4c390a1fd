"""The security settings of an address: none is silently without effect, and none of its secrets is shown. No broker."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from eventlog import AuthenticationFailed, ConfigurationError, InvalidRequest, MissingRight
from eventlog.address import KafkaAddress, parse_address
from eventlog.errors import CheckpointError
from eventlog.kafka.client import client_settings
from eventlog.kafka.rights import KafkaRole, Operation, Resource, Right, granting, needed, rights_of
from tests.security.certificates import Authority

SECRET = "hunter2"
BASE = "kafka://127.0.0.1:9092/orders"


def kafka_address(text: str) -> KafkaAddress:
    address = parse_address(text)
    assert isinstance(address, KafkaAddress)
    return address


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sasl_mechanism=SCRAM-SHA-512&sasl_plain_username=u&sasl_plain_password=p", "would have no effect"),
        ("ssl_cafile=/tmp/ca.pem", "ssl_cafile would have no effect"),
        ("security_protocol=SSL&sasl_plain_username=u", "sasl_plain_username would have no effect"),
        ("security_protocol=TLS", "security_protocol is 'TLS'"),
        ("security_protocol=SASL_SSL", "needs a sasl_mechanism"),
        ("security_protocol=SSL&ssl_check_hostname=flase", "neither true nor false"),
        ("security_protocol=SSL&ssl_keyfile=/tmp/key.pem", "without ssl_certfile"),
        ("security_protocol=SSL&ssl_password=a&ssl_password_env=B", "ssl_password and ssl_password_env are given"),
    ],
)
def test_a_setting_that_is_wrong_or_idle_is_refused(query: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        client_settings(kafka_address(f"{BASE}?{query}"))


@pytest.mark.parametrize(
    "setting",
    ["ssl_cafile=/nowhere/ca.pem", "ssl_certfile=/nowhere/own.pem", "ssl_crlfile=/nowhere/crl.pem", "ssl_password_file=/nowhere/secret"],
)
def test_a_file_that_is_not_there_is_named_with_its_setting(setting: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{setting.split('=')[0]}.*/nowhere/.*No such file"):
        client_settings(kafka_address(f"{BASE}?security_protocol=SSL&{setting}"))


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing of the kind")
    with pytest.raises(ConfigurationError, match=r"ssl_cafile: .*ca\.pem cannot be used"):
        client_settings(kafka_address(f"{BASE}?security_protocol=SSL&ssl_cafile={tmp_path / 'ca.pem'}"))


def test_a_clients_certificate_is_used(tmp_path: Path) -> None:
    own = Authority(tmp_path, "house").issue("client")
    settings = client_settings(kafka_address(f"{BASE}?security_protocol=SSL&ssl_certfile={own}"))
    assert settings["ssl_context"].check_hostname is True


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    with pytest.raises(ConfigurationError, match="there is no KAFKA_PASSWORD in the environment"):
        client_settings(
            kafka_address(f"{BASE}?security_protocol=SASL_SSL&sasl_mechanism=SCRAM-SHA-512&sasl_plain_password_env=KAFKA_PASSWORD")
        )


@pytest.mark.parametrize(
    "address",
    [
        f"{BASE}?sasl_plain_password=a&{SECRET}",
        f"{BASE}?sasl_plain_password=a#{SECRET}",
        f"kafka://user:{SECRET}@127.0.0.1:9092/orders",
        f"kafka://[{SECRET}/orders",
        f"{BASE}?sasl_plain_password=a&sasl_plain_password={SECRET}",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_any_of_its_values(address: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_address(address)
    assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.hint} {caught.value.__cause__}"


def test_neither_an_address_nor_what_the_client_gets_shows_the_password() -> None:
    login = f"security_protocol=SASL_SSL&sasl_mechanism=SCRAM-SHA-512&sasl_plain_username=u&sasl_plain_password={SECRET}"
    address = kafka_address(f"{BASE}?{login}")
    settings = client_settings(address)
    assert settings["sasl_plain_password"] == SECRET
    assert SECRET not in f"{address} {address!r} {settings} {settings!r}"


def test_rights_and_refusals_cross_process_boundaries() -> None:
    errors: list[CheckpointError] = [
        MissingRight(BASE, principal="User:u", operation="Write", resource="Topic", name="orders", hint="Grant it."),
        AuthenticationFailed(BASE, "expired", hint="Renew it."),
    ]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.hint, vars(again)) == (type(error), str(error), error.hint, vars(error))


def test_no_role_may_alter_or_delete_the_log_and_none_needs_a_right_on_the_cluster() -> None:
    """But for whoever restores a backup, into topics of its own; and the beginning of the access log, by the role that is for that."""
    every = [need for role in KafkaRole for need in needed(role, encrypted=True, recorded=True)]
    daily = [(role, need) for role in KafkaRole if role is not KafkaRole.RESTORER for need in needed(role, encrypted=True, recorded=True)]
    strong = {(role, need.suffix, need.operation) for role, need in daily if need.operation in (Operation.DELETE, Operation.ALTER_CONFIGS)}
    assert strong == {(KafkaRole.PRUNER, ".access", Operation.DELETE)}
    assert {need.operation for need in every} <= set(Operation)
    assert {need.resource for need in every} == {Resource.TOPIC, Resource.TRANSACTIONAL_ID}
    assert {operation.value for operation in Operation}.isdisjoint({"Alter", "All"})


def test_a_right_that_another_one_brings_is_not_asked_for() -> None:
    clear, encrypted = (rights_of(KafkaRole.READER, "orders", encrypted=each) for each in (False, True))
    seeing = Right(Resource.TOPIC, "orders.keys", Operation.DESCRIBE)
    assert seeing in clear
    assert seeing not in encrypted
    assert Right(Resource.TOPIC, "orders.keys", Operation.READ) in encrypted


def test_a_right_is_granted_by_a_command_that_a_shell_takes_as_it_is() -> None:
    right = Right(Resource.TRANSACTIONAL_ID, "orders-writer-", Operation.WRITE, prefixed=True)
    assert granting(right, principal="User:CN=orders,O=house", servers="broker:9092") == (
        "kafka-acls.sh --bootstrap-server broker:9092 --command-config admin.properties --add"
        " --allow-principal 'User:CN=orders,O=house' --operation Write --transactional-id 'orders-writer-'"
        " --resource-pattern-type prefixed"
    )
