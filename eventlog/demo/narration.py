"""The demo: an agent's turns, a race, a killed process, and what a new process finds."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.demo.orders import KIND, NEXT_CALL, TURNS, finished, in_flight, opening
from eventlog.embedded_files import LOG_FILE
from eventlog.errors import ConfigurationError
from eventlog.opening import create_store, open_store
from eventlog.store import CheckpointStore

__all__ = ["run_demo"]

Child = subprocess.Popen[str]


def run_demo(directory: Path) -> None:
    """Runs the demo on an embedded store in a directory, a new one or the one of an earlier demo.

    Raises `ConfigurationError` when the directory holds anything else.
    """
    Demo(directory=directory).run()


class Demo:
    """One run, step by step."""

    def __init__(self, *, directory: Path) -> None:
        self._directory = directory
        self._console = Console(highlight=False, soft_wrap=True)

    def run(self) -> None:
        started = time.monotonic()
        self._prepare()
        checkpoint_id = self._agent_commits()
        self._writers_race(checkpoint_id)
        self._process_is_killed(checkpoint_id)
        self._new_process_looks(checkpoint_id)
        self._say(f"\nThe store is in {self._directory} and stays there ({time.monotonic() - started:.0f} s). Try on it:")
        for command in (
            ["get", checkpoint_id],
            ["get", checkpoint_id, "--revision", "1", "--payload"],
            ["sql", "SELECT phase, count(*) FROM checkpoint_history GROUP BY phase"],
            ["doctor"],
        ):
            self._say(f"  {self._command_line(command)}", "cyan")

    # -- the steps ----------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        if not (self._directory / LOG_FILE).exists():
            create_store(self._directory)
            return
        with open_store(self._directory) as store:
            kinds = [row[0] for row in store.catalog.sql("SELECT DISTINCT kind FROM checkpoint_heads").rows]
        if any(kind != KIND for kind in kinds):
            raise ConfigurationError(f"{self._directory} holds a store that is not the demo's", hint="Name another directory.")

    def _agent_commits(self) -> str:
        self._title("1. An agent handles an order. Each turn is committed by compare-and-swap: first the intent, then the result.")
        with open_store(self._directory, actor="order-agent") as store:
            current = opening()
            self._commit(store, current, "the complaint")
            for turn in TURNS:
                flying = in_flight(current)
                self._commit(store, flying, f"about to call {turn.call}")
                current = finished(flying, turn)
                self._commit(store, current, f"it answered: {turn.answer}")
            again = store.compare_and_swap(current, current.revision - 1)
            self._say(
                f"   The last one sent again, as after a lost answer: its first receipt, revision {again.revision}, nothing written twice."
            )
        return current.id

    def _commit(self, store: CheckpointStore, checkpoint: Checkpoint, why: str) -> Receipt:
        started = time.perf_counter()
        receipt = store.compare_and_swap(checkpoint, checkpoint.revision - 1 if checkpoint.revision else None)
        millis = (time.perf_counter() - started) * 1000
        self._say(f"   revision {receipt.revision}  {checkpoint.phase:<15} {millis:5.1f} ms  {why}", "green")
        return receipt

    def _writers_race(self, checkpoint_id: str) -> None:
        self._title("2. Two processes race for the next revision. Both have loaded the same one; one wins, the other is told.")
        racers = {name: self._child("race", checkpoint_id, name) for name in ("writer-a", "writer-b")}
        for child in racers.values():
            _hear(child)
        for child in racers.values():
            _tell(child)
        for name, child in racers.items():
            answer = _hear(child)
            if answer["won"]:
                self._say(f"   {name} won: committed revision {answer['revision']}", "green")
            else:
                self._say(f"   {name} was told: {answer['told']}", "yellow")
            _end(child)

    def _process_is_killed(self, checkpoint_id: str) -> None:
        self._title("3. A process commits that a turn is in flight, calls out, and is killed (SIGKILL) before any answer.")
        child = self._child("turn", checkpoint_id, "order-agent")
        answer = _hear(child)
        self._say(f"   process {child.pid} committed revision {answer['revision']}: about to call {NEXT_CALL}", "green")
        child.send_signal(signal.SIGKILL)
        child.wait()
        self._say(f"   process {child.pid} is dead (signal {-child.returncode}). Was the refund made? Nobody here knows.", "bold red")
        _end(child)

    def _new_process_looks(self, checkpoint_id: str) -> None:
        self._title("4. New processes look at what is left. The turn is still in flight: nothing here guesses success or failure.")
        self._eventlog(["list", "--phase", "turn_in_flight"])
        self._eventlog(["log", checkpoint_id])
        self._say(
            "\n   Every event checked against its digest, its checkpoint's hash chain and the rules, and the read side against the log:"
        )
        self._eventlog(["verify"])
        self._say("\n   A report from DuckDB:")
        self._eventlog(["report", "retention"])

    # -- processes ----------------------------------------------------------------------------------------------

    def _child(self, *arguments: str) -> Child:
        what, checkpoint_id, name = arguments
        command = [sys.executable, "-m", "eventlog.demo.orders", what, str(self._directory), checkpoint_id, name]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment())

    def _eventlog(self, arguments: list[str]) -> None:
        self._say(f"\n$ {self._command_line(arguments)}", "cyan")
        sys.stdout.flush()
        command = [sys.executable, "-m", "eventlog.cli", *arguments, "--store", str(self._directory)]
        subprocess.run(command, check=True, env=_environment())

    def _command_line(self, arguments: list[str]) -> str:
        return shlex.join(["eventlog", *arguments, "--store", str(self._directory)])

    # -- words --------------------------------------------------------------------------------------------------

    def _title(self, text: str) -> None:
        self._say(f"\n{text}", "bold")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))


def _environment() -> dict[str, str]:
    """Ours, but without settings that would change what the demo shows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    return {**kept, "EVENTLOG_FORMAT": "table"}


def _hear(child: Child) -> dict[str, Any]:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise ConfigurationError(f"a process of the demo ended early, with exit code {child.wait()}", hint="Its own message stands above.")
    heard: dict[str, Any] = json.loads(line)
    return heard


def _tell(child: Child) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def _end(child: Child) -> None:
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
    child.wait()
