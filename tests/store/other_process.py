"""What another process does with a store: `python other_process.py`, the work pickled on stdin, the answers pickled on stdout.

The work is an address and a list of calls, each a method's name and its arguments. The answer of a call is what it returned, or
(the error's class name, its attributes).
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]


class Refused(NamedTuple):
    """An error that another process got."""

    error: str
    attributes: dict[str, Any]


def start(
    address: str, calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] | None = None, *, race: Any = None
) -> subprocess.Popen[bytes]:
    """Starts a process that opens the store and makes the calls (or runs `race`: a checkpoint and a number of commits)."""
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY, env={**_environment()}
    )
    assert process.stdin is not None
    process.stdin.write(pickle.dumps((address, calls, race)))
    process.stdin.close()
    process.stdin = None
    return process


def finish(process: subprocess.Popen[bytes], timeout: float = 120) -> Any:
    out, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0
    return pickle.loads(out)


def calling(address: str, *calls: tuple[str, tuple[Any, ...], dict[str, Any]]) -> list[Any]:
    """The answers of another process to some calls."""
    answers: list[Any] = finish(start(address, list(calls)))
    return answers


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": f"{REPOSITORY}"}


def _main() -> None:
    from eventlog import CheckpointError, Conflict, open_store
    from tests.store import other_process as me  # pickled classes need their importable name

    address, calls, race = pickle.loads(sys.stdin.buffer.read())
    answers: list[Any] = []
    with open_store(address, actor="another process") as store:
        for name, arguments, named in calls or ():
            try:
                answer = getattr(store, name)(*arguments, **named)
                if name == "history":
                    answer = list(answer)
                elif name == "compare_and_swap_many":
                    answer = [me.Refused(type(each).__name__, vars(each)) if isinstance(each, CheckpointError) else each for each in answer]
                answers.append(answer)
            except CheckpointError as error:
                answers.append(me.Refused(type(error).__name__, vars(error)))
        if race is not None:
            checkpoint_id, wanted, until = race
            while len([each for each in answers if each[0] == "won"]) < wanted:
                loaded = store.load(checkpoint_id)
                if loaded.revision >= until:
                    break
                following = loaded.next({"by": "another"})
                try:
                    answers.append(("won", store.compare_and_swap(following, loaded.revision)))
                except Conflict as error:
                    answers.append(("lost", following.event_id, error.actual))
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(pickle.dumps(answers))


if __name__ == "__main__":
    _main()
