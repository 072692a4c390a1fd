"""Several processes on one topic: they should not be, but nothing may go wrong when they are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from eventlog import Checkpoint, CheckpointId, RunId, create_store, open_store
from eventlog.revision import Revision

WRITERS = 3
CHECKPOINTS = 4
SECONDS = 15.0


def run_writers(address: str, folder: Path, ids: list[str], *, processes: int, seconds: float) -> list[dict[str, object]]:
    """What all writers were told."""
    folder.mkdir(parents=True, exist_ok=True)
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.kafka_log.contending_writer",
                f"{address}?state={folder / f'state-{number}'}",
                f"process-{number}",
                ",".join(ids),
                str(WRITERS),
                str(seconds),
                str(folder / f"out-{number}"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for number in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=seconds + 60)
        assert process.returncode == 0
    return [json.loads(line) for number in range(processes) for line in (folder / f"out-{number}").read_text().splitlines()]


def test_two_processes_with_three_writers_each_never_lose_or_invent_a_revision(broker: str, topic: str, tmp_path: Path) -> None:
    address = f"kafka://{broker}/{topic}"
    create_store(address, partitions=2)
    with open_store(f"{address}?state={tmp_path / 'reader'}") as store:
        ids: list[str] = []
        for _ in range(CHECKPOINTS):
            first = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.contended", 1, {})
            store.compare_and_swap(first, None)
            ids.append(first.id)
        told = run_writers(address, tmp_path / "two", ids, processes=2, seconds=SECONDS)
        in_log: dict[str, str] = {}
        for checkpoint_id in ids:
            revisions = [each for each in store.history(checkpoint_id) if isinstance(each, Revision)]
            assert [each.checkpoint.revision for each in revisions] == list(range(len(revisions)))
            for revision in revisions[1:]:
                assert revision.checkpoint.event_id not in in_log
                in_log[revision.checkpoint.event_id] = checkpoint_id

    outcomes = Counter(str(each["outcome"]) for each in told)
    sys.stdout.write(f"{dict(outcomes)}\n")
    for each in told:
        if each["outcome"] == "committed":
            assert in_log.get(str(each["event"])) == each["id"], "an acknowledged event is not in the log"
        if each["outcome"] == "conflict":
            assert each["event"] not in in_log, "a conflict was committed"
    committed = {each["event"] for each in told if each["outcome"] == "committed"}
    unknown = {each["event"] for each in told if each["outcome"] == "unknown"}
    assert set(in_log) <= committed | unknown
    assert outcomes["committed"] > 20, "too little happened"
    assert outcomes["conflict"] > 20, "too little happened"
