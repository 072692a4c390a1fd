"""A short pass of what `make chaos` does for as long as one likes."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest

from tests.chaos import episode
from tests.chaos.grounds import GROUNDS, Ground

SECONDS = 12.0


@pytest.mark.parametrize(
    "kind", [pytest.param(each, id=each.NAME, marks=[pytest.mark.broker] if each.NAME == "kafka" else []) for each in GROUNDS]
)
def test_whatever_happens_to_writers_and_log_every_answer_was_true(kind: type[Ground], tmp_path: Path) -> None:
    seed = os.environ.get("EVENTLOG_CHAOS_SEED") or secrets.token_hex(4)
    sys.stdout.write(f"seed {seed}: EVENTLOG_CHAOS_SEED={seed} draws the same again\n")
    ground = kind(tmp_path)
    with ground.standing():
        found = episode.run(ground, number=1, seed=seed, seconds=SECONDS, folder=tmp_path / "episode")
    sys.stdout.write(f"{found.summary}\n{dict(found.happened)}\n")

    assert not found.problems, "\n".join(found.problems)
    found.summary.require(committed=20, conflicts=5, reads=10, duplicates=1)
    assert found.happened["workers started"] >= episode.WORKERS
