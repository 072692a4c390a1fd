"""The key file: nobody else's, made once, replaced whole; and the other places' ways to be wrong."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eventlog.errors import KeysUnavailable
from eventlog.privacy.providers import provider_of
from eventlog.privacy.providers.environment import EnvironmentKey
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.privacy.providers.pkcs11 import PIN_VARIABLE, Pkcs11Keys
from tests.store.other_process import REPOSITORY

VARIABLE = "EVENTLOG_TEST_KEY"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "key.json"


def test_only_its_owner_may_read_it_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        KeyFile(path=path).create()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_one_that_others_may_use_is_refused(path: Path, mode: int) -> None:
    KeyFile(path=path).create()
    path.chmod(mode)
    with pytest.raises(KeysUnavailable, match=f"mode {mode:04o}") as raised:
        KeyFile(path=path).open()
    assert raised.value.hint == f"chmod 600 {path}"


def test_opening_never_makes_one(path: Path) -> None:
    with pytest.raises(KeysUnavailable, match="No such file"):
        KeyFile(path=path).open()
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": "eventlog keys 2", "keys": {"1": ""}}', '{"format": "eventlog keys 1"}',
     '{"format": "eventlog keys 1", "keys": {}}', '{"format": "eventlog keys 1", "keys": {"1": "c2hvcnQ="}}',
     '{"format": "eventlog keys 1", "keys": {"1": "!!"}}', '{"format": "eventlog keys 1", "keys": {"x": "c2hvcnQ="}}'],
)  # fmt: skip
def test_one_that_holds_something_else_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeysUnavailable):
        KeyFile(path=path).open()


def test_of_processes_that_make_it_at_once_all_use_the_first_ones(path: Path) -> None:
    program = (
        "import sys; from eventlog.privacy.providers import provider_of; provider = provider_of(sys.argv[1]); provider.create();"
        " sys.stdout.write(provider.wrap('t', bytes(32), b'c')[1].hex())"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with ThreadPoolExecutor(4) as pool:
        wrapped = list(
            pool.map(
                lambda _: (
                    subprocess.run(
                        [sys.executable, "-c", program, f"file:{path}"], env=environment, capture_output=True, check=True, text=True
                    ).stdout
                ),
                range(4),
            )
        )
    provider = KeyFile(path=path)
    provider.open()
    assert [provider.unwrap("t", "1", bytes.fromhex(each), b"c") for each in wrapped] == [bytes(32)] * 4


def test_versions_made_at_once_are_all_kept(path: Path) -> None:
    KeyFile(path=path).create()

    def advance(_: int) -> None:
        provider = KeyFile(path=path)
        provider.open()
        provider.advance("t")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(advance, range(8)))
    assert sorted(map(int, json.loads(path.read_text())["keys"])) == list(range(1, 10))


def test_drafts_of_a_dead_process_go_with_the_next_version(path: Path) -> None:
    provider = KeyFile(path=path)
    provider.create()
    draft = path.parent / f".{path.name}.0123456789abcdef.new"
    draft.write_text("keys of a process that was killed")
    provider.advance("t")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.fixture
def phrase(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EVENTLOG_TEST_PHRASE", "correct horse")
    return "EVENTLOG_TEST_PHRASE"


def test_a_passphrase_seals_what_is_in_it(path: Path, phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    KeyFile(path=path, passphrase_env=phrase).create()
    assert "keys" not in json.loads(path.read_text())
    monkeypatch.setenv(phrase, "wrong horse")
    with pytest.raises(KeysUnavailable, match="does not open with this passphrase"):
        KeyFile(path=path, passphrase_env=phrase).open()
    monkeypatch.delenv(phrase)
    with pytest.raises(KeysUnavailable, match="is not set"):
        KeyFile(path=path, passphrase_env=phrase).open()
    with pytest.raises(KeysUnavailable, match="sealed with a passphrase"):
        KeyFile(path=path).open()


def test_a_passphrase_for_a_file_in_clear_is_refused(path: Path, phrase: str) -> None:
    KeyFile(path=path).create()
    with pytest.raises(KeysUnavailable, match="is not sealed"):
        KeyFile(path=path, passphrase_env=phrase).open()


def test_a_sealed_file_that_asks_for_too_much_work_is_refused(path: Path, phrase: str) -> None:
    KeyFile(path=path, passphrase_env=phrase).create()
    fields = json.loads(path.read_text())
    fields["scrypt"]["n"] = 1 << 30
    path.write_text(json.dumps(fields))
    with pytest.raises(KeysUnavailable, match="more work"):
        KeyFile(path=path, passphrase_env=phrase).open()


def test_a_file_that_goes_missing_serves_on_who_has_read_it(path: Path) -> None:
    provider = KeyFile(path=path)
    provider.create()
    version, wrapped = provider.wrap("t", bytes(32), b"c")
    path.unlink()
    assert provider.unwrap("t", version, wrapped, b"c") == bytes(32)


GOOD = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "secret-secret",
        base64.b64encode(bytes(16)).decode(),
        f"x:{GOOD}",
        f"0:{GOOD}",
        f"1:{GOOD},1:{GOOD}",
        f"{GOOD},{GOOD}",
        f"{GOOD},",
    ],
)
def test_a_variable_that_holds_something_else_is_refused_without_showing_it(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(KeysUnavailable) as raised:
        EnvironmentKey(name=VARIABLE).open()
    assert "secret" not in str(raised.value)
    assert GOOD not in str(raised.value)


def test_a_version_in_the_variable_is_made_by_whoever_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, GOOD)
    provider = EnvironmentKey(name=VARIABLE)
    provider.open()
    with pytest.raises(KeysUnavailable) as raised:
        provider.advance("t")
    assert "then rotate" in raised.value.hint


def test_a_token_keeps_its_keys_to_itself(token: str) -> None:
    import pkcs11

    provider = Pkcs11Keys.of(token)
    provider.create()
    provider.wrap("north", bytes(32), b"c")
    (key,) = provider._found("north").values()
    assert not key[pkcs11.Attribute.EXTRACTABLE]
    assert key[pkcs11.Attribute.SENSITIVE]
    with pytest.raises(pkcs11.AttributeSensitive):
        key[pkcs11.Attribute.VALUE]
    provider.close()


def test_two_first_keys_of_a_tenant_made_at_once_are_both_good(token: str) -> None:
    one, other = Pkcs11Keys.of(token), Pkcs11Keys.of(token)
    one.create()
    other.create()
    version, wrapped = one.wrap("north", bytes(32), b"c")
    other._make("north", 1)  # as a process that had found none
    again, wrapped_again = other.wrap("north", bytes(32), b"c")
    assert one.current("north") == other.current("north")
    for version_of, each in ((version, wrapped), (again, wrapped_again)):
        assert one.unwrap("north", version_of, each, b"c") == other.unwrap("north", version_of, each, b"c") == bytes(32)
    one.close()
    other.close()


def test_what_is_wrong_with_a_token_is_said(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeysUnavailable, match="there is no token"):
        provider_of(token.replace("token=", "token=no-")).open()
    with pytest.raises(KeysUnavailable, match="module failed"):
        provider_of("pkcs11:token=a?module-path=/no/such/module.so").open()
    monkeypatch.setenv(PIN_VARIABLE, "wrong")
    with pytest.raises(KeysUnavailable, match="refuses the PIN") as raised:
        provider_of(token).open()
    assert "wrong" not in str(raised.value)
    monkeypatch.delenv(PIN_VARIABLE)
    with pytest.raises(KeysUnavailable, match="is not set"):
        provider_of(token).open()
