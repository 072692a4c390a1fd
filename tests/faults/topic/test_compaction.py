"""Compaction at work under conflicts, kills, take-overs and deletions: nothing that it leaves says anything else than what happened.

A witness has read everything from the beginning; a projection that is built from what is left is held against it.

Environment: EVENTLOG_CHAOS_MINUTES (12 seconds unless given), EVENTLOG_CHAOS_SEED.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointStore, HistoryRemoved, OutcomeUnknown, Position, Revision, open_store
from eventlog.kafka.log import KafkaLog
from eventlog.log import LogIdentity, Record
from eventlog.projector import follow
from eventlog.revision import Gap
from eventlog.testing import MemoryJournal, RecordedHistory, Recorder, check, log_of
from eventlog.verification import verify
from projections.engine import Projection
from projections.history import gaps
from tests.faults.topic.conftest import OpenTopic
from tests.faults.topic.topics import TINY, Topic
from tests.kafka_log.samples import event_of, initial
from tests.waiting import eventually

REPOSITORY = Path(__file__).parents[3]
SHARED = 6
HEADS = """
SELECT checkpoint_id::VARCHAR, revision, event_id::VARCHAR, event_hash, partition, "offset", type FROM heads ORDER BY checkpoint_id
"""


def chaos_seconds() -> float:
    return float(os.environ.get("EVENTLOG_CHAOS_MINUTES", "0.2")) * 60


def chaos_seed() -> str:
    return os.environ.get("EVENTLOG_CHAOS_SEED") or secrets.token_hex(4)


class Processes:
    """Writers with a projection each. One that is killed starts again with the projection that it had."""

    def __init__(self, made: Topic, folder: Path, shared: list[str], seed: str) -> None:
        self.made = made
        self.folder = folder
        self.shared = shared
        self.seed = seed
        self.kills = 0
        self.running: dict[int, subprocess.Popen[str]] = {}
        self.journals: list[Path] = []
        self.dead: dict[str | Path, int] = {}

    def start(self, number: int) -> None:
        journal = self.folder / f"writer-{number}-{len(self.journals)}.jsonl"
        self.journals.append(journal)
        address = f"{self.made.address}&state={self.folder / f'state-{number}'}"
        command = [sys.executable, "-W", "ignore", "-m", "tests.faults.topic.restless_writer", address, str(journal), ",".join(self.shared)]
        self.running[number] = subprocess.Popen(
            [*command, f"{self.seed}-{len(self.journals)}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
        )
        started = self.running[number].stdout
        assert started is not None
        assert started.readline() == "writing\n"

    def kill(self, number: int) -> None:
        process = self.running.pop(number)
        process.kill()
        process.communicate()
        self.dead[self.journals_of(number)[-1]] = time.monotonic_ns()
        self.kills += 1

    def journals_of(self, number: int) -> list[Path]:
        return [each for each in self.journals if each.name.startswith(f"writer-{number}-")]

    def end(self) -> None:
        for process in self.running.values():
            assert process.stdin is not None
            process.stdin.write("enough\n")
            process.stdin.flush()
        for process in self.running.values():
            process.communicate(timeout=60)
            assert process.returncode == 0
        self.running = {}

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.communicate()

    @property
    def history(self) -> RecordedHistory:
        return RecordedHistory(self.journals, ended=self.dead)


def heads(store: CheckpointStore) -> list[tuple[object, ...]]:
    return store.catalog.projection().query(HEADS)


def require_same(fresh: CheckpointStore, witness: CheckpointStore, ids: list[str]) -> int:
    """Holds what is left against what happened; returns how many revisions are gone."""
    gone = 0
    for checkpoint_id in ids:
        left, happened = list(fresh.history(checkpoint_id)), list(witness.history(checkpoint_id))
        revisions = {each.checkpoint.revision: each for each in happened if isinstance(each, Revision)}
        covered: list[int] = []
        for each in left:
            if isinstance(each, Gap):
                assert each.reason == "compaction"
                covered.extend(range(each.first_revision, each.last_revision + 1))
                gone += each.last_revision - each.first_revision + 1
            else:
                there = revisions.get(each.checkpoint.revision)
                assert there is None or each._replace(as_of=None) == there._replace(as_of=None), "another event than the one that won"
                covered.append(each.checkpoint.revision)
        assert covered == list(range(covered[-1] + 1)), "a gap that is not reported"
        for before, after in pairwise(each for each in left if isinstance(each, Revision)):
            if after.checkpoint.revision == before.checkpoint.revision + 1:
                assert after.previous_hash == before.hash, "the chain is broken where nothing is missing"
    return gone


def test_what_compaction_leaves_under_load_says_what_happened(made: Topic, opening: OpenTopic, tmp_path: Path) -> None:
    seed, seconds = chaos_seed(), chaos_seconds()
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    made.alter(TINY)
    witness = opening("witness")
    shared = [initial(kind="test.shared") for _ in range(SHARED)]
    beginning = Recorder(witness, journal := MemoryJournal())
    for each in shared:
        beginning.compare_and_swap(each, None)
    writers = Processes(made, tmp_path, [each.id for each in shared], seed)
    rebuilds = 0
    try:
        for number in (0, 1):
            writers.start(number)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends or writers.kills < 2:
            number = chance.randrange(2)
            wait = chance.uniform(0.5, 2.0)
            fresh = open_store(f"{made.address}&state={tmp_path / f'during-{rebuilds}'}")
            with fresh:  # built while the cleaner runs: what is removed meanwhile is a gap, never somebody's fault
                assert fresh.catalog.sql("SELECT reason FROM quarantined_records").rows == []
            rebuilds += 1
            moment = time.monotonic() + wait
            eventually(lambda moment=moment: time.monotonic() > moment)  # type: ignore[misc]
            writers.kill(number)
            writers.start(number)
        writers.end()
    finally:
        writers.close()

    history = [*journal, *writers.history]
    proposed = {each.checkpoint_id for each in history if each.checkpoint_id is not None}
    present = {str(row[0]) for row in heads(witness)}
    ids = sorted(proposed | present)
    verdict = check(history, log_of(witness, ids))
    verdict.require_none()
    fresh = opening("from what is left")
    assert heads(fresh) == heads(witness), "another head, or a loser that came back"
    gone = require_same(fresh, witness, sorted(present))
    for store in (fresh, witness):
        assert store.catalog.sql("SELECT reason FROM quarantined_records").rows == []
        checked = verify(store)
        assert checked.is_clean, checked.faults
    last: dict[str, int] = {}
    kept = 0
    for records, _ in witness.log.read(Position()):
        for record in records:
            kept += 1
            last[(record.key or b"").decode()] = record.offset
    assert last == {row[0]: row[5] for row in heads(witness)}
    assert isinstance(fresh.log, KafkaLog)
    types = Counter(str(row[6]) for row in heads(witness))
    sys.stdout.write(
        f"{verdict.summary}\nkills {writers.kills}, projections built meanwhile {rebuilds},"
        f" revisions gone {gone}, records kept {kept}, {dict(types)}\n"
    )
    verdict.summary.require(committed=100, conflicts=10, revisions=100)
    assert gone > 50, "too little was compacted"
    assert types["DELETED"] >= 2


@pytest.fixture
def compacted(made: Topic, opening: OpenTopic) -> tuple[CheckpointStore, list[Checkpoint]]:
    """A store, and the revisions of a checkpoint of which the topic holds the last one only."""
    made.alter(TINY)
    store = opening("witness")
    revisions = [initial(partition=0)]
    store.compare_and_swap(revisions[0], None)
    for number in range(1, 6):
        revisions.append(revisions[-1].next({"revision": number}))
        store.compare_and_swap(revisions[-1], number - 1)

    def cleaned() -> bool:
        store.compare_and_swap(initial(partition=0), None)  # a segment is rolled by what is appended to it
        keys = [record.key for records, _ in store.log.read(Position()) for record in records]
        return keys.count(revisions[0].id.encode()) == 1

    eventually(cleaned, seconds=60)
    return store, revisions


def test_a_retry_of_an_event_that_compaction_removed_is_unknown_and_no_conflict(
    compacted: tuple[CheckpointStore, list[Checkpoint]], opening: OpenTopic
) -> None:
    """It was committed: whoever calls it a conflict says that it is not in the log and never was."""
    witness, revisions = compacted
    assert witness.compare_and_swap(revisions[3], 2).duplicate
    fresh = opening("from what is left")
    for retried, expected in ((revisions[3], 2), (revisions[0], None)):
        with pytest.raises(OutcomeUnknown, match=rf"revision {retried.revision} was removed from the log \(compaction\)"):
            fresh.compare_and_swap(retried, expected)
        with pytest.raises(OutcomeUnknown):
            fresh.resolve(retried)
        with pytest.raises(OutcomeUnknown, match="compaction has removed revisions"):
            fresh.resolve(retried.event_id)
    assert fresh.compare_and_swap(revisions[5], 4).duplicate
    assert fresh.compare_and_swap(revisions[5].next({}), 5).revision == 6


def test_a_gap_is_one_however_the_clocks_differ(
    compacted: tuple[CheckpointStore, list[Checkpoint]], opening: OpenTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader whose clock is behind would take what the cleaner left for the work of a foreign writer, and make it read-only."""
    _, revisions = compacted
    actual = time.time
    monkeypatch.setattr(time, "time", lambda: actual() - 3_600)
    fresh = opening("from what is left")
    assert fresh.load(revisions[5].id).revision == 5
    with pytest.raises(HistoryRemoved):
        fresh.load(revisions[5].id, revision=2)
    assert fresh.catalog.sql("SELECT reason FROM quarantined_records").rows == []


def test_what_is_cleaned_while_a_rebuild_reads_is_a_gap() -> None:
    """The record was younger than the hold when the rebuild began, and older when the cleaner took what lay before it."""
    checkpoint = initial(partition=0)
    for _ in range(5):
        checkpoint = checkpoint.next({})
    limit = [500]

    class Log:
        identity = LogIdentity("store", 1)

        def read(self, after: Position) -> Iterator[tuple[list[Record], Position]]:  # noqa: ARG002
            limit[0] = 2_000
            yield [Record(0, 9, 1_000, checkpoint.id.encode(), event_of(checkpoint, b"h" * 32, 4))], Position.after(0, 9)

    with Projection(path=None, store_id="store", partitions=1, keep_events=True) as projection:
        follow(Log(), projection, keep_events=True, compacted_before=lambda: limit[0])
        assert projection.quarantined_ids() == frozenset()
        assert [gap[3:] for gap in gaps(projection, checkpoint.id)] == [(0, 4, "compaction")]
