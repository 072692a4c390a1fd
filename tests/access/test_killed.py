"""A process that is killed has handed out nothing that is not on record (strict), or no more than the stated bound (buffered)."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from eventlog import create_store, open_store
from eventlog.privacy.recorder import BUFFERED_SECONDS, MOST_BUFFERED
from eventlog.verification import verify
from tests.access import reading_process
from tests.access.conftest import made
from tests.access.samples import trail
from tests.store.samples import initial

THREADS = 4
LINES = 400


def _killed(address: str, ids: list[str], *, lines: int) -> tuple[str, Counter[tuple[str, str, int]]]:
    """What a process had been handed when it was killed."""
    subject = f"victim-{uuid.uuid4().hex[:8]}"
    child = reading_process.start(address, subject, *ids)
    assert child.stdout is not None
    printed = [child.stdout.readline() for _ in range(lines)]
    child.kill()
    rest, complaint = child.communicate(timeout=60)
    printed += rest.splitlines()
    handed: Counter[tuple[str, str, int]] = Counter()
    for line in printed:
        words = line.split()
        if len(words) == 3:  # the last line may be cut
            handed[words[0], words[1], int(words[2])] += 1
    assert handed.total() >= lines - 1, complaint
    return subject, handed


def _recorded(address: str, subject: str) -> Counter[tuple[str, str, int]]:
    with open_store(address) as store:
        rows = trail(store, subject=subject)
        assert verify(store).is_clean
    action = {"load": "read", "compare_and_swap": "wrote"}
    return Counter((action[row["action"]], str(row["checkpoint_id"]), row["revision"]) for row in rows if row["outcome"] == "allowed")


def _checkpoints(address: str) -> list[str]:
    with open_store(address) as store:
        made = [initial() for _ in range(THREADS)]
        for each in made:
            store.compare_and_swap(each, None)
    return [str(each.id) for each in made]


def test_strict_everything_that_was_handed_out_by_a_killed_process_is_on_record(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = made(kind, request, tmp_path)
    ids = _checkpoints(address)
    subject, handed = _killed(address, ids, lines=LINES if kind == "embedded" else 100)
    missing = handed - _recorded(address, subject)
    assert not missing


def test_buffered_a_killed_process_loses_no_more_than_is_stated(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="buffered")
    address = str(tmp_path / "store")
    ids = _checkpoints(address)
    subject, handed = _killed(address, ids, lines=2_000)
    lost = handed - _recorded(address, subject)
    assert 0 < lost.total() <= MOST_BUFFERED, "nothing was lost: then it was not buffered"


def test_buffered_what_is_older_than_the_bound_is_on_record(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="buffered")
    first = initial()
    with open_store(tmp_path / "store", actor="root") as store:
        store.compare_and_swap(first, None)
        started = time.monotonic()
        with open_store(tmp_path / "store", actor="other") as other:
            while not trail(other, subject="root"):
                assert time.monotonic() - started < 20 * BUFFERED_SECONDS
                time.sleep(0.02)
    with open_store(tmp_path / "store") as again:
        assert [row["action"] for row in trail(again, checkpoint=str(first.id))] == ["compare_and_swap"]  # flushed on close
