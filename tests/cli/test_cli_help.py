"""What others rely on in the help: every command, its examples, the exit codes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from eventlog import ErrorKind
from eventlog.cli import app, failures
from projections.reports import REPORTS
from tests.cli.command_line import inside, without_colour

SNAPSHOTS = Path(__file__).parent / "snapshots"
EXPECTED_COMMANDS = {
    "archive run", "archive list", "archive verify", "anchor", "compact",
    "demo", "init", "put", "get", "list", "log", "tail", "sql", "verify", "rebuild", "doctor", "report audit", "report recovery",
    "report retention", "ingest chats", "import runifold", "topic create", "topic check", "broker up", "broker down", "broker status",
    "migrate plan", "migrate run", "migrate undo", "recovery list", "recovery show", "recovery resolve", "recovery settle",
    "metrics serve",
}  # fmt: skip


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = group.make_context(" ".join(("eventlog", *path)), [], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(_commands(typer.main.get_command(app)))


def _examples(epilog: str) -> list[str]:
    return [line.strip() for line in epilog.splitlines() if line.strip().startswith("eventlog ")]


def test_the_commands_are_those_that_are_promised() -> None:
    assert {" ".join(path) for path in COMMANDS} >= EXPECTED_COMMANDS


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_does_and_shows_an_example(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    assert any(" ".join(path) in example for example in _examples(command.epilog or ""))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_example_is_a_command_line_that_parses(path: tuple[str, ...]) -> None:
    for example in _examples(COMMANDS[path].epilog or ""):
        words = shlex.split(example.partition(" | ")[0].partition(" < ")[0].partition(" > ")[0])
        assert tuple(words[1 : 1 + len(path)]) == path, example
        COMMANDS[path].make_context(" ".join(path), words[1 + len(path) :])


def test_a_new_report_file_is_a_command_without_more_code() -> None:
    assert {path[1] for path in COMMANDS if path[0] == "report"} == set(REPORTS)


def test_every_kind_of_error_has_an_exit_code_of_its_own() -> None:
    assert set(failures.EXIT_CODES) == set(ErrorKind)
    special = {failures.OK, failures.FINDINGS, failures.USAGE, failures.INTERRUPTED, failures.READER_GONE}
    assert len(special | set(failures.EXIT_CODES.values())) == len(special) + len(ErrorKind)


def test_the_exit_codes_are_the_recorded_ones_and_stand_in_the_help() -> None:
    _require_recorded("exit_codes.txt", failures.exit_code_table() + "\n")
    shown = without_colour(inside("--help").out)
    for line in failures.exit_code_table().splitlines():
        assert line.strip() in shown


def test_the_help_texts_are_the_recorded_ones() -> None:
    texts = []
    for path in ((), *sorted(COMMANDS)):
        run = inside(*path, "--help")
        assert run.code == 0
        texts.append(f"$ eventlog {' '.join((*path, '--help'))}\n{without_colour(run.out).strip()}\n")
    _require_recorded("help.txt", "\n\n".join(texts))


def test_short_and_long_help_are_the_same() -> None:
    assert inside("list", "-h").out == inside("list", "--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_knows_the_commands(shell: str) -> None:
    if shell == "bash":
        env = {"_EVENTLOG_COMPLETE": "complete_bash", "COMP_WORDS": "eventlog ver", "COMP_CWORD": "1"}
    else:
        env = {"_EVENTLOG_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "eventlog ver", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    run = inside(env=env)
    assert "verify" in run.out


def _require_recorded(file: str, text: str) -> None:
    """Holds a text against its snapshot; EVENTLOG_UPDATE_SNAPSHOTS=1 records it anew."""
    path = SNAPSHOTS / file
    if os.environ.get("EVENTLOG_UPDATE_SNAPSHOTS") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{file} has changed: if that is meant, run the test with EVENTLOG_UPDATE_SNAPSHOTS=1"
