"""One exit code a kind of failure, as a script sees it: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointId, RunId, open_store
from tests.cli.command_line import COMMAND, Result, environment, eventlog, new_store, put

UNKNOWN = "0197a0b0-0000-7000-8000-00000000dead"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_store(tmp_path_factory.mktemp("exit-codes"))


def _failed(run: Result, code: int) -> None:
    assert run.code == code, run
    assert "Traceback" not in run.err
    assert run.out == ""


def test_success_is_0(store: Path) -> None:
    assert eventlog("list", "--kind", "acme.nothing", "--store", store) == Result(0, "", "no checkpoints match\n")


def test_a_wrong_command_line_is_2() -> None:
    _failed(eventlog("list", "--no-such-option"), 2)
    _failed(eventlog("no-such-command"), 2)


def test_not_found_is_3_with_a_message_and_a_hint(store: Path) -> None:
    run = eventlog("get", UNKNOWN, "--store", store)
    _failed(run, 3)
    message, hint = run.err.splitlines()
    assert message == f"error: checkpoint {UNKNOWN} not found"
    assert hint.startswith("hint: ")


def test_a_conflict_is_4_and_says_where_the_checkpoint_is(store: Path) -> None:
    receipt = put(store, {"n": 0}, "--kind", "acme.order")
    put(store, {"n": 1}, "--id", receipt["id"], "--expect", "0")
    run = eventlog("put", "-", "--id", receipt["id"], "--expect", "0", "--store", store, "--format", "json", stdin='{"n": 2}')
    _failed(run, 4)
    error = run.error()
    assert (error["kind"], error["exit_code"], error["actual"], error["proposed"]) == ("CONFLICT", 4, 1, 1)


@pytest.mark.parametrize("text", ["", "{", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', '"\\ud800"', "[" * 5000])
def test_a_payload_that_is_not_json_is_5(store: Path, text: str) -> None:
    _failed(eventlog("put", "-", "--kind", "acme.order", "--store", store, stdin=text), 5)


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "not-a-uuid"),
        ("get", UNKNOWN, "--at", "yesterday"),
        ("get", UNKNOWN, "--at", "2026-01-01T00:00:00"),
        ("list", "--label", "no-equals-sign"),
        ("put", "/no/such/file", "--kind", "acme.order"),
        ("sql", "DELETE FROM heads"),
        ("report", "audit", "--checkpoint", "not-a-uuid"),
        ("topic", "check"),
    ],
)
def test_a_malformed_value_is_6(store: Path, arguments: tuple[str, ...]) -> None:
    _failed(eventlog(*arguments, "--store", store), 6)


def test_no_store_named_is_6() -> None:
    run = eventlog("list")
    _failed(run, 6)
    assert "EVENTLOG_STORE" in run.err


def test_too_large_is_7_and_both_sizes_are_named(store: Path) -> None:
    run = eventlog("put", "-", "--kind", "acme.blob", "--store", store, "--format", "json", stdin=json.dumps(os.urandom(9 << 20).hex()))
    _failed(run, 7)
    assert run.error()["size"] > run.error()["limit"] > 0


def test_removed_history_is_12(store: Path) -> None:
    imported = Checkpoint.initial(CheckpointId.new(), RunId.new(), "acme.order", 1, None).model_copy(update={"revision": 7})
    with open_store(store) as opened:
        opened.import_revision(imported)
    _failed(eventlog("get", imported.id, "--revision", "3", "--store", store), 12)


def test_damaged_files_are_13(tmp_path: Path) -> None:
    damaged = new_store(tmp_path)
    (damaged / "log.sqlite3").write_bytes(b"not a database at all" * 1000)
    _failed(eventlog("list", "--store", damaged), 13)


def test_an_unreachable_broker_is_14_and_is_named() -> None:
    run = eventlog("topic", "check", "--store", "kafka://127.0.0.1:1/orders")
    _failed(run, 14)
    assert "127.0.0.1:1" in run.err


def test_no_store_there_is_15(tmp_path: Path) -> None:
    _failed(eventlog("list", "--store", tmp_path), 15)
    (tmp_path / "something").touch()
    _failed(eventlog("init", "--store", tmp_path), 15)


def test_ctrl_c_is_130_without_a_traceback(store: Path) -> None:
    command = [*COMMAND, "tail", "--from-start", "--store", str(store), "--format", "csv"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where a shell has started the tests in the background
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("position,")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "")


def test_a_reader_that_has_gone_ends_it_quietly_with_141(store: Path) -> None:
    put(store, {"n": 0}, "--kind", "acme.order")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        run = subprocess.run(
            [*COMMAND, "list", "--store", str(store)], stdout=closed, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )
    assert (run.returncode, run.stderr) == (141, "")
