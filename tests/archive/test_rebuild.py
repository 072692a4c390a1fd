"""A rebuild from archive and log bridges nothing: what the two do not agree on is named. On Kafka: test_kafka_archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import CheckpointStore, ConfigurationError, Corrupted, create_store, open_store
from eventlog.archive.directory import Archive
from eventlog.archive.replay import ArchiveAndLog
from eventlog.archive.running import Limits, run_archive
from eventlog.log import Record
from eventlog.position import Position
from tests.archive.samples import forget_projection, grown, logged, tampering
from tests.read_side.samples import everything


@pytest.fixture
def kept(store: CheckpointStore, archive: Archive) -> list[object]:
    """Every answer of the projection of nine events, of which eight are archived in segments of three."""
    grown(store, 8)
    run_archive(store, archive, limits=Limits(rows=3))
    grown(store, 1, kind="acme.later")
    return everything(store.catalog.projection())


def test_it_gives_the_answers_of_the_live_projection(store: CheckpointStore, archive: Archive, kept: list[object]) -> None:
    counted: list[int] = []
    store.catalog.rebuild(counted.append, archive=archive)
    assert everything(store.catalog.projection()) == kept
    assert sum(counted) == 9


def test_it_goes_on_from_any_position_of_a_projection(store: CheckpointStore, archive: Archive, kept: list[object]) -> None:
    del kept
    expected = logged(store)[:8]
    for start in range(9):
        found: list[Record] = []
        reached = Position()
        for records, reached in ArchiveAndLog(archive, store.log).read(Position(((0, start),))):
            found.extend(records)
            assert not records or reached.next_offset(0) >= records[-1].offset + 1
        assert [(each.partition, each.offset, each.recorded_at, each.value) for each in found] == expected[start:]
        assert start == 8 or reached == Position(((0, 8),))


@pytest.mark.parametrize("what", ["event", "recorded_at"])
def test_an_event_that_is_another_in_the_log_is_named(
    store: CheckpointStore, archive: Archive, kept: list[object], directory: Path, what: str
) -> None:
    store.close()
    with tampering(directory) as connection:
        event, recorded_at = connection.execute("SELECT event, recorded_at FROM events WHERE position = 4").fetchone()
        changed = {"event": event.replace(b"tester", b"nobody"), "recorded_at": recorded_at - 1}[what]
        connection.execute(f"UPDATE events SET {what} = ? WHERE position = 4", (changed,))
    with open_store(directory) as opened:
        with pytest.raises(Corrupted, match="is another event than the archived revision") as caught:
            opened.catalog.rebuild(archive=archive)
        assert caught.value.place == "log at 0:4"
        assert everything(opened.catalog.projection()) == kept, "the projection stays as it was"


def test_a_log_that_ends_before_its_archive_is_named(store: CheckpointStore, archive: Archive, kept: list[object], directory: Path) -> None:
    del kept
    store.close()
    forget_projection(directory)
    with tampering(directory) as connection:
        connection.execute("DELETE FROM events WHERE position >= 6")
    with open_store(directory) as cut, pytest.raises(Corrupted, match=r"ends at 0:6, the archive .* at 0:8"):
        cut.catalog.rebuild(archive=archive)


def test_another_stores_archive_is_refused(store: CheckpointStore, archive: Archive, kept: list[object], tmp_path: Path) -> None:
    del store, kept
    create_store(tmp_path / "another")
    with open_store(tmp_path / "another") as other, pytest.raises(ConfigurationError, match="is the archive of store"):
        other.catalog.rebuild(archive=archive)
