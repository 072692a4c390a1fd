"""Segments hold exactly what the log holds, and whatever is done to one of them is noticed and named."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from eventlog import (
    Busy,
    CheckpointStore,
    ConfigurationError,
    Corrupted,
    InvalidRequest,
    NotAStore,
    SchemaMismatch,
    create_store,
    open_store,
)
from eventlog.archive.checking import check_archive
from eventlog.archive.directory import Archive, Segment
from eventlog.archive.manifest import Manifest
from eventlog.archive.remembered import remembered
from eventlog.archive.running import Limits, run_archive
from eventlog.archive.sealing import public_key, seal, signing_key
from eventlog.codec import decode_header
from eventlog.merkle import leaf_hash, root_of
from projections.archive import read_segment, write_segment
from projections.rows import RevisionRow
from tests.archive.samples import archived, grown, keys, logged, tampering

SMALL = Limits(rows=4)


def test_the_archive_holds_exactly_what_the_log_holds(store: CheckpointStore, archive: Archive) -> None:
    grown(store, 7)
    run = run_archive(store, archive, limits=SMALL)
    assert (run.events, len(run.segments), run.end) == (7, 2, store.position())
    assert archived(archive) == logged(store)
    assert remembered(store.log.directory) == archive.directory
    last = run.segments[-1].manifest
    assert last.root == root_of([leaf_hash(decode_header(value or b"")[1]) for *_, value in logged(store)]).hex()
    assert check_archive(archive).events == 7


def test_a_run_goes_on_where_the_last_one_ended(store: CheckpointStore, archive: Archive) -> None:
    for number in range(1, 4):
        grown(store, 3, kind=f"acme.{number}")
        assert run_archive(store, archive).events == 3
        assert run_archive(store, archive).events == 0
        assert archived(archive) == logged(store)
    found = check_archive(archive)
    assert (found.segments, found.events, found.signed) == (3, 9, 0)


def test_what_is_younger_than_wanted_waits_for_a_segment_to_fill(store: CheckpointStore, archive: Archive) -> None:
    grown(store, 6)
    assert run_archive(store, archive, limits=Limits(rows=4, wait_ms=3_600_000)).events == 4
    assert run_archive(store, archive).events == 2


def test_other_programs_can_query_a_segment(store: CheckpointStore, archive: Archive) -> None:
    grown(store, 3)
    (segment,) = run_archive(store, archive).segments
    copied = archive.directory.parent / "copied.parquet"
    shutil.copy(segment.path, copied)
    columns = "revision, kind, labels['of'], usage['turns'], typeof(recorded_at), event_hash = sha256(event)::BLOB"
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT {columns} FROM '{copied}' ORDER BY \"offset\"").fetchall()
    assert [row[:5] for row in rows] == [(number, "acme.order", "a test", number, "TIMESTAMP WITH TIME ZONE") for number in range(3)]


def test_signed_segments_are_known_by_the_key(store: CheckpointStore, archive: Archive, tmp_path: Path) -> None:
    grown(store, 2)
    private, public = keys(tmp_path)
    _, other = keys(tmp_path, "other")
    run_archive(store, archive, key=signing_key(private))
    trusting = Archive(directory=archive.directory, trusted=public_key(public))
    assert check_archive(trusting).signed == 1
    assert check_archive(archive).signers == {public_key(public)}
    with pytest.raises(Corrupted, match="is signed by the key"):
        check_archive(Archive(directory=archive.directory, trusted=public_key(other)))
    grown(store, 1, kind="acme.unsigned")
    run_archive(store, archive)
    with pytest.raises(Corrupted, match="is signed by nobody"):
        check_archive(trusting)


@pytest.mark.parametrize("made", ["rsa", "passphrase", "nothing"])
def test_another_kind_of_key_is_refused(tmp_path: Path, made: str) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

    path = tmp_path / "key.pem"
    if made == "rsa":
        path.write_bytes(rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    elif made == "passphrase":
        path.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")))
    else:
        path.write_text("nothing")
    for reading in (signing_key, public_key):
        with pytest.raises(ConfigurationError):
            reading(path)


# -- what may not go unnoticed ---------------------------------------------------------------------------------


@pytest.fixture
def segments(store: CheckpointStore, archive: Archive) -> list[Segment]:
    """Three segments of four events."""
    grown(store, 12)
    return run_archive(store, archive, limits=SMALL).segments


def resealed(segment: Segment, change: Callable[[Manifest], Manifest]) -> None:
    """A manifest changed by somebody who knows how they are sealed."""
    path = segment.path.with_suffix(".json")
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**seal(change(segment.manifest).content(), key=None), "file": document["file"]}))


def rewritten(segment: Segment, change: Callable[[RevisionRow], RevisionRow]) -> None:
    """A file changed by somebody who also corrects the manifest's word about it."""
    target = segment.path
    rows = list(read_segment(target))
    write_segment([change(row) for row in rows], target)
    path = target.with_suffix(".json")
    document = json.loads(path.read_text())
    document["file"]["sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
    path.write_text(json.dumps(document))


def test_a_flipped_bit_is_found(segments: list[Segment], archive: Archive) -> None:
    path = segments[1].path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(Corrupted, match="is not the file that its manifest speaks of") as caught:
        check_archive(archive)
    assert caught.value.place == str(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row._replace(event=row.event[:-1] + bytes([row.event[-1] ^ 1])),
        lambda row: row._replace(tenant="other"),
        lambda row: row._replace(recorded_at=row.recorded_at + 1),
        lambda row: row._replace(offset=row.offset + 1),
        lambda row: row._replace(event=row.event.replace(b"acme.order", b"acme.0rder"), kind="acme.0rder"),
    ],
    ids=["body", "column", "time", "place", "header"],
)
def test_a_changed_row_is_found_though_the_files_own_hash_was_corrected(
    segments: list[Segment], archive: Archive, change: Callable[[RevisionRow], RevisionRow]
) -> None:
    rewritten(segments[1], change)
    with pytest.raises(Corrupted) as caught:
        check_archive(archive)
    assert str(segments[1].path) in caught.value.place


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_missing_segment_is_named_and_nothing_goes_on_without_it(
    store: CheckpointStore, segments: list[Segment], archive: Archive, suffix: str
) -> None:
    segments[1].path.with_suffix(suffix).unlink()
    grown(store, 1, kind="acme.more")
    for call in (lambda: check_archive(archive), lambda: run_archive(store, archive)):
        with pytest.raises(Corrupted, match="is missing") as caught:
            call()
        assert str(archive.directory) in caught.value.place


