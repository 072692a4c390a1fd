"""Whoever can write to a store's files is noticed; and what nothing but an anchor, kept elsewhere, can show."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import duckdb
import pytest

from eventlog import CheckpointStore, ConfigurationError, Corrupted, SchemaMismatch, create_store, open_store
from eventlog.archive.anchors import Anchor, document, read_anchor, take_anchor
from eventlog.archive.directory import Archive
from eventlog.archive.running import Limits, run_archive
from eventlog.archive.sealing import public_key, seal, signing_key
from eventlog.codec import decode_header
from eventlog.findings import FaultKind, Verification
from eventlog.merkle import leaf_hash, root_of
from eventlog.verification import verify
from tests.archive.samples import forget_projection, grown, keys, logged, tampering


@pytest.fixture
def anchor(store: CheckpointStore, archive: Archive) -> Anchor:
    """Of two checkpoints of four revisions each, written in turns; all of it archived, in segments of three."""
    written = [grown(store, 1, kind=kind)[0] for kind in ("acme.one", "acme.two")]
    for step in (1, 2, 3):
        for number, before in enumerate(written):
            written[number] = before.next({"step": step})
            store.compare_and_swap(written[number], step - 1)
    run_archive(store, archive, limits=Limits(rows=3))
    return take_anchor(store.log)


def verified(directory: Path, **against: Archive | Anchor) -> Verification:
    forget_projection(directory)  # whoever changes the log also sees to the projection
    with open_store(directory) as opened:
        return verify(opened, **against)  # type: ignore[arg-type]


def kinds(found: Verification) -> set[FaultKind]:
    return set(found.fault_counts)


def rewrite_history(directory: Path, position: int) -> None:
    """One event says something else, and all that follows it was made to fit: digest, chain and checksums."""
    with tampering(directory) as connection:
        rows = connection.execute("SELECT position, checkpoint_id, event FROM events ORDER BY position").fetchall()
        checkpoint_id = rows[position][1]
        before: bytes | None = None
        for place, whose, event in rows[position:]:
            if whose != checkpoint_id:
                continue
            header, _ = decode_header(event)
            changed = event.replace(b"tester", b"nobody") if before is None else event.replace(header.previous_hash, before)
            connection.execute("UPDATE events SET event = ? WHERE position = ?", (changed, place))
            before = decode_header(changed)[1]


def exchange(directory: Path, one: int, other: int) -> None:
    with tampering(directory) as connection:
        connection.execute("UPDATE events SET position = -1 WHERE position = ?", (one,))
        connection.execute("UPDATE events SET position = ? WHERE position = ?", (one, other))
        connection.execute("UPDATE events SET position = ? WHERE position = -1", (other,))


def cut(directory: Path, position: int) -> None:
    with tampering(directory) as connection:
        connection.execute("DELETE FROM events WHERE position >= ?", (position,))


def test_an_untouched_log_continues_its_anchor_and_holds_what_is_archived(
    store: CheckpointStore, archive: Archive, anchor: Anchor, directory: Path
) -> None:
    assert anchor.heads[0].root == root_of([leaf_hash(decode_header(value or b"")[1]) for *_, value in logged(store)]).hex()
    grown(store, 3, kind="acme.later")
    store.close()
    found = verified(directory, archive=archive, anchor=anchor)
    assert found.is_clean, found.faults
    assert (found.events, found.archived, found.anchored) == (11, 8, 8)


def test_an_empty_log_can_be_anchored(store: CheckpointStore) -> None:
    anchor = take_anchor(store.log)
    grown(store, 2)
    assert verify(store, anchor=anchor).is_clean


# -- noticed by the log itself ---------------------------------------------------------------------------------


def test_a_rewritten_event_breaks_its_checkpoints_chain(store: CheckpointStore, anchor: Anchor, directory: Path) -> None:
    store.close()
    with tampering(directory) as connection:
        (event,) = connection.execute("SELECT event FROM events WHERE position = 2").fetchone()
        connection.execute("UPDATE events SET event = ? WHERE position = 2", (event.replace(b"acme.one", b"acme.0ne"),))
    found = verified(directory)
    assert found.faults[0].position == "0:2"
    assert kinds(found) >= {FaultKind.BROKEN_RULE}
    assert kinds(verified(directory, anchor=anchor)) >= {FaultKind.ANCHOR}


def test_two_exchanged_revisions_of_a_checkpoint_break_its_chain(store: CheckpointStore, anchor: Anchor, directory: Path) -> None:
    del anchor
    store.close()
    exchange(directory, 2, 4)
    found = verified(directory)
    assert (found.faults[0].position, found.faults[0].kind) == ("0:2", FaultKind.BROKEN_RULE)


def test_a_restored_older_log_is_noticed_by_the_projection_that_is_ahead_of_it(store: CheckpointStore, directory: Path) -> None:
    """As long as nobody removes the projection: see the test of the same with an anchor."""
    grown(store, 4)
    store.list()
    store.close()
    cut(directory, 3)
    with open_store(directory) as opened:
        assert kinds(verify(opened)) == {FaultKind.PROJECTION}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE revisions SET tenant = 'other' WHERE \"offset\" = 3",
        "UPDATE revisions SET phase = 'approved' WHERE \"offset\" = 3",
        "UPDATE revisions SET actor = 'somebody else' WHERE \"offset\" = 3",
        'UPDATE revisions SET recorded_at = recorded_at + 1 WHERE "offset" = 3',
        'UPDATE heads SET labels = \'{"a":"b"}\' WHERE "offset" = 7',
        "UPDATE heads SET phase = 'approved' WHERE \"offset\" = 7",
        'UPDATE heads SET recorded_at = 0 WHERE "offset" = 7',
    ],
)
def test_an_edited_projection_is_noticed_whatever_it_lies_about(
    store: CheckpointStore, anchor: Anchor, directory: Path, statement: str
) -> None:
    del anchor
    store.list()
    store.close()
    with duckdb.connect(str(directory / "projection.duckdb")) as connection:
        connection.execute(statement)
    with open_store(directory) as opened:
        found = verify(opened)
    assert kinds(found) == {FaultKind.PROJECTION}
    assert found.faults[0].position == ("0:3" if "revisions" in statement else "0:7")


# -- noticed by the archive, which names the event ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (lambda directory: rewrite_history(directory, 4), "0:4"),
        (lambda directory: exchange(directory, 4, 5), "0:4"),
        (lambda directory: cut(directory, 7), "0:7"),
    ],
    ids=["rewritten", "exchanged", "cut"],
)
def test_the_archive_names_the_first_event_that_is_another(
    store: CheckpointStore, archive: Archive, anchor: Anchor, directory: Path, attack: object, named: str
) -> None:
    del anchor
    store.close()
    attack(directory)  # type: ignore[operator]
    assert verified(directory).is_clean, "nothing but the archive shows it"
    found = verified(directory, archive=archive)
    assert [(fault.kind, fault.position) for fault in found.faults] == [(FaultKind.ARCHIVE, named)]


def test_a_damaged_segment_is_a_fault_that_names_it(store: CheckpointStore, archive: Archive, anchor: Anchor) -> None:
    del anchor
    segment = archive.segments(0)[1]
    segment.path.write_bytes(segment.path.read_bytes()[:-1])
    (fault,) = verify(store, archive=archive).faults
    assert fault.kind is FaultKind.ARCHIVE
    assert segment.path.name in fault.problem


# -- noticed by nothing but an anchor --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [
        lambda directory: rewrite_history(directory, 4),
        lambda directory: exchange(directory, 4, 5),
        lambda directory: cut(directory, 7),
        lambda directory: cut(directory, 0),
    ],
    ids=["rewritten with all that follows", "two checkpoints' events exchanged", "the last one dropped", "everything dropped"],
)
def test_what_fits_together_again_is_noticed_only_by_an_anchor(
    store: CheckpointStore, anchor: Anchor, directory: Path, attack: object
) -> None:
    store.close()
    attack(directory)  # type: ignore[operator]
    assert verified(directory).is_clean, "as docs/archive.md says"
    found = verified(directory, anchor=anchor)
    assert kinds(found) == {FaultKind.ANCHOR}


def test_an_old_database_in_the_place_of_the_log_is_noticed_only_by_an_anchor(
    store: CheckpointStore, directory: Path, tmp_path: Path
) -> None:
    (checkpoint,) = grown(store, 1)
    store.close()
    shutil.copytree(directory, tmp_path / "old")
    with open_store(directory) as opened:
        opened.compare_and_swap(checkpoint.next({"paid": True}), 0)
        anchor = take_anchor(opened.log)
    shutil.rmtree(directory)
    shutil.copytree(tmp_path / "old", directory)
    with open_store(directory) as opened:
        assert verify(opened).is_clean
        assert kinds(verify(opened, anchor=anchor)) == {FaultKind.ANCHOR}
        opened.compare_and_swap(checkpoint.next({"paid": False}), 0)  # as long again, but another history
        (fault,) = verify(opened, anchor=anchor).faults
    assert fault.problem == "its first 2 events are not those that were anchored"


def test_what_was_committed_after_the_anchor_is_not_covered_by_it(store: CheckpointStore, anchor: Anchor, directory: Path) -> None:
    """What no anchor can show: anchor often enough."""
    grown(store, 1, kind="acme.later")
    store.close()
    cut(directory, 8)
    assert verified(directory, anchor=anchor).is_clean


# -- the anchor's own document ---------------------------------------------------------------------------------


def test_an_anchor_survives_its_file_and_names_who_signed_it(anchor: Anchor, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    path = tmp_path / "anchor.json"
    path.write_text(json.dumps(document(anchor, key=signing_key(private))))
    assert read_anchor(path, trusted=public_key(public)) == anchor._replace(signed_by=public_key(public))
    path.write_text(json.dumps(document(anchor, key=None)))
    assert read_anchor(path) == anchor
    with pytest.raises(Corrupted, match="is signed by nobody"):
        read_anchor(path, trusted=public_key(public))


def test_an_anchor_that_was_changed_and_sealed_anew_is_not_signed_by_the_key(anchor: Anchor, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    made = document(anchor, key=signing_key(private))
    content = anchor._replace(heads=(anchor.heads[0]._replace(size=1),)).content()
    forged = {**made, "sealed": content, "seal": seal(content, key=None)["seal"]}
    path = tmp_path / "anchor.json"
    for text, why in ((forged, "its signature is not one"), ({**made, "sealed": content}, "does not say what was sealed")):
        path.write_text(json.dumps(text))
        with pytest.raises(Corrupted, match=why):
            read_anchor(path, trusted=public_key(public))


@pytest.mark.parametrize("change", [{"heads": [{"size": 1}]}, {"heads": 1}, {"position": 7}, {"heads": None}])
def test_what_is_no_anchor_is_named(anchor: Anchor, tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "anchor.json"
    path.write_text(json.dumps(seal({**anchor.content(), **change}, key=None)))
    with pytest.raises(Corrupted, match="is no anchor"):
        read_anchor(path)


def test_an_anchor_of_a_later_format_or_another_store_is_refused(anchor: Anchor, tmp_path: Path) -> None:
    path = tmp_path / "anchor.json"
    path.write_text(json.dumps(seal({**anchor.content(), "format_version": 2}, key=None)))
    with pytest.raises(SchemaMismatch):
        read_anchor(path)
    create_store(tmp_path / "another")
    with open_store(tmp_path / "another") as other, pytest.raises(ConfigurationError, match="the anchor is of store"):
        verify(other, anchor=anchor)


def test_the_seal_is_over_a_text_that_anybody_can_make_again(anchor: Anchor) -> None:
    made = document(anchor, key=None)
    text = json.dumps(made["sealed"], sort_keys=True, separators=(",", ":"))
    assert made["seal"] == hashlib.sha256(b"eventlog seal v1\n" + text.encode()).hexdigest()
