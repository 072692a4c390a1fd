"""Who is not let in, or does not trust the broker, learns why within seconds; no message holds the secret."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog import AuthenticationFailed, ConfigurationError, Unavailable, open_store
from eventlog.errors import CheckpointError
from tests.security.secured import SecuredBroker

_SECONDS = 10.0  # as open_store promises

PASSWORD = "correct horse battery staple"

Address = Callable[[SecuredBroker, str], str]


def as_somebody(**settings: str) -> Address:
    def address(broker: SecuredBroker, topic: str) -> str:
        return broker.address("nobody", PASSWORD, topic, **settings)

    return address


def with_strangers_authority(broker: SecuredBroker, topic: str) -> str:
    return broker.address("nobody", PASSWORD, topic, ssl_cafile=str(broker.folder / "strangers-ca.pem"))


def by_certificate(name: str | None) -> Address:
    def address(broker: SecuredBroker, topic: str) -> str:
        shown = {} if name is None else {"ssl_certfile": str(broker.folder / f"{name}.pem")}
        return broker.plain_address(topic, door="MUTUAL", security_protocol="SSL", ssl_cafile=str(broker.authority), **shown)

    return address


def without_anything(broker: SecuredBroker, topic: str) -> str:
    return broker.plain_address(topic, door="OUTSIDE")


def without_login(broker: SecuredBroker, topic: str) -> str:
    return broker.plain_address(topic, door="OUTSIDE", security_protocol="SSL", ssl_cafile=str(broker.authority))


@pytest.mark.parametrize(
    ("address", "kind", "said"),
    [
        pytest.param(as_somebody(), AuthenticationFailed, "refuses this user and password", id="wrong password"),
        pytest.param(as_somebody(sasl_mechanism="PLAIN"), AuthenticationFailed, "no such sasl_mechanism", id="other mechanism"),
        pytest.param(with_strangers_authority, AuthenticationFailed, "certificate is not accepted", id="another authority"),
        pytest.param(as_somebody(ssl_cafile=""), AuthenticationFailed, "certificate is not accepted", id="no authority"),
        pytest.param(as_somebody(host="localhost"), AuthenticationFailed, "not valid for 'localhost'", id="another host's name"),
        pytest.param(as_somebody(door="EXPIRED"), AuthenticationFailed, "has expired", id="expired certificate"),
        pytest.param(by_certificate(None), AuthenticationFailed, "certificate", id="no client's certificate"),
        pytest.param(by_certificate("stranger"), AuthenticationFailed, "certificate", id="a stranger's certificate"),
        pytest.param(without_anything, Unavailable, "take the connection and give no answer", id="plain text at a TLS port"),
        pytest.param(as_somebody(door="INSIDE"), Unavailable, "take the connection and give no answer", id="TLS at a plain port"),
        pytest.param(without_login, Unavailable, "take the connection and give no answer", id="no login where one is wanted"),
    ],
)
def test_whoever_is_not_let_in_learns_why_within_seconds(
    secured: SecuredBroker,
    topic: str,
    address: Address,
    kind: type[CheckpointError],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    begun = time.monotonic()
    with pytest.raises(kind) as caught:
        open_store(address(secured, topic))
    assert time.monotonic() - begun < _SECONDS
    assert said in str(caught.value)
    assert "security_protocol" in caught.value.hint or kind is AuthenticationFailed
    shown = [caught.value, caught.value.hint, caught.value.__cause__, caught.value.__context__, caplog.text]
    assert PASSWORD not in " ".join(f"{each} {each!r}" for each in shown)


def test_a_password_is_read_from_a_file_or_the_environment(
    secured: SecuredBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker's answer, that the topic may not be seen, shows that it has let the client in."""
    user = f"user-of-{topic}"
    password = secured.user(user)
    file = tmp_path / "password"
    file.write_text(password + "\n")
    file.chmod(0o600)
    monkeypatch.setenv("KAFKA_PASSWORD", password)
    for setting, value in {"sasl_plain_password_file": str(file), "sasl_plain_password_env": "KAFKA_PASSWORD"}.items():
        with pytest.raises(CheckpointError, match="lacks Kafka's right Describe"):
            open_store(secured.address(user, "", topic, **{setting: value}))
    file.chmod(0o640)
    with pytest.raises(ConfigurationError, match="others may use it"):
        open_store(secured.address(user, "", topic, sasl_plain_password_file=str(file)))
