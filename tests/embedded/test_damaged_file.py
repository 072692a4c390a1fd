"""A truncated or damaged log: an error of the store's own, or the right data; never wrong data."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointError, Corrupted, Position, open_store
from tests.store.samples import revisions, stream

STREAMS = 12


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[Checkpoint]]]:
    """A store with everything in the one file, and what is in it."""
    from eventlog import create_store

    directory = tmp_path_factory.mktemp("damaged") / "store"
    create_store(directory)
    with open_store(directory) as store:
        streams = [stream(store, 6, payload={"text": f"{number} {'lorem ipsum ' * 20}"}) for number in range(STREAMS)]
        store.list()
    connection = sqlite3.connect(directory / "log.sqlite3")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for projection in (*directory.glob("projection*"), *directory.glob("snapshot*"), *directory.glob("*-wal"), *directory.glob("*-shm")):
        projection.unlink()
    return directory, streams


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target / "log.sqlite3"


def read_everything(directory: Path, streams: list[list[Checkpoint]]) -> tuple[int, int]:
    """How many reads were right and how many refused; a wrong answer or a foreign exception fails the test."""
    right = refused = 0
    try:
        store = open_store(directory)
    except CheckpointError:
        return 0, 1
    with store:
        for each in streams:
            for call, wanted in (
                (lambda each=each: store.load(each[0].id), each[-1]),
                (lambda each=each: store.load(each[0].id, revision=2), each[2]),
                (lambda each=each: [found.checkpoint for found in revisions(store, each[0].id)], each),
            ):
                try:
                    found = call()
                except CheckpointError:
                    refused += 1
                    continue
                assert found == wanted
                right += 1
        try:
            events = list(store.subscribe(Position(), idle_timeout=0))
            assert len(events) == STREAMS * 6
        except CheckpointError:
            refused += 1
    return right, refused


def test_an_undamaged_one_reads_right(written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path) -> None:
    copied(written[0], tmp_path / "copy")
    assert read_everything(tmp_path / "copy", written[1]) == (3 * STREAMS, 0)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.1, 0.5, 0.9, 0.99], ids=str)
def test_a_truncated_file_is_refused(written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path, kept: float) -> None:
    # Once: read() gives a bare AttributeError where a cut page yields NULL for checkpoint_id (0.99).
    path = copied(written[0], tmp_path / "copy")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    _, refused = read_everything(tmp_path / "copy", written[1])
    assert refused > 0


@pytest.mark.parametrize("offset", [0, 15, 16, 18, 24, 28, 40, 100, 103, 105, 4096, 4101, 8192, 8200], ids=str)
def test_a_damaged_place_of_the_file_is_noticed_or_harmless(
    written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path, offset: int
) -> None:
    path = copied(written[0], tmp_path / "copy")
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0xFF]))
    read_everything(tmp_path / "copy", written[1])


@pytest.mark.parametrize("seed", range(25))
def test_a_random_page_of_garbage_is_noticed(written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path, seed: int) -> None:
    path = copied(written[0], tmp_path / "copy")
    chance = random.Random(seed)
    with path.open("r+b") as file:
        pages = path.stat().st_size // 4096
        file.seek(chance.randrange(pages) * 4096)
        file.write(chance.randbytes(4096))
    _, refused = read_everything(tmp_path / "copy", written[1])
    assert refused > 0


def with_event(directory: Path, checkpoint: Checkpoint, change: dict[bytes, bytes]) -> None:
    """Changes bytes within a stored event, as a bad disk would."""
    connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None)
    (event,) = connection.execute("SELECT event FROM events WHERE event_id = ?", (checkpoint.event_id,)).fetchone()
    for old, new in change.items():
        assert event.count(old) == 1
        event = event.replace(old, new)
    connection.execute("UPDATE events SET event = ? WHERE event_id = ?", (event, checkpoint.event_id))
    connection.close()


def test_a_damaged_payload_is_corrupted(written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path) -> None:
    copied(written[0], tmp_path / "copy")
    damaged = written[1][0][-1]
    with_event(tmp_path / "copy", damaged, {b'"step":5': b'"step":6'})
    with open_store(tmp_path / "copy") as store:
        for call in (lambda: store.load(damaged.id), lambda: store.load(damaged.id, revision=5), lambda: revisions(store, damaged.id)):
            with pytest.raises(Corrupted, match=damaged.id):
                call()
        assert store.load(damaged.id, revision=4) == written[1][0][4]
        assert store.load(written[1][1][0].id) == written[1][1][-1]


@pytest.mark.parametrize("change", [{b"acme.order": b"acme.Order"}, {b"default": b"defau1t"}], ids=str)
def test_a_damaged_header_of_a_head_is_corrupted(
    written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path, change: dict[bytes, bytes]
) -> None:
    # Once: nothing holds a head's header against anything: a flipped bit in kind, tenant, phase, labels or usage is returned as data.
    copied(written[0], tmp_path / "copy")
    damaged = written[1][0][-1]
    with_event(tmp_path / "copy", damaged, change)
    with open_store(tmp_path / "copy") as store, pytest.raises(Corrupted):
        store.load(damaged.id)


def test_a_damaged_header_in_the_past_is_quarantined_and_the_rest_is_listed(
    written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path
) -> None:
    copied(written[0], tmp_path / "copy")
    damaged = written[1][0][2]
    with_event(tmp_path / "copy", damaged, {b"acme.order": b"acme.Order"})
    with open_store(tmp_path / "copy") as store:
        found = store.catalog.sql(f"SELECT reason FROM quarantined_records WHERE checkpoint_id = '{damaged.id}'")
        assert "is damaged" in str(found.rows[0])


def test_events_under_the_wrong_checkpoint_are_corrupted(written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path) -> None:
    """Two rows exchanged: each event is whole, but not the one that was asked for."""
    # Once: what a row's event says about itself is not compared with the row.
    copied(written[0], tmp_path / "copy")
    one, two = written[1][0][-1], written[1][1][-1]
    connection = sqlite3.connect(tmp_path / "copy" / "log.sqlite3", isolation_level=None)
    events = [connection.execute("SELECT event FROM events WHERE event_id = ?", (each.event_id,)).fetchone()[0] for each in (one, two)]
    for each, event in zip((two, one), events, strict=True):
        connection.execute("UPDATE events SET event = ? WHERE event_id = ?", (event, each.event_id))
    connection.close()
    with open_store(tmp_path / "copy") as store, pytest.raises(Corrupted):
        store.load(one.id)


def test_a_damaged_projection_says_that_it_is_disposable(written: tuple[Path, list[list[Checkpoint]]], tmp_path: Path) -> None:
    """Promise 9: it can be damaged or deleted at any time and rebuilt to the same answers."""
    copied(written[0], tmp_path / "copy")
    with open_store(tmp_path / "copy") as store:
        answers = store.list().items
    projection = tmp_path / "copy" / "projection.duckdb"
    projection.write_bytes(b"garbage" * 1000)
    with open_store(tmp_path / "copy") as store:
        with pytest.raises(CheckpointError, match="rebuild"):
            store.list()
        assert store.load(written[1][0][0].id) == written[1][0][-1]
        store.catalog.rebuild()
        assert store.list().items == answers
