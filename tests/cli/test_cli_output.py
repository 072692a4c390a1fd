"""Tables, JSON and CSV: nothing is cut in a pipe, nothing that a terminal would obey comes out, colour on a terminal alone."""

from __future__ import annotations

import csv
import io
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import COMMAND, environment, eventlog, inside, new_store, put

LONG_KIND = "acme." + "very-long-" * 18 + "kind"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return new_store(tmp_path)


def test_a_pipe_gets_plain_whole_lines(store: Path) -> None:
    receipt = put(store, {"phase": "p" * 150}, "--kind", LONG_KIND, "--label", f"note={'x' * 200}")
    run = eventlog("list", "--store", store)
    assert len(run.out.splitlines()) == 2
    for value in (receipt["id"], LONG_KIND, "p" * 150, "x" * 200):
        assert value in run.out
    assert "\x1b" not in run.out
    assert "…" not in run.out


def _on_a_terminal(*arguments: str) -> str:
    ours, theirs = pty.openpty()
    env = {**environment(), "TERM": "xterm-256color", "COLUMNS": "70"}
    process = subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=env)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 0
    return seen.decode()


def test_a_terminal_gets_colour_and_long_values_are_folded_not_cut(store: Path) -> None:
    put(store, {}, "--kind", LONG_KIND)
    shown = _on_a_terminal("list", "--store", str(store))
    assert "\x1b[" in shown
    assert "…" not in shown


def test_control_characters_do_not_reach_the_terminal(store: Path) -> None:
    put(store, {}, "--kind", "acme.order")
    run = inside("sql", "SELECT chr(27) || '[31mred' AS a, chr(10) AS b, '[bold]x[/bold]' AS c", "--store", store)
    assert "\x1b" not in run.out
    assert "\\x1b[31mred" in run.out
    assert "[bold]x[/bold]" in run.out
    assert len(run.out.splitlines()) == 2


def test_sql_values_of_every_kind_survive_json_and_csv(store: Path) -> None:
    put(store, {}, "--kind", "acme.order")
    statement = (
        "SELECT 170141183460469231731687303715884105727::HUGEINT AS huge, 1.5::DECIMAL(4,2) AS money, 'nan'::DOUBLE AS nan,"
        " NULL AS nothing, TIMESTAMPTZ '2026-01-02 03:04:05+00' AS t, DATE '2026-01-02' AS d,"
        " [1, 2] AS l, {'a': true} AS s, 'x'::BLOB AS b, true AS yes"
    )
    row = inside("sql", statement, "--store", store, "--format", "json").json()[0]
    assert row == {
        "huge": 2**127 - 1,
        "money": 1.5,
        "nan": None,
        "nothing": None,
        "t": "2026-01-02T03:04:05.000Z",
        "d": "2026-01-02",
        "l": [1, 2],
        "s": {"a": True},
        "b": "78",
        "yes": True,
    }
    header, values = list(csv.reader(io.StringIO(inside("sql", statement, "--store", store, "--format", "csv").out)))
    assert header == list(row)
    assert values == [str(2**127 - 1), "1.5", "", "", row["t"], row["d"], "[1, 2]", '{"a": true}', "78", "true"]


def test_reports_come_in_every_format(store: Path) -> None:
    receipt = put(store, {"phase": "ready"}, "--kind", "acme.order", "--actor", "ann")
    put(store, {}, "--kind", "acme.other", "--actor", "bob")
    rows = inside("report", "audit", "--actor", "ann", "--since", "1h", "--store", store, "--format", "json").json()
    assert [(row["checkpoint_id"], row["actor"]) for row in rows] == [(receipt["id"], "ann")]
    assert inside("report", "audit", "--until", "1h", "--store", store, "--format", "json").json() == []
    assert (
        inside("report", "audit", "--checkpoint", receipt["id"].upper(), "--limit", "1", "--store", store, "--format", "csv").out.count(
            "\n"
        )
        == 2
    )
    held = inside("report", "retention", "--kind", "acme.order", "--store", store, "--format", "json").json()
    assert [(row["phase"], row["checkpoints"], row["revisions"]) for row in held] == [("ready", 1, 1)]


def test_sql_from_standard_input(store: Path) -> None:
    assert inside("sql", "-", "--store", store, "--format", "json", stdin="SELECT 40 + 2 AS answer").json() == [{"answer": 42}]
