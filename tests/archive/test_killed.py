"""Whoever archives or compacts may be killed at any instruction: no half segment has a name, nothing is lost, and it goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from eventlog import Position, Revision, open_store
from eventlog.archive.anchors import Anchor, take_anchor
from eventlog.archive.checking import check_archive
from eventlog.archive.compacting import compact
from eventlog.archive.directory import Archive
from eventlog.archive.running import Limits, run_archive
from eventlog.verification import verify

REPOSITORY = Path(__file__).resolve().parents[2]
KILLS = 8


def test_an_archiver_killed_at_random_leaves_whole_segments_and_a_whole_history(directory: Path, archive: Archive) -> None:
    chance = random.Random(7)
    command = [sys.executable, "-m", "tests.archive.killed_process", str(directory), str(archive.directory)]
    anchor: Anchor | None = None
    written = 0
    for _ in range(KILLS):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        time.sleep(chance.uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        written += 1 + len(process.stdout.read().splitlines())
        process.wait()
        process.stdout.close()
        if archive.partitions():
            check_archive(archive)
        with open_store(directory) as store:
            found = verify(store, archive=archive, anchor=anchor)
            assert found.is_clean, found.faults
            events = list(store.subscribe(Position(), idle_timeout=0))  # with every body, wherever it is
            assert len(events) == found.events >= 6 * written
            assert all(isinstance(each, Revision) for each in events)
            anchor = take_anchor(store.log)
    with open_store(directory) as store:
        run_archive(store, archive, limits=Limits(rows=4))
        compact(store, archive, hold_ms=0)
        found = verify(store, archive=archive, anchor=anchor)
        assert found.is_clean, found.faults
        assert found.archived == found.events
        assert found.moved == found.events - found.checkpoints, "all but the heads"
    left = {each.suffix for each in (archive.directory / "0").iterdir()}
    assert left == {".parquet", ".json"}
