"""Promise 8: an event of a schema that this version does not know is refused by its name, and harms nothing else."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointStore, EventId, Position, Receipt, SchemaMismatch, open_store
from eventlog.embedded_files import checksum
from tests.store.samples import initial, revisions, stream

FINGERPRINT = "0123456789abcdef"


@pytest.fixture
def newer(store: CheckpointStore, directory: Path) -> Checkpoint:
    """The last good revision of a checkpoint whose next one a newer version has written."""
    last = stream(store, 2)[-1]
    add_foreign_event(directory, last, bytes.fromhex("c301" + FINGERPRINT) + b"who knows")
    return last


def add_foreign_event(directory: Path, last: Checkpoint, event: bytes) -> None:
    connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None)
    (position,) = connection.execute("SELECT max(position) + 1 FROM events").fetchone()
    now = int(time.time() * 1000)
    proof = checksum(position, last.id, last.revision + 1, now, event)
    row = (position, last.id, last.revision + 1, EventId.new(), now, proof, event)
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()


def test_it_is_refused_by_name_on_load(store: CheckpointStore, newer: Checkpoint) -> None:
    for call in (lambda: store.load(newer.id), lambda: store.load_revision(newer.id), lambda: revisions(store, newer.id)):
        with pytest.raises(SchemaMismatch, match=FINGERPRINT) as caught:
            call()
        assert "checkpoint_event.v1" in str(caught.value)


def test_nothing_is_written_behind_it(store: CheckpointStore, newer: Checkpoint) -> None:
    end = store.position()
    for checkpoint, expected in ((newer.next({}), 1), (newer.next({}).next({}), 2), (initial().model_copy(update={"id": newer.id}), None)):
        with pytest.raises(SchemaMismatch, match=FINGERPRINT):
            store.compare_and_swap(checkpoint, expected)
    assert store.position() == end


def test_it_is_quarantined_and_everything_else_is_listed(store: CheckpointStore, newer: Checkpoint) -> None:
    other = stream(store, 2)[-1]
    items = store.list().items
    assert {each.id: each.revision for each in items} == {newer.id: 1, other.id: 1}
    found = store.catalog.sql("SELECT checkpoint_id, reason, blocks FROM quarantined_records")
    assert str(found.rows[0][0]) == newer.id
    assert FINGERPRINT in found.rows[0][1]
    assert found.rows[0][2] is True


def test_other_checkpoints_go_on(store: CheckpointStore, newer: Checkpoint) -> None:
    with pytest.raises(SchemaMismatch):
        store.load(newer.id)
    other = stream(store, 3)
    assert store.load(other[0].id) == other[-1]


def test_in_one_call_it_is_an_outcome_and_the_others_are_written(store: CheckpointStore, newer: Checkpoint) -> None:
    # Once: what _decide raises for one proposal reaches every caller of the group, and nothing of the group is written.
    good = [initial(), initial()]
    outcomes = store.compare_and_swap_many([(good[0], None), (newer.next({}), 1), (good[1], None)])
    assert [type(each) for each in outcomes] == [Receipt, SchemaMismatch, Receipt]
    assert [store.load(each.id) for each in good] == good


def test_a_truncated_head_is_an_outcome_too(store: CheckpointStore, directory: Path) -> None:
    # Once: as above
    last = stream(store, 2)[-1]
    add_foreign_event(directory, last, b"\xc3")
    good = initial()
    outcomes = store.compare_and_swap_many([(last.next({}), 1), (good, None)])
    assert isinstance(outcomes[1], Receipt)
    assert store.load(good.id) == good


def test_it_stays_refused_after_reopening(store: CheckpointStore, newer: Checkpoint, directory: Path) -> None:
    store.close()
    with open_store(directory) as again, pytest.raises(SchemaMismatch, match=FINGERPRINT):
        again.load(newer.id)


def test_the_good_revisions_before_it_stay_readable(store: CheckpointStore, newer: Checkpoint) -> None:
    # Once: every read of a checkpoint decodes its latest event first (to see the tenant), so one unreadable event hides all before.
    assert store.load(newer.id, revision=1) == newer
    history = store.history(newer.id)
    assert [next(history), next(history)]
    with pytest.raises(SchemaMismatch, match=FINGERPRINT):
        next(history)


def test_a_subscriber_is_told_before_it_misses_anything(store: CheckpointStore, newer: Checkpoint) -> None:
    later = stream(store, 1)[0]
    events = store.subscribe(Position(), idle_timeout=0)
    assert [next(events).checkpoint, next(events).checkpoint][1] == newer
    with pytest.raises(SchemaMismatch, match=FINGERPRINT):
        next(events)
    assert list(events) == []
    assert store.load(later.id) == later


def test_an_unknown_event_type_or_encoding_is_refused_by_name(store: CheckpointStore, directory: Path) -> None:
    first = stream(store, 1)[0]
    connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None)
    event, recorded_at = connection.execute("SELECT event, recorded_at FROM events").fetchone()
    event = event.replace(b"\x08json", b"\x08yaml")
    connection.execute("UPDATE events SET event = ?, checksum = ?", (event, checksum(0, first.id, 0, recorded_at, event)))
    connection.close()
    with pytest.raises(SchemaMismatch, match="yaml"):
        store.load(first.id)
