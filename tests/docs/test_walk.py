"""examples/keep_and_let_go.py: 200 conversations, half of them erased, and the same answers as before about the other half."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_CONVERSATIONS = "tau-airline-trajectories.jsonl.gz"


def walk(*arguments: str | Path) -> str:
    command = [sys.executable, REPOSITORY / "examples" / "keep_and_let_go.py", *arguments]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
    )
    assert run.returncode == 0, (run.stdout[-4000:], run.stderr[-4000:])
    return run.stdout.splitlines()[-1]


def test_the_walk_needs_nothing_but_a_directory(tmp_path: Path) -> None:
    assert walk(tmp_path / "walk") == "The same answers as before for 10 conversations, and none for 10."


def test_half_of_200_conversations_are_let_go_and_the_others_kept(tmp_path: Path, shared_data: Path) -> None:
    assert walk(tmp_path / "walk", shared_data / _CONVERSATIONS) == "The same answers as before for 100 conversations, and none for 100."


def test_half_of_200_conversations_are_let_go_and_the_others_kept_on_kafka(tmp_path: Path, shared_data: Path, broker: str) -> None:
    said = walk(tmp_path / "walk", shared_data / _CONVERSATIONS, "--broker", broker)
    assert said == "The same answers as before for 100 conversations, and none for 100."
