"""Compacting the embedded log: bodies go, the disk gets their space back, and nothing that the log says is another."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from eventlog import (
    Checkpoint,
    CheckpointStore,
    Conflict,
    Corrupted,
    EventIdReused,
    HistoryRemoved,
    InvalidRequest,
    NotAStore,
    NotFound,
    Position,
    Revision,
    SchemaMismatch,
    open_store,
)
from eventlog.archive.anchors import take_anchor
from eventlog.archive.compacting import compact
from eventlog.archive.directory import Archive
from eventlog.archive.remembered import FILE
from eventlog.archive.running import Limits, run_archive
from eventlog.codec import without_body
from eventlog.embedded_stub import STUB
from eventlog.revision import Gap
from eventlog.verification import verify
from projections.archive import read_segment, write_segment
from tests.archive.samples import archived, forget_projection, grown, logged, noise
from tests.read_side.samples import everything
from tests.store.samples import outcome


class Compacted(NamedTuple):
    """A store of 2 checkpoints with 5 revisions each, of which all but the heads have lost their bodies; and what it said before."""

    store: CheckpointStore
    one: list[Checkpoint]
    two: list[Checkpoint]
    log: list[tuple[int, int, int, bytes | None]]
    history: list[Revision | Gap]


@pytest.fixture
def compacted(store: CheckpointStore, archive: Archive) -> Compacted:
    one, two = grown(store, 5, kind="acme.one"), grown(store, 5, kind="acme.two")
    run_archive(store, archive, limits=Limits(rows=3))
    before = Compacted(store, one, two, logged(store), list(store.history(one[0].id)))
    assert compact(store, archive, hold_ms=0).moved == 8
    return before


@pytest.fixture
def lost(compacted: Compacted, archive: Archive) -> Iterator[Compacted]:
    """The same, with the archive elsewhere."""
    archive.directory.rename(archive.directory.with_name("elsewhere"))
    yield compacted
    archive.directory.with_name("elsewhere").rename(archive.directory)


def test_the_disk_gets_the_space_back(store: CheckpointStore, archive: Archive, directory: Path) -> None:
    """deer-flow#3011: a delete does not return disk space."""
    checkpoint = grown(store, 1, size=200_000)[0]
    for revision in range(1, 40):
        checkpoint = checkpoint.next({"said": noise(revision, 200_000)})
        store.compare_and_swap(checkpoint, revision - 1)
    run_archive(store, archive)
    done = compact(store, archive, hold_ms=0)
    assert done.moved == 39
    actual = sum(each.stat().st_size for each in directory.glob("log.sqlite3*") if not each.name.endswith("-shm"))
    assert actual == done.bytes_after
    assert done.bytes_before > 4_000_000
    assert done.bytes_after < done.bytes_before / 10
    assert store.load(checkpoint.id) == checkpoint


# -- what the log says afterwards ------------------------------------------------------------------------------


def test_the_past_is_read_from_the_archive_as_it_was(compacted: Compacted) -> None:
    store, one, _, log, history = compacted
    assert list(store.history(one[0].id)) == history
    assert store.load(one[0].id, revision=2) == one[2]
    assert store.load(one[0].id, at=Position(((0, 2),))) == one[1]
    assert store.load_revision(one[0].id, revision=0) == history[0]
    assert [each.checkpoint for each in store.subscribe(Position(), idle_timeout=0)] == [*one, *compacted.two]
    assert archived(Archive(directory=store.log.directory.parent / "arch[iv]e's *")) == log


def test_positions_are_what_they_were_and_without_gaps(compacted: Compacted) -> None:
    assert [place[:3] for place in logged(compacted.store)] == [place[:3] for place in compacted.log]
    assert [place[3] for place in logged(compacted.store)] != [place[3] for place in compacted.log]
    moved = [record for records, _ in compacted.store.log.read(Position()) for record in records if record.moved is not None]
    whole = {offset: value or b"" for _, offset, _, value in compacted.log}
    assert [(each.moved, each.value) for each in moved] == [(len(whole[each.offset]), without_body(whole[each.offset])) for each in moved]


def test_a_retry_and_resolve_are_answered_as_before(compacted: Compacted) -> None:
    store, one, *_ = compacted
    receipt = store.compare_and_swap(one[2], 1)
    assert receipt.duplicate
    assert (receipt.revision, receipt.position) == (2, Position(((0, 3),)))
    for asked in (one[2], one[2].event_id):
        assert store.resolve(asked) == receipt._replace(duplicate=False)
    other = one[1].next({"another": True})
    assert isinstance(outcome(store, other, 1), Conflict)
    assert store.resolve(other) is None
    assert store.resolve(other.event_id) is None
    reused = one[2].model_copy(update={"labels": {"of": "something else"}})
    assert isinstance(outcome(store, reused, 1), EventIdReused)


