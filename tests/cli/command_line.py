"""The command line under test: in this process where that tells as much, in a real one where exit codes and pipes matter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from eventlog.cli import app

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "eventlog.cli"]
WIDTH = "100"

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Result(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON document that it printed."""
        assert self.code == 0, self
        return json.loads(self.out)

    def error(self) -> dict[str, Any]:
        """The JSON object on stderr of a command that failed with --format json."""
        found: dict[str, Any] = json.loads(self.err)["error"]
        return found


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without settings of the command line and with a known width."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_") and name not in {"FORCE_COLOR", "NO_COLOR"}
    }
    return {**kept, "PYTHONPATH": str(REPOSITORY), "COLUMNS": WIDTH, **(extra or {})}


def eventlog(*arguments: str | Path, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Result:
    """Runs the command in a process of its own, in a pipe."""
    command = [*COMMAND, *map(str, arguments)]
    run = subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment(env), cwd=cwd, timeout=120, check=False)
    return Result(run.returncode, run.stdout, run.stderr)


def inside(*arguments: str | Path, stdin: str = "", env: Mapping[str, str] | None = None) -> Result:
    """Runs the command in this process."""
    unset = {name: None for name in os.environ if name.startswith("EVENTLOG_")}
    run = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin, env={**unset, "COLUMNS": WIDTH, **(env or {})})
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        raise run.exception
    return Result(run.exit_code, run.stdout, run.stderr)


def without_colour(text: str) -> str:
    """A text as a pipe would get it, without blanks at the lines' ends."""
    return "\n".join(line.rstrip() for line in _ESCAPES.sub("", text).splitlines())


def new_store(folder: Path) -> Path:
    """A store that the command line has made."""
    address = folder / "store"
    assert inside("init", "--store", address).code == 0
    return address


def put(store: Path, payload: Any, *arguments: str) -> dict[str, Any]:
    """Commits a payload; the receipt."""
    receipt: dict[str, Any] = inside("put", "-", *arguments, "--store", store, "--format", "json", stdin=json.dumps(payload)).json()
    return receipt