def test_exchanged_segments_are_named(segments: list[Segment], archive: Archive) -> None:
    first, second = segments[0].path, segments[1].path
    for suffix in (".parquet", ".json"):
        one, other = first.with_suffix(suffix), second.with_suffix(suffix)
        aside = one.rename(one.with_suffix(".aside"))
        other.rename(one)
        aside.rename(other)
    with pytest.raises(Corrupted, match="is the manifest of"):
        check_archive(archive)


def test_a_manifest_that_was_sealed_anew_does_not_fit_its_neighbours(segments: list[Segment], archive: Archive) -> None:
    resealed(segments[0], lambda manifest: manifest._replace(first_recorded_at=0))
    with pytest.raises(Corrupted, match="does not continue the segment before it") as caught:
        check_archive(archive)
    assert caught.value.place == str(segments[1].path.with_suffix(".json"))


def test_a_changed_manifest_is_no_sealed_document(segments: list[Segment], archive: Archive) -> None:
    path = segments[0].path.with_suffix(".json")
    path.write_text(path.read_text().replace('"rows": 4', '"rows": 3'))
    with pytest.raises(Corrupted, match="does not say what was sealed"):
        check_archive(archive)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"sealed": {}, "seal": "00", "signature": null}', "[" * 100_000])
def test_what_is_no_manifest_is_named(segments: list[Segment], archive: Archive, text: str) -> None:
    segments[0].path.with_suffix(".json").write_text(text)
    with pytest.raises(Corrupted):
        check_archive(archive)


def test_a_segment_of_a_later_format_is_refused_by_name(segments: list[Segment], archive: Archive) -> None:
    resealed(segments[0], lambda manifest: manifest._replace(format_version=2))
    with pytest.raises(SchemaMismatch, match="has format 2"):
        check_archive(archive)


# -- whose archive it is ---------------------------------------------------------------------------------------


def test_the_archive_of_another_store_is_refused(segments: list[Segment], archive: Archive, tmp_path: Path) -> None:
    del segments
    create_store(tmp_path / "another")
    with open_store(tmp_path / "another") as other, pytest.raises(ConfigurationError, match="is the archive of store"):
        run_archive(other, archive)


def test_a_log_that_does_not_continue_the_archive_is_refused(store: CheckpointStore, archive: Archive, directory: Path) -> None:
    grown(store, 3)
    run_archive(store, archive)
    store.close()
    with tampering(directory) as connection:
        connection.execute("DELETE FROM events WHERE position = 2")
    with open_store(directory) as cut:
        with pytest.raises(Corrupted, match=r"does not have the archive's last event at 0:2"):
            run_archive(cut, archive)
        grown(cut, 2, kind="acme.after")
        with pytest.raises(Corrupted, match=r"does not have the archive's last event at 0:2"):
            run_archive(cut, archive)


def test_a_damaged_event_is_not_archived(store: CheckpointStore, archive: Archive, directory: Path) -> None:
    grown(store, 3)
    with closing(sqlite3.connect(directory / "log.sqlite3", isolation_level=None)) as connection:
        connection.execute("UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 1")
    with pytest.raises(Corrupted, match="position 1 is damaged"):
        run_archive(store, archive)
    assert archive.partitions() == []


def test_two_cannot_write_to_an_archive_at_once(store: CheckpointStore, archive: Archive) -> None:
    with archive.locked(), pytest.raises(Busy):
        run_archive(store, archive)


def test_no_archive_is_said_so(archive: Archive) -> None:
    with pytest.raises(NotAStore):
        check_archive(archive)


def test_one_tenants_view_cannot_be_archived_as_if_it_were_all(store: CheckpointStore, archive: Archive, directory: Path) -> None:
    grown(store, 1)
    with open_store(directory, tenant="north") as north, pytest.raises(InvalidRequest, match="holds all tenants"):
        run_archive(north, archive)
