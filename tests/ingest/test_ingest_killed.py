"""An ingest that is killed at any moment and started again gives the streams of one undisturbed run."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

import pytest

from eventlog import Position, create_store, open_store
from eventlog.ingest import IngestSummary, ingest_chats
from eventlog.verification import verify
from tests.cli.command_line import COMMAND, environment
from tests.ingest.conftest import NewStore
from tests.ingest.conversations import content, conversation, write
from tests.waiting import eventually

KILLS = 5


def _ingest(address: str, file: Path) -> subprocess.Popen[str]:
    command = [*COMMAND, "ingest", "chats", str(file), "--store", address, "--actor", "tester", "--format", "json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def _killed(address: str, file: Path, moments: list[int]) -> None:
    """Starts an ingest, kills it when the log is about so long, and so on; then lets one finish."""
    for moment in moments:
        process = _ingest(address, file)
        try:
            with open_store(f"{address}-watching" if address.startswith("kafka://") else address) as watching:
                eventually(lambda: process.poll() is not None or _length(watching.position()) >= moment, seconds=120)  # noqa: B023
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert process.returncode == -signal.SIGKILL, "it had ended before it could be killed"
    out, err = _ingest(address, file).communicate(timeout=300)
    assert err == "", out


def _length(position: Position) -> int:
    return sum(offset for _, offset in position.offsets)


def _compare(new_store: NewStore, file: Path, revisions: int) -> IngestSummary:
    """An undisturbed run and a disturbed one; the summary of the first."""
    undisturbed, disturbed = new_store("undisturbed"), new_store("disturbed")
    part = revisions // (KILLS + 2)  # each kill somewhere in a part of its own, with some work left behind the last one
    _killed(disturbed, file, [kill * part + random.randrange(1, part) for kill in range(KILLS)])
    with open_store(undisturbed, actor="tester") as one, open_store(disturbed, actor="tester") as other:
        summary = ingest_chats(one, file)
        assert summary.committed == revisions
        assert ingest_chats(other, file).already_there == revisions
        expected, found = content(one), content(other)
        assert found.keys() == expected.keys()
        assert found == expected
        found_wrong = [verify(store).faults for store in (one, other)]
        assert found_wrong == [[], []]
    return summary


def test_killed_five_times_it_gives_the_same_streams(tmp_path: Path) -> None:
    def embedded(name: str) -> str:
        create_store(tmp_path / name)
        return str(tmp_path / name)

    _compare(embedded, write(tmp_path / "chats.jsonl", [conversation(number, 8, words=200) for number in range(60)]), 60 * 17)


@pytest.mark.shared_data
def test_the_200_real_conversations_killed_five_times(new_store: NewStore, shared_data: Path) -> None:
    summary = _compare(new_store, shared_data / "tau-airline-trajectories.jsonl.gz", 5108)
    assert (summary.conversations, summary.malformed) == (200, [])
    assert summary.bytes == 63_197_887
