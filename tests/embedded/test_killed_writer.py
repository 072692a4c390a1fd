"""Promise 2: nothing acknowledged is lost, whatever is killed at whatever instruction."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventlog import CheckpointStore, Position, open_store
from tests.store.samples import chain_is_intact, revisions, stream

PROCESS = Path(__file__).parent / "busy_process.py"
REPOSITORY = Path(__file__).resolve().parents[2]


def started(directory: Path, seconds: float, threads: int, ids: list[str]) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(PROCESS), str(directory), str(seconds), str(threads), *ids]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment)


class Said:
    """What writers have said that they got."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, tuple[str, int]] = {}
        self.refused: set[str] = set()

    def add(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            sign, event_id, *rest = line.split()
            if sign == "+":
                assert event_id not in self.acknowledged
                self.acknowledged[event_id] = (rest[0], int(rest[1]))
            else:
                self.refused.add(event_id)


def check(store: CheckpointStore, said: Said, ids: list[str], *, unacknowledged: int) -> None:
    """Everything acknowledged is there exactly once, nothing refused is, no gap, the chain intact."""
    there: dict[str, tuple[str, int]] = {}
    for checkpoint_id in ids:
        history = revisions(store, checkpoint_id)
        assert chain_is_intact(history)
        for each in history[1:]:
            assert each.checkpoint.event_id not in there
            there[each.checkpoint.event_id] = (checkpoint_id, each.checkpoint.revision)
    assert said.acknowledged.items() <= there.items()
    assert not said.refused & there.keys()
    assert len(there) - len(said.acknowledged) <= unacknowledged
    events = list(store.subscribe(Position(), idle_timeout=0))
    assert len(events) == len(there) + len(ids)
    assert [each.position for each in events] == [Position(((0, number + 1),)) for number in range(len(events))]


@pytest.mark.parametrize("threads", [1, 4])
def test_nothing_acknowledged_is_lost_by_kill_9(store: CheckpointStore, directory: Path, threads: int) -> None:
    ids = [str(stream(store, 1)[0].id) for _ in range(3)]
    chance = random.Random(threads)
    said = Said()
    kills = 8
    for number in range(kills):
        process = started(directory, 60, threads, ids)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        said.add(first + process.stdout.read())
        process.wait()
        process.stdout.close()
        with open_store(directory) as fresh:
            check(fresh, said, ids, unacknowledged=(number + 1) * threads)
    assert len(said.acknowledged) > kills
    check(store, said, ids, unacknowledged=kills * threads)


def test_processes_and_threads_at_once_lose_and_repeat_nothing(store: CheckpointStore, directory: Path) -> None:
    ids = [str(stream(store, 1)[0].id) for _ in range(4)]
    running = [started(directory, 3, 3, ids) for _ in range(3)]
    said = Said()
    for each in running:
        out, _ = each.communicate(timeout=120)
        assert each.returncode == 0
        said.add(out)
    check(store, said, ids, unacknowledged=0)
    assert len(said.acknowledged) > 100
    assert len(said.refused) > 0


def test_one_killed_among_others_stops_nobody(store: CheckpointStore, directory: Path) -> None:
    ids = [str(stream(store, 1)[0].id) for _ in range(2)]
    survivor, victim = started(directory, 3, 2, ids), started(directory, 60, 2, ids)
    assert victim.stdout is not None
    first = victim.stdout.readline()
    time.sleep(0.3)
    victim.kill()
    said = Said()
    said.add(first + victim.stdout.read())
    victim.wait()
    victim.stdout.close()
    out, _ = survivor.communicate(timeout=60)
    assert survivor.returncode == 0
    said.add(out)
    check(store, said, ids, unacknowledged=2)
