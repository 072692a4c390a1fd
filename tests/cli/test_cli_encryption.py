"""An encrypted store on the command line: made, used, looked after, and told apart from one without its keys."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from tests.cli.command_line import eventlog, inside, put

PAYLOAD = {"phase": "ready", "text": "Ada Lovelace"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = inside("init", tmp_path / "store", "--encrypt", "--key-file", tmp_path / "key.json")
    assert made.code == 0, made
    assert "keep a copy of those" in made.out
    return tmp_path / "store"


def test_everything_that_works_on_a_store_works_on_an_encrypted_one(store: Path) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order")
    put(store, {**PAYLOAD, "more": 1}, "--id", receipt["id"], "--expect", "0")
    found = eventlog("get", receipt["id"], "--payload", "--store", store)  # another process, which knows but the store
    assert json.loads(found.out) == {**PAYLOAD, "more": 1}
    assert inside("get", receipt["id"], "--revision", "0", "--payload", "--store", store).json() == PAYLOAD
    assert inside("log", receipt["id"], "--store", store).code == 0
    assert inside("verify", "--store", store, "--format", "json").json()["sealed"] == 0
    assert inside("verify", "--without-keys", "--store", store, "--format", "json").json()["sealed"] == 2
    assert inside("rebuild", "--store", store).code == 0
    assert b"Lovelace" not in b"".join(each.read_bytes() for each in store.iterdir())


def test_keys_are_rotated_and_counted(store: Path) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order")
    status = inside("keys", "status", "--store", store, "--format", "json").json()
    assert [(row["tenant"], row["version"], row["current"], row["data_keys"]) for row in status] == [
        ("(the store)", "1", True, 1),
        ("default", "1", True, 1),
    ]
    assert inside("keys", "rotate", "--store", store, "--format", "json").json() == {"rewrapped": 2, "new_version": True}
    assert {row["version"] for row in inside("keys", "status", "--store", store, "--format", "json").json()} == {"2"}
    assert inside("get", receipt["id"], "--payload", "--store", store).json() == PAYLOAD


def test_doctor_says_how_the_keys_are(store: Path, tmp_path: Path) -> None:
    def checks() -> dict[str, str]:
        return {row["check"]: row["state"] for row in json.loads(inside("doctor", "--store", store, "--format", "json").out)}

    assert checks()["encryption"] == "ok"
    (tmp_path / "key.json").rename(tmp_path / "elsewhere.json")
    assert checks()["open"] == "fail"


def test_a_missing_key_is_20_and_says_where_it_was_looked_for(store: Path, tmp_path: Path) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order")
    (tmp_path / "key.json").rename(tmp_path / "elsewhere.json")
    run = eventlog("get", receipt["id"], "--store", store)
    assert run.code == 20
    assert str(tmp_path / "key.json") in run.err
    assert "EVENTLOG_KEYS" in run.err
    elsewhere = {"EVENTLOG_KEYS": f"file:{tmp_path / 'elsewhere.json'}"}
    assert inside("get", receipt["id"], "--payload", "--store", store, env=elsewhere).json() == PAYLOAD


def test_a_variable_and_a_passphrase(tmp_path: Path) -> None:
    key = base64.b64encode(os.urandom(32)).decode()
    for number, (arguments, env) in enumerate(
        (
            (("--key-env", "ORDERS_KEY"), {"ORDERS_KEY": key}),
            (("--key-file", tmp_path / "sealed.json", "--passphrase-env", "ORDERS_PHRASE"), {"ORDERS_PHRASE": "correct horse"}),
        )
    ):
        store = tmp_path / f"store-{number}"
        assert inside("init", store, "--encrypt", *arguments, env=env).code == 0
        made = inside("put", "-", "--kind", "acme.order", "--store", store, "--format", "json", stdin=json.dumps(PAYLOAD), env=env).json()
        assert inside("get", made["id"], "--payload", "--store", store, env=env).json() == PAYLOAD
        missing = inside("get", made["id"], "--store", store)
        assert missing.code == 20
        assert key not in missing.err


@pytest.mark.parametrize(
    "arguments",
    [("--encrypt",), ("--key-file", "k"), ("--encrypt", "--key-file", "k", "--key-env", "K"), ("--passphrase-env", "P"),
     ("--encrypt", "--passphrase-env", "P", "--key-env", "K"), ("--encrypt", "--pkcs11", "nonsense"), ("--encrypt", "--key-env", "A B")],
)  # fmt: skip
def test_options_that_make_no_sense_together_are_6_and_make_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert inside("init", tmp_path / "store", *arguments).code == 6
    assert list(tmp_path.iterdir()) == []


def test_keys_of_a_store_in_clear_text_are_15(tmp_path: Path) -> None:
    assert inside("init", tmp_path / "plain").code == 0
    assert inside("keys", "status", "--store", tmp_path / "plain").code == 15
    assert inside("keys", "rotate", "--store", tmp_path / "plain").code == 15
