"""The archive of a topic: it has what compaction takes, and gives it back to the byte."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from eventlog import Checkpoint, CheckpointStore, Corrupted, HistoryRemoved, Position, create_store, open_store
from eventlog.archive.anchors import Anchor, take_anchor
from eventlog.archive.directory import Archive
from eventlog.archive.running import Limits, run_archive
from eventlog.event import EventType
from eventlog.findings import FaultKind
from eventlog.kafka.local import LocalBroker
from eventlog.verification import verify
from tests.archive.samples import archived, logged
from tests.kafka_log.samples import event_of, initial, write_foreign
from tests.waiting import eventually

TINY = {"segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
ANSWERS = (
    'SELECT * FROM checkpoint_history ORDER BY partition, "offset"',
    "SELECT * FROM checkpoint_heads ORDER BY checkpoint_id",
    "SELECT * FROM checkpoint_gaps ORDER BY checkpoint_id",
    'SELECT * FROM quarantined_records ORDER BY partition, "offset"',
)


class Compacted(NamedTuple):
    """A topic of which compaction has taken what its archive has."""

    address: str  # without a state directory
    folder: Path
    archive: Archive
    anchor: Anchor  # from before compaction
    checkpoint: Checkpoint  # at revision 5, of which the topic has the last two at most

    def open(self, state: str) -> CheckpointStore:
        return open_store(f"{self.address}&state={self.folder / state}")


@pytest.fixture(scope="module")
def compacted(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compacted]:
    folder = tmp_path_factory.mktemp("compacted")
    broker = LocalBroker(
        directory=run_folder / f"archive-{folder.name}-{id(folder)}",
        fast_start=True,
        config={"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"},
    )
    broker.up()
    address = f"kafka://{broker.bootstrap}/archived?hold_ms=1000"
    archive = Archive(directory=folder / "archive")
    create_store(address, partitions=2)
    with open_store(f"{address}&state={folder / 'live'}") as store:
        spoiled = initial({"good": True}, partition=0)
        store.compare_and_swap(spoiled, None)
        foreign = event_of(spoiled.next({"good": False}).model_copy(update={"revision": 7}), b"x" * 32, 6)
        write_foreign(broker.bootstrap, "archived", (0, spoiled.id.encode(), foreign))
        checkpoint = initial({"revision": 0}, partition=0)
        store.compare_and_swap(checkpoint, None)
        for revision in range(1, 4):
            checkpoint = checkpoint.next({"revision": revision})
            store.compare_and_swap(checkpoint, revision - 1)
        gone = initial(partition=1)
        store.compare_and_swap(gone, None)
        store.delete(gone.id, 0)
        run_archive(store, archive, limits=Limits(rows=2))
        anchor = take_anchor(store.log)
        for revision in (4, 5):
            checkpoint = checkpoint.next({"revision": revision})
            store.compare_and_swap(checkpoint, revision - 1)
        run_archive(store, archive)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.alter_configs([ConfigResource("TOPIC", "archived", configs=TINY)])
        admin.close()
        others = [initial(partition=number) for number in (0, 1)]
        for number, each in enumerate(others):
            store.compare_and_swap(each, None)
            others[number] = each

        def cleaned() -> bool:
            for number, each in enumerate(others):  # a segment is rolled by what is appended to it
                others[number] = each.next({})
                store.compare_and_swap(others[number], each.revision)
            keys = [record.key for records, _ in store.log.read(Position()) for record in records]
            return keys.count(checkpoint.id.encode()) == 1 and keys.count(gone.id.encode()) == 1

        eventually(cleaned, seconds=90)
        run_archive(store, archive)  # up to the end: what compaction goes on taking is in it
    yield Compacted(address, folder, archive, anchor, checkpoint)
    broker.kill()


def answers(store: CheckpointStore) -> list[object]:
    return [store.catalog.sql(statement).rows for statement in ANSWERS]


def test_a_projection_rebuilt_from_archive_and_topic_is_the_live_one_to_the_byte(compacted: Compacted) -> None:
    with compacted.open("live") as live, compacted.open("fresh") as fresh:
        run_archive(live, compacted.archive)
        assert answers(fresh)[2] != [], "compaction has taken something"
        with pytest.raises(HistoryRemoved):
            fresh.load(compacted.checkpoint.id, revision=2)
        fresh.catalog.rebuild(archive=compacted.archive)
        expected, events = answers(live), logged(live)
        assert expected[2] == []
        assert len(expected[3]) == 1, "the foreign record is quarantined"  # type: ignore[arg-type]
        assert (answers(fresh), logged(fresh)) == (expected, events)
        assert fresh.load(compacted.checkpoint.id, revision=2).payload == {"revision": 2}
        assert [each for each in archived(compacted.archive) if each in events] == archived(compacted.archive)
        live.catalog.rebuild(archive=compacted.archive)
        assert (answers(live), logged(live)) == (expected, events)
        for store in (live, fresh):
            found = verify(store, archive=compacted.archive, anchor=compacted.anchor)
            assert {fault.kind for fault in found.faults} == {FaultKind.BROKEN_RULE}, found.faults  # the foreign record
            assert (found.archived, found.anchored) == (len(archived(compacted.archive)), sum(head.size for head in compacted.anchor.heads))
        fresh.compare_and_swap(compacted.checkpoint.next({"revision": 6}).model_copy(update={"kind": "test.order"}), 5)
        live.delete(compacted.checkpoint.id, 6)
        last = list(fresh.history(compacted.checkpoint.id))[-1]
        assert getattr(last, "type", None) is EventType.DELETED
        run_archive(live, compacted.archive)


def test_without_the_archive_what_compaction_took_is_missed_by_the_anchor(compacted: Compacted) -> None:
    with compacted.open("without") as fresh:
        found = verify(fresh, anchor=compacted.anchor)
        assert FaultKind.ANCHOR in found.fault_counts
        assert found.gap_count > 0


def test_an_archive_that_was_begun_too_late_says_what_was_gone_already(compacted: Compacted, tmp_path: Path) -> None:
    late = Archive(directory=tmp_path / "late")
    with compacted.open("late") as store:
        run_archive(store, late)
        expected = answers(store)
        assert expected[2] != []
        gaps = [gap for number in late.partitions() for segment in late.segments(number) for gap in segment.manifest.gaps]
        assert any((gap.checkpoint_id, gap.first_revision) == (compacted.checkpoint.id, 0) and gap.last_revision >= 4 for gap in gaps)
        store.catalog.rebuild(archive=late)
        assert answers(store) == expected
        assert FaultKind.ARCHIVE not in verify(store, archive=late).fault_counts


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_rebuild_names_a_missing_segment_and_changes_nothing(compacted: Compacted, tmp_path: Path, suffix: str) -> None:
    shutil.copytree(compacted.archive.directory, tmp_path / "archive")
    damaged = Archive(directory=tmp_path / "archive")
    segments = damaged.segments(0)
    segments[1].path.with_suffix(suffix).unlink()
    with compacted.open("fresh for a missing one") as store:
        before = answers(store)
        with pytest.raises(Corrupted) as caught:
            store.catalog.rebuild(archive=damaged)
        assert str(tmp_path) in caught.value.place
        assert answers(store) == before


def test_a_rebuild_names_an_altered_segment(compacted: Compacted, tmp_path: Path) -> None:
    shutil.copytree(compacted.archive.directory, tmp_path / "archive")
    damaged = Archive(directory=tmp_path / "archive")
    path = damaged.segments(0)[1].path
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with compacted.open("fresh for an altered one") as store, pytest.raises(Corrupted) as caught:
        store.catalog.rebuild(archive=damaged)
    assert caught.value.place == str(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE revisions SET event_hash = ''::BLOB WHERE revision = 2",
        "DELETE FROM revisions WHERE checkpoint_id = '{id}' AND revision = 2",
        "UPDATE revisions SET kind = 'test.other' WHERE checkpoint_id = '{id}' AND revision = 1",
    ],
)
def test_an_edit_of_history_that_only_the_projection_has_is_noticed_without_archive_or_anchor(compacted: Compacted, statement: str) -> None:
    name = f"edited-{abs(hash(statement))}"
    with compacted.open(name) as store:
        store.catalog.rebuild(archive=compacted.archive)
        assert FaultKind.PROJECTION not in verify(store).fault_counts
    with duckdb.connect(str(compacted.folder / name / "projection.duckdb")) as connection:
        connection.execute(statement.format(id=compacted.checkpoint.id))
    with compacted.open(name) as store:
        assert FaultKind.PROJECTION in verify(store).fault_counts
