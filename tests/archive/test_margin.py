"""The archive keeps ahead of compaction, and who falls behind is told in time."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from eventlog import CheckpointStore, Position, create_store, open_store
from eventlog.archive.directory import Archive
from eventlog.archive.margin import MarginState, archive_margin
from eventlog.archive.running import ArchiveRun, keep_archived, run_archive
from eventlog.doctor import Check, State, examine
from tests.archive.samples import grown
from tests.waiting import eventually

HOLD = 1_000_000


def states(store: CheckpointStore, archive: Archive | None, recorded_at: int) -> list[tuple[MarginState, int]]:
    """Just before and just behind each turn of the hold."""
    ages = (0, HOLD // 2, HOLD // 2 + 1, HOLD, HOLD + 1)
    found = [archive_margin(store, archive, hold_ms=HOLD, now_ms=recorded_at + age) for age in ages]
    return [(each.state, each.left_ms) for each in found]


def test_the_margin_is_what_is_left_of_the_hold_of_the_oldest_unarchived_revision(store: CheckpointStore, archive: Archive) -> None:
    checkpoint = grown(store, 2)[-1]
    first = next(iter(store.log.revisions(Position())))[0][0].recorded_at
    turns = [
        (MarginState.SAFE, HOLD),
        (MarginState.SAFE, HOLD // 2),
        (MarginState.SHORT, HOLD // 2 - 1),
        (MarginState.SHORT, 0),
        (MarginState.OVERTAKEN, -1),
    ]
    assert states(store, None, first) == turns
    run_archive(store, archive)
    assert states(store, archive, first) == [(MarginState.SAFE, HOLD)] * 5
    receipt = store.compare_and_swap(checkpoint.next({}), 1)
    assert states(store, archive, int(receipt.recorded_at.timestamp() * 1000)) == turns


def test_a_thread_keeps_the_archive_up_to_date_until_it_is_stopped(store: CheckpointStore, archive: Archive) -> None:
    stop, runs = threading.Event(), list[ArchiveRun]()
    grown(store, 2)
    arguments = {"every": 0.01, "stop": stop, "done": runs.append}
    thread = threading.Thread(target=keep_archived, args=(store, archive), kwargs=arguments)
    thread.start()
    eventually(lambda: runs)
    grown(store, 3, kind="acme.later")
    eventually(lambda: sum(run.events for run in runs) == 5)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert archive.end() == store.position()


@pytest.mark.broker
def test_doctor_warns_and_then_fails_as_the_hold_runs_out(broker: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"kafka://{broker}/{topic}?hold_ms=3600000&state={tmp_path / 'state'}"
    create_store(address, partitions=2)

    def found(hours: float) -> Check:
        monkeypatch.setattr("eventlog.archive.margin.time", _Later(hours))
        return next(check for check in examine(address) if check.check == "archive")

    with open_store(address) as store:
        grown(store, 2)
    assert (found(0).state, found(0.6).state) == (State.OK, State.WARN)
    assert "no archive" in found(0.6).detail
    assert found(1.1).state is State.WARN, "to keep no archive is a choice"
    with open_store(address) as store:
        run_archive(store, Archive(directory=tmp_path / "archive"))
        assert [found.state for found in (archive_margin(store, Archive(directory=tmp_path / "archive"), hold_ms=1),)] == [MarginState.SAFE]
        grown(store, 1)
    assert (found(0).state, found(0.6).state, found(1.1).state) == (State.OK, State.WARN, State.FAIL)
    assert "less than half of the hold" in found(0.6).detail
    assert "compaction may have overtaken it" in found(1.1).detail


class _Later:
    """A clock that is ahead."""

    def __init__(self, hours: float) -> None:
        self._seconds = hours * 3600

    def time(self) -> float:

        return time.time() + self._seconds
