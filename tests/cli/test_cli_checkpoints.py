"""put, get, list, log and tail: the compare-and-swap of the library, by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import EventId, open_store
from tests.cli.command_line import inside, new_store, put


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return new_store(tmp_path)


def _get(store: Path, checkpoint: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = inside("get", checkpoint, *more, "--store", store, "--format", "json").json()
    return found


def test_put_creates_then_continues_and_carries_on_what_is_not_named(store: Path) -> None:
    first = put(store, {"phase": "ready"}, "--kind", "acme.order", "--label", "region=eu", "--usage", "turns=1", "--usage", "tokens=7")
    second = put(store, {"phase": "done"}, "--id", first["id"], "--expect", "0", "--usage", "turns=2", "--label", "desk=b")
    assert (first["revision"], second["revision"], second["run_id"]) == (0, 1, first["run_id"])
    found = _get(store, first["id"])
    assert found["payload"] == {"phase": "done"}
    assert (found["phase"], found["labels"], found["usage"]) == ("done", {"region": "eu", "desk": "b"}, {"turns": 2, "tokens": 7})


def test_put_reads_a_file_and_keeps_large_integers(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text(json.dumps({"n": 2**80}))
    receipt = inside("put", file, "--kind", "acme.order", "--store", store, "--format", "json").json()
    assert json.loads(inside("get", receipt["id"], "--payload", "--store", store).out) == {"n": 2**80}


def test_a_put_repeated_with_its_event_id_gets_its_first_receipt(store: Path) -> None:
    event = EventId.new()
    first = put(store, {"n": 0}, "--kind", "acme.order")
    once = put(store, {"n": 1}, "--id", first["id"], "--expect", "0", "--event-id", event)
    again = put(store, {"n": 1}, "--id", first["id"], "--expect", "0", "--event-id", event)
    assert again == {**once, "duplicate": True}
    other = inside("put", "-", "--id", first["id"], "--expect", "0", "--event-id", event, "--store", store, stdin='{"n": 2}')
    assert other.code == 4
    assert "another payload" in other.err


def test_a_creation_repeated_with_its_ids_gets_its_first_receipt(store: Path) -> None:
    ids = ("--id", "0197a0b0-0000-7000-8000-000000000001", "--event-id", EventId.new(), "--kind", "acme.order")
    once = put(store, {"n": 1}, *ids)
    assert put(store, {"n": 1}, *ids) == {**once, "duplicate": True}


def test_put_needs_a_kind_to_create_and_an_id_to_continue(store: Path) -> None:
    assert "--kind" in inside("put", "-", "--store", store, stdin="{}").err
    assert "--id" in inside("put", "-", "--expect", "0", "--store", store, stdin="{}").err


def test_put_does_not_change_the_kind_of_a_checkpoint(store: Path) -> None:
    first = put(store, {}, "--kind", "acme.order")
    run = inside("put", "-", "--id", first["id"], "--expect", "0", "--kind", "acme.other", "--store", store, stdin="{}")
    assert run.code == 6
    assert "kind" in run.err


def test_get_answers_by_revision_position_and_time(store: Path) -> None:
    first = put(store, {"n": 0}, "--kind", "acme.order")
    second = put(store, {"n": 1}, "--id", first["id"], "--expect", "0")
    assert _get(store, first["id"], "--revision", "0")["payload"] == {"n": 0}
    assert _get(store, first["id"], "--at", first["position"])["payload"] == {"n": 0}
    assert _get(store, first["id"], "--at", second["recorded_at"])["payload"] == {"n": 1}
    assert inside("get", first["id"], "--at", "52w", "--store", store).code == 3


def test_a_deleted_checkpoint_is_not_found_but_listed_on_request_and_its_log_stays(store: Path) -> None:
    first = put(store, {"n": 0}, "--kind", "acme.order")
    with open_store(store) as opened:
        opened.delete(first["id"], 0)
    assert inside("get", first["id"], "--store", store).code == 3
    assert inside("list", "--store", store, "--format", "json").json()["checkpoints"] == []
    assert inside("list", "--deleted", "--store", store, "--format", "json").json()["checkpoints"][0]["deleted"] is True
    assert [row["type"] for row in inside("log", first["id"], "--store", store, "--format", "json").json()] == ["REVISION", "DELETED"]


def test_list_filters_and_pages_and_says_how_to_go_on(store: Path) -> None:
    for number in range(5):
        put(store, {"phase": "ready" if number % 2 else "done"}, "--kind", f"acme.k{number % 2}", "--label", f"n={number}")
    everything = inside("list", "--store", store, "--format", "json").json()
    assert (len(everything["checkpoints"]), everything["next"]) == (5, None)
    assert len(inside("list", "--kind", "acme.k1", "--store", store, "--format", "json").json()["checkpoints"]) == 2
    assert len(inside("list", "--phase", "done", "--label", "n=2", "--store", store, "--format", "json").json()["checkpoints"]) == 1
    assert inside("list", "--older-than", "1h", "--store", store, "--format", "json").json()["checkpoints"] == []
    assert len(inside("list", "--newer-than", "1h", "--store", store, "--format", "json").json()["checkpoints"]) == 5
    page = inside("list", "--limit", "3", "--store", store, "--format", "json").json()
    rest = inside("list", "--after", page["next"], "--at", page["position"], "--store", store, "--format", "json").json()
    assert page["checkpoints"] + rest["checkpoints"] == everything["checkpoints"]
    assert f"--after {page['next']} --at {page['position']}" in inside("list", "--limit", "3", "--store", store).err


def test_another_tenant_sees_nothing(store: Path) -> None:
    first = put(store, {}, "--kind", "acme.order", "--tenant", "north")
    assert inside("get", first["id"], "--tenant", "south", "--store", store).code == 3
    assert inside("list", "--tenant", "south", "--store", store, "--format", "json").json()["checkpoints"] == []
    assert inside("report", "retention", "--store", store, "--format", "json", env={"EVENTLOG_TENANT": "south"}).json() == []
    assert inside("sql", "SELECT 1", "--tenant", "south", "--store", store).code == 6


def test_log_shows_who_wrote_what_in_every_format(store: Path) -> None:
    first = put(store, {"phase": "ready"}, "--kind", "acme.order", "--actor", "ann")
    put(store, {"phase": "done"}, "--id", first["id"], "--expect", "0", "--actor", "bob")
    rows = inside("log", first["id"], "--store", store, "--format", "json").json()
    assert [(row["revision"], row["actor"], row["phase"]) for row in rows] == [(0, "ann", "ready"), (1, "bob", "done")]
    assert rows[1]["previous_hash"] == rows[0]["hash"]
    as_csv = list(csv.DictReader(io.StringIO(inside("log", first["id"], "--store", store, "--format", "csv").out)))
    assert [row["hash"] for row in as_csv] == [row["hash"] for row in rows]
    table = inside("log", first["id"], "--store", store).out
    assert rows[0]["hash"][:12] in table
    assert rows[0]["hash"] not in table
    assert [row["revision"] for row in inside("log", first["id"], "--after", "0", "--store", store, "--format", "json").json()] == [1]


def test_tail_prints_one_json_object_a_line_from_anywhere(store: Path) -> None:
    first = put(store, {"n": 0}, "--kind", "acme.order")
    put(store, {"n": 1}, "--id", first["id"], "--expect", "0")
    follow = ("tail", "--store", store, "--format", "json", "--idle-timeout", "0")
    lines = [json.loads(line) for line in inside(*follow, "--from-start", "--payload").out.splitlines()]
    assert [(line["revision"], line["payload"]) for line in lines] == [(0, {"n": 0}), (1, {"n": 1})]
    assert [json.loads(line)["revision"] for line in inside(*follow, "--from", lines[0]["position"]).out.splitlines()] == [1]
    assert inside(*follow).out == ""
    assert len(inside(*follow, "--from-start", "--limit", "1").out.splitlines()) == 1
