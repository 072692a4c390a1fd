"""What every provider of keys promises: a real file, a real variable, a real token."""

from __future__ import annotations

import base64
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog.errors import InvalidRequest, KeysUnavailable
from eventlog.privacy.providers import KeyProvider, NoKeys, provider_of

DATA_KEY = b"a data key of thirty-two bytes.."
VARIABLE = "EVENTLOG_TEST_KEY"
PHRASE = "EVENTLOG_TEST_PHRASE"


def sources(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    if kind == "file":
        return f"file:{folder / 'key.json'}"
    if kind == "sealed file":
        monkeypatch.setenv(PHRASE, "correct horse")
        return f"file:{folder / 'key.json'}?passphrase=env:{PHRASE}"
    if kind == "variable":
        monkeypatch.setenv(VARIABLE, base64.b64encode(os.urandom(32)).decode())
        return f"env:{VARIABLE}"
    return str(request.getfixturevalue("token"))


KINDS = ["file", "sealed file", "variable", pytest.param("token", marks=pytest.mark.softhsm)]


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    return sources(request.param, request, monkeypatch, tmp_path)


@pytest.fixture
def provider(source: str) -> Iterator[KeyProvider]:
    made = provider_of(source)
    made.create()
    yield made
    made.close()


def test_what_it_wraps_it_unwraps_and_nobody_sees_it(provider: KeyProvider) -> None:
    version, wrapped = provider.wrap("north", DATA_KEY, b"context")
    assert version == provider.current("north")
    assert DATA_KEY not in wrapped
    assert provider.unwrap("north", version, wrapped, b"context") == DATA_KEY
    assert provider.wrap("north", DATA_KEY, b"context")[1] != wrapped


@pytest.mark.parametrize(
    "change",
    [{"tenant": "south"}, {"context": b"another"}, {"wrapped": b"x" * 60}, {"wrapped": b""}, {"version": "99"}, {"version": "x/y"}],
)
def test_it_unwraps_only_what_it_wrapped_and_for_the_same(provider: KeyProvider, change: dict[str, Any]) -> None:
    version, wrapped = provider.wrap("north", DATA_KEY, b"context")
    provider.wrap("south", DATA_KEY, b"context")
    asked = {"tenant": "north", "version": version, "wrapped": wrapped, "context": b"context", **change}
    with pytest.raises(KeysUnavailable):
        provider.unwrap(**asked)


def test_what_the_store_remembers_of_it_finds_it_again(provider: KeyProvider) -> None:
    version, wrapped = provider.wrap("north", DATA_KEY, b"context")
    again = provider_of(provider.source)
    again.open()
    assert again.source == provider.source
    assert again.unwrap("north", version, wrapped, b"context") == DATA_KEY
    again.close()
    assert provider.unwrap("north", version, wrapped, b"context") == DATA_KEY  # the other one's end is not this one's


def test_creating_it_again_changes_nothing(provider: KeyProvider) -> None:
    version, wrapped = provider.wrap("north", DATA_KEY, b"context")
    again = provider_of(provider.source)
    again.create()
    assert again.unwrap("north", version, wrapped, b"context") == DATA_KEY
    again.close()


def advance(provider: KeyProvider) -> None:
    if provider.source.startswith("env:"):
        key = base64.b64encode(os.urandom(32)).decode()
        os.environ[VARIABLE] = f"1:{os.environ[VARIABLE]},2:{key}"
        provider.open()
    else:
        provider.advance("north")


def test_a_new_version_wraps_and_the_old_one_still_unwraps(provider: KeyProvider) -> None:
    version, wrapped = provider.wrap("north", DATA_KEY, b"context")
    advance(provider)
    newer, wrapped_anew = provider.wrap("north", DATA_KEY, b"context")
    assert newer != version
    assert newer == provider.current("north")
    assert provider.unwrap("north", version, wrapped, b"context") == DATA_KEY
    assert provider.unwrap("north", newer, wrapped_anew, b"context") == DATA_KEY
    with pytest.raises(KeysUnavailable):
        provider.unwrap("north", newer, wrapped, b"context")


def test_another_process_uses_a_new_version_at_once(provider: KeyProvider) -> None:
    if provider.source.startswith("env:"):
        pytest.skip("a process gets its variables when it starts")
    other = provider_of(provider.source)
    other.open()
    advance(provider)
    version, wrapped = provider.wrap("north", DATA_KEY, b"context")
    assert other.current("north") == version
    assert other.unwrap("north", version, wrapped, b"context") == DATA_KEY
    other.close()


def test_it_shows_no_key_and_does_not_leave_its_process(provider: KeyProvider, source: str, tmp_path: Path) -> None:
    secrets = [os.environ.get(VARIABLE, ""), os.environ.get(PHRASE, ""), "4711-0815"]
    if (tmp_path / "key.json").exists() and "sealed" not in (tmp_path / "key.json").read_text():
        secrets += [word for word in (tmp_path / "key.json").read_text().split('"') if len(word) == 44]
    with pytest.raises(KeysUnavailable) as raised:
        provider.unwrap("north", provider.current("north"), b"x" * 60, b"context")
    shown = repr(provider) + provider.source + "".join(traceback.format_exception(raised.value))
    assert not [secret for secret in secrets if secret and secret in shown]
    assert source
    with pytest.raises(TypeError):
        pickle.dumps(provider)


@pytest.mark.parametrize(
    "source",
    ["", "vault:x", "file:", "/etc/key", "env:", "env:A B", "file:/k?mode=600", "file:/k?passphrase=secret", "pkcs11:", "pkcs11:token=a",
     "pkcs11:token=a?module-path=/x&pin-value=1234", "pkcs11:token=a;slot=3?module-path=/x",
     "pkcs11:token=a?module-path=/x&pin-source=file:/p"],
)  # fmt: skip
def test_a_place_that_makes_no_sense_is_refused(source: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        provider_of(source)
    assert "1234" not in str(raised.value)


def test_without_keys_everything_that_needs_one_is_refused() -> None:
    nobody = NoKeys()
    nobody.open()
    calls: list[Callable[[], Any]] = [
        lambda: nobody.wrap("a", DATA_KEY, b""),
        lambda: nobody.unwrap("a", "1", b"", b""),
        lambda: nobody.current("a"),
    ]
    for call in calls:
        with pytest.raises(KeysUnavailable, match="without keys"):
            call()
