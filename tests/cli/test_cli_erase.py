"""`erase` on the command line: what it takes, what it says, and what it asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import eventlog, inside, put

PAYLOAD = {"phase": "ready", "text": "Ada Lovelace"}


@pytest.fixture(params=[False, True], ids=["in clear text", "encrypted"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    more = ("--encrypt", "--key-file", tmp_path / "key.json") if request.param else ()
    assert inside("init", tmp_path / "store", *more).code == 0
    return tmp_path / "store"


def test_a_subject_is_erased_with_a_certificate(store: Path, tmp_path: Path) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order", "--label", "subject=s-17")
    other = put(store, {"phase": "kept"}, "--kind", "acme.order")
    (tmp_path / "key.json").unlink(missing_ok=True)  # erasing needs no key
    selection = ("--label", "subject=s-17", "--store", store)
    planned = inside("erase", *selection, "--dry-run", "--format", "json").json()
    assert planned["checkpoints"] == [receipt["id"]]
    assert planned["revisions"] == 1
    why = ("--reason", "request 4711", "--actor", "dpo")
    made = inside("erase", *selection, *why, "--certificate", tmp_path / "c.json", "--format", "json").json()
    assert json.loads((tmp_path / "c.json").read_text()) == made
    assert made["sealed"]["actor"] == "dpo"
    assert made["sealed"]["reason"] == "request 4711"
    (row,) = inside("erase", "status", "--checkpoint", receipt["id"], "--store", store, "--format", "json").json()
    assert (row["state"], row["certificate"], row["reason"]) == ("erased", made["seal"], "request 4711")
    assert inside("erase", "status", "--checkpoint", other["id"], "--store", store, "--format", "json").json() == []
    assert inside("erase", "finish", "--store", store, "--format", "json").json() == []
    assert inside("erase", "apply", "--store", store, "--format", "json").json() == {"registered": 1, "present": 1, "emptied": 0}


def test_where_something_is_held_it_takes_the_keys_to_know_what(store: Path, tmp_path: Path) -> None:
    """Holds are checkpoints themselves, so an encrypted store seals them: without keys nobody can tell whether one is in the way."""
    held, other = (put(store, PAYLOAD, "--kind", "acme.order")["id"] for _ in range(2))
    assert inside("retention", "hold", "--checkpoint", held, "--reason", "case 4711", "--store", store).code == 0
    why = ("--reason", "request", "--store", store)
    assert inside("erase", "--checkpoint", held, *why).code == 22
    key = tmp_path / "key.json"
    if key.exists():
        kept = key.rename(tmp_path / "elsewhere.json")
        refused = inside("erase", "--checkpoint", other, *why)
        assert refused.code == 20
        assert "legal hold" in refused.err
        assert not (store / "erasures.jsonl").exists()
        kept.rename(key)
    assert inside("erase", "--checkpoint", other, *why).code == 0
    assert inside("get", held, "--payload", "--store", store).json() == PAYLOAD
    for each in ("status", "finish", "apply"):
        assert inside("erase", each, "--store", store).code == 0


def test_what_was_erased_answers_with_its_deletion_for_ever(store: Path) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order")
    put(store, PAYLOAD, "--id", receipt["id"], "--expect", "0")
    done = eventlog("erase", "--checkpoint", receipt["id"], "--reason", "request", "--store", store)  # a pipe is not asked
    assert done.code == 0, done
    assert "Erased 2 payloads of 1 checkpoints" in done.out
    assert inside("get", receipt["id"], "--store", store).code == 3
    gone = inside("get", receipt["id"], "--revision", "0", "--store", store, "--format", "json")
    assert gone.code == 12
    assert "erase status" in gone.error()["hint"]
    trail = inside("log", receipt["id"], "--store", store, "--format", "json").json()
    assert [row["type"] for row in trail] == ["REVISION", "REVISION", "DELETED"]
    assert inside("verify", "--store", store, "--format", "json").json()["erased"] == 2


@pytest.mark.parametrize(
    "options",
    [
        ("--reason", "r"),
        ("--checkpoint", "01234567-89ab-7cde-8f01-23456789abcd"),
        ("--checkpoint", "01234567-89ab-7cde-8f01-23456789abcd", "--run", "01234567-89ab-7cde-8f01-23456789abcd", "--reason", "r"),
        ("--label", "subject", "--reason", "r"),
        ("--label", "subject=nobody", "--reason", "r"),
        ("--tenant", "nobody", "--reason", "r", "--certificate", "/no/such/directory/c.json"),
    ],
)
def test_what_is_unclear_is_refused_and_nothing_is_done(store: Path, options: tuple[str, ...]) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order")
    assert inside("erase", *options, "--store", store).code == 6
    assert inside("get", receipt["id"], "--payload", "--store", store).json() == PAYLOAD
    assert not (store / "erasures.jsonl").exists()


def test_a_tenant_in_the_settings_limits_and_never_selects(store: Path) -> None:
    receipt = put(store, PAYLOAD, "--kind", "acme.order")
    refused = inside("erase", "--reason", "r", "--store", store, env={"EVENTLOG_TENANT": "default"})
    assert refused.code == 6
    assert inside("get", receipt["id"], "--payload", "--store", store).json() == PAYLOAD