def test_writers_go_on(compacted: Compacted, archive: Archive) -> None:
    store, one, *_ = compacted
    following = one[-1].next({"step": 5})
    assert store.compare_and_swap(following, 4).position == Position(((0, 11),))
    run_archive(store, archive)
    assert compact(store, archive, hold_ms=0).moved == 1
    assert [each.checkpoint for each in store.history(one[0].id) if isinstance(each, Revision)] == [*one, following]


def test_the_projection_and_a_rebuilt_one_are_what_they_were(compacted: Compacted, archive: Archive, directory: Path) -> None:
    before = everything(compacted.store.catalog.projection())
    compacted.store.catalog.rebuild()
    assert everything(compacted.store.catalog.projection()) == before
    compacted.store.catalog.rebuild(archive=archive)
    assert everything(compacted.store.catalog.projection()) == before
    compacted.store.close()
    forget_projection(directory)
    with open_store(directory) as again:
        assert everything(again.catalog.projection()) == before


def test_verify_an_anchor_and_the_archive_agree_with_it(compacted: Compacted, archive: Archive) -> None:
    anchor = take_anchor(compacted.store.log)
    found = verify(compacted.store, archive=archive, anchor=anchor)
    assert found.is_clean, found.faults
    assert (found.events, found.moved, found.erased, found.archived, found.anchored) == (10, 8, 0, 10, 10)
    assert verify(compacted.store).is_clean


def test_an_anchor_from_before_still_holds(store: CheckpointStore, archive: Archive) -> None:
    grown(store, 4)
    anchor = take_anchor(store.log)
    run_archive(store, archive)
    compact(store, archive, hold_ms=0)
    assert verify(store, anchor=anchor).is_clean


def test_deleted_checkpoints_keep_their_end(store: CheckpointStore, archive: Archive) -> None:
    (checkpoint, *_) = grown(store, 2)
    store.delete(checkpoint.id, 1)
    run_archive(store, archive)
    assert compact(store, archive, hold_ms=0).moved == 2
    assert [getattr(each, "type", None) for each in store.history(checkpoint.id)] == ["REVISION", "REVISION", "DELETED"]


# -- without the archive ---------------------------------------------------------------------------------------


def test_without_the_archive_the_past_is_a_gap_and_nothing_is_bridged(lost: Compacted) -> None:
    store, one, *_ = lost
    gap, head = store.history(one[0].id)
    assert gap == Gap(one[0].id, 0, 3, "archived")
    assert isinstance(head, Revision)
    assert head.checkpoint == one[-1]
    assert list(store.history(one[0].id, limit=2)) == [Gap(one[0].id, 0, 1, "archived")]
    for asked in ({"revision": 2}, {"at": Position(((0, 2),))}):
        with pytest.raises(HistoryRemoved, match="an archive that is not at hand"):
            store.load(one[0].id, **asked)
    with pytest.raises(HistoryRemoved):
        list(store.subscribe(Position(), idle_timeout=0))
    assert store.load(one[0].id) == one[-1]
    assert store.compare_and_swap(one[2], 1).duplicate
    assert verify(store).is_clean
    assert store.list().items


def test_a_gap_before_a_position_ends_there(lost: Compacted) -> None:
    assert list(lost.store.history(lost.one[0].id, at=Position(((0, 3),)))) == [Gap(lost.one[0].id, 0, 2, "archived")]


def test_a_tenant_learns_nothing_of_anothers_removed_past(lost: Compacted, directory: Path) -> None:
    with open_store(directory, tenant="north") as north, pytest.raises(NotFound):
        north.load(lost.one[0].id, revision=2)


def test_an_altered_archive_is_no_answer(compacted: Compacted, archive: Archive) -> None:
    segment = archive.segments(0)[0]
    other = archive.segments(0)[1]
    segment.path.write_bytes(other.path.read_bytes())
    with pytest.raises(Corrupted, match="does not hold the event that the log has at 0:1"):
        compacted.store.load(compacted.one[0].id, revision=1)


def test_another_event_in_the_archives_place_is_no_answer(compacted: Compacted, archive: Archive) -> None:
    """One that decodes and matches its own digest, in a file that nobody holds against its manifest for a single revision."""
    path = archive.segments(0)[0].path
    rows = list(read_segment(path))
    write_segment([row._replace(event=rows[0].event) for row in rows], path)
    for read in (lambda: compacted.store.load(compacted.one[0].id, revision=1), lambda: list(compacted.store.history(compacted.one[0].id))):
        with pytest.raises(Corrupted, match="does not hold the event that the log has at 0:1"):
            read()


# -- what is not taken -----------------------------------------------------------------------------------------


def test_what_is_not_archived_or_younger_than_the_hold_stays(store: CheckpointStore, archive: Archive) -> None:
    checkpoint = grown(store, 3)[-1]
    run_archive(store, archive)
    assert compact(store, archive).moved == 0
    for revision in (3, 4):
        checkpoint = checkpoint.next({"step": revision})
        store.compare_and_swap(checkpoint, revision - 1)
    assert compact(store, archive, hold_ms=0).moved == 3
    assert compact(store, archive, hold_ms=0).moved == 0


def test_an_archive_that_holds_something_else_takes_nothing(store: CheckpointStore, archive: Archive, directory: Path) -> None:
    grown(store, 4)
    run_archive(store, archive)
    before = logged(store)
    with closing(sqlite3.connect(directory / "log.sqlite3", isolation_level=None)) as connection:
        connection.execute("UPDATE events SET recorded_at = recorded_at - 1 WHERE position = 2")
    with pytest.raises(Corrupted, match="position 2 is another event"):
        compact(store, archive, hold_ms=0)
    assert [each[3] for each in logged(store)] == [each[3] for each in before]


def test_a_damaged_segment_takes_nothing_of_its_own(store: CheckpointStore, archive: Archive) -> None:
    grown(store, 4)
    (segment,) = run_archive(store, archive).segments
    segment.path.write_bytes(segment.path.read_bytes() + b"!")
    with pytest.raises(Corrupted):
        compact(store, archive, hold_ms=0)
    assert not any(record.moved for records, _ in store.log.read(Position()) for record in records)


def test_another_stores_archive_or_none_is_refused(store: CheckpointStore, archive: Archive, tmp_path: Path) -> None:
    grown(store, 2)
    with pytest.raises(NotAStore):
        compact(store, archive, hold_ms=0)
    with pytest.raises(InvalidRequest):
        compact(store, archive, hold_ms=-1)
    assert not (tmp_path / "store" / FILE).exists()


def test_a_second_archive_is_not_made_of_what_has_lost_its_body(compacted: Compacted, tmp_path: Path) -> None:
    with pytest.raises(HistoryRemoved, match="moved it to another archive"):
        run_archive(compacted.store, Archive(directory=tmp_path / "second"))


# -- beside others ---------------------------------------------------------------------------------------------


def test_others_write_meanwhile(store: CheckpointStore, archive: Archive, directory: Path) -> None:
    grown(store, 300, size=4_000)
    run_archive(store, archive)
    stop = threading.Event()
    written = 0
    failures: list[BaseException] = []

    def write() -> None:
        nonlocal written
        try:
            with open_store(directory) as other:
                checkpoint = grown(other, 1, kind="acme.meanwhile")[0]
                while not stop.is_set():
                    following = checkpoint.next({"number": written})
                    other.compare_and_swap(following, checkpoint.revision)
                    checkpoint = following
                    written += 1
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    done = compact(store, archive, hold_ms=0)
    stop.set()
    writer.join()
    assert failures == []
    assert done.moved == 299
    assert verify(store, archive=archive).is_clean


def test_a_version_that_knows_no_stubs_refuses_the_file(compacted: Compacted, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(directory / "log.sqlite3")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM events WHERE substr(event, 1, 2) = ?", (STUB,)).fetchone() == (8,)
    monkeypatch.setattr("eventlog.embedded_files.FORMAT_WITH_STUBS", 1)
    with pytest.raises(SchemaMismatch, match="has format 2"):
        open_store(directory)
    assert compacted.store.load(compacted.one[0].id)


def test_a_flipped_bit_of_a_stub_is_found(compacted: Compacted, directory: Path) -> None:
    with closing(sqlite3.connect(directory / "log.sqlite3", isolation_level=None)) as connection:
        (event,) = connection.execute("SELECT event FROM events WHERE position = 1").fetchone()
        connection.execute("UPDATE events SET event = ? WHERE position = 1", (event[:9] + bytes([event[9] ^ 1]) + event[10:],))
    assert verify(compacted.store).faults[0].position == "0:1"


def test_a_store_on_another_machine_finds_an_archive_that_it_is_told_of(compacted: Compacted, archive: Archive, tmp_path: Path) -> None:
    compacted.store.close()
    shutil.copytree(archive.directory, tmp_path / "there" / "archive")
    shutil.copytree(tmp_path / "store", tmp_path / "there" / "store")
    archive.directory.rename(archive.directory.with_name("elsewhere"))
    with open_store(tmp_path / "there" / "store") as moved:
        with pytest.raises(HistoryRemoved):
            moved.load(compacted.one[0].id, revision=1)
        run_archive(moved, Archive(directory=tmp_path / "there" / "archive"))
        assert moved.load(compacted.one[0].id, revision=1) == compacted.one[1]
