"""Events to bytes and back; damaged bytes are noticed."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import codec
from eventlog.errors import Corrupted, HistoryRemoved, SchemaMismatch
from eventlog.event import EventType
from eventlog.ids import CheckpointId, EventId, RunId
from tests.core.json_values import TEXT

LONG = st.integers(min_value=0, max_value=2**63 - 1)
HEADERS = st.fixed_dictionaries(
    {
        "event_id": st.uuids().map(str),
        "type": st.sampled_from([each.value for each in EventType]),
        "tenant": TEXT,
        "checkpoint_id": st.uuids().map(str),
        "run_id": st.uuids().map(str),
        "revision": LONG,
        "kind": TEXT,
        "schema_version": st.integers(min_value=1, max_value=2**31 - 1),
        "phase": st.none() | TEXT,
        "updated_at": st.integers(min_value=-(2**62), max_value=2**62),
        "actor": st.none() | TEXT,
        "labels": st.dictionaries(TEXT, TEXT, max_size=4),
        "usage": st.dictionaries(TEXT, LONG, max_size=4),
        "payload_size": LONG,
        "encoding": st.sampled_from(["json", "json+zstd"]),
        "encryption": st.none() | st.fixed_dictionaries({"key_id": TEXT, "nonce": st.binary(max_size=16)}),
    }
)


@given(HEADERS, st.binary(max_size=300), st.binary(min_size=32, max_size=32))
def test_any_event_comes_back_as_it_was(fields: dict[str, Any], stored: bytes, previous: bytes) -> None:
    draft = codec.draft(dict(fields), stored)
    data, digest = codec.finish(draft, previous)
    assert draft.size == len(data)
    event = codec.decode(data)
    assert {name: getattr(event.header, name) for name in fields} == fields
    assert (event.stored, event.header.previous_hash, event.hash) == (stored, previous, digest)
    assert event.header.payload_digest == hashlib.sha256(event.salt + stored).digest()
    assert codec.decode_header(data) == (event.header, digest)
    header_end = len(data) - len(draft.body)
    assert digest == hashlib.sha256(data[10:header_end]).digest()


def test_every_event_has_a_salt_of_its_own() -> None:
    salts = {codec.decode(sample()).salt for _ in range(50)}
    assert len(salts) == 50
    assert {len(salt) for salt in salts} == {16}


def sample(stored: bytes = b'{"a":1}', **fields: Any) -> bytes:
    draft = codec.draft(
        {
            "event_id": str(EventId("00000000-0000-7000-8000-000000000003")),
            "type": "REVISION",
            "tenant": "default",
            "checkpoint_id": str(CheckpointId("00000000-0000-7000-8000-000000000001")),
            "run_id": str(RunId("00000000-0000-7000-8000-000000000002")),
            "revision": 7,
            "kind": "acme.order",
            "schema_version": 1,
            "phase": "ready",
            "updated_at": 1_700_000_000_000,
            "actor": "alice",
            "labels": {"env": "prod"},
            "usage": {"turns": 3},
            "payload_size": len(stored),
            "encoding": "json",
            "encryption": None,
            **fields,
        },
        stored,
    )
    return codec.finish(draft, bytes(32))[0]


def read(data: bytes) -> tuple[bytes, bytes] | None:
    """Hash and payload of an event, or None where it is refused. Any other exception than the two fails the test."""
    try:
        event = codec.decode(data)
        text = event.json_text()
    except (Corrupted, SchemaMismatch, HistoryRemoved):
        return None
    return event.hash, text


def test_every_change_of_a_byte_is_refused_or_changes_the_hash() -> None:
    """All 255 other values of every byte: nothing gives another payload under the same hash, nor any payload but the right one."""
    data = sample()
    right = read(data)
    assert right is not None
    header_end = len(data) - 17 - 8
    for place in range(len(data)):
        for change in range(1, 256):
            damaged = bytearray(data)
            damaged[place] ^= change
            found = read(bytes(damaged))
            if found is None:
                continue
            assert found[1] == right[1], (place, change)
            assert found[0] != right[0], (place, change)
            assert place < header_end


def test_every_truncation_is_refused() -> None:
    data = sample(b"x" * 100)
    for length in range(len(data)):
        assert read(data[:length]) is None, length


def test_bytes_behind_an_event_are_refused() -> None:
    with pytest.raises(Corrupted, match="follow"):
        codec.decode(sample() + b"\x00")


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    assert read(data) is None
    assert read(sample()[:10] + data) is None


@given(st.integers(min_value=10), st.binary(min_size=1, max_size=20))
def test_an_inserted_piece_is_refused_or_changes_the_hash(place: int, piece: bytes) -> None:
    data = sample()
    place %= len(data)
    damaged = data[:place] + piece + data[place:]
    found, right = read(damaged), read(data)
    assert found is None or right is None or (found[1] == right[1] and found[0] != right[0])


def test_a_body_that_is_half_erased_is_corrupted() -> None:
    """An erased event has neither salt nor payload; one that lost its salt alone is damaged, and was not erased by anybody."""
    # Once: an empty salt switches the check of the digest off, whatever the payload.
    data = sample()
    forged = data[: -(17 + 8)] + b"\x00" + data[-8:]
    with pytest.raises(Corrupted):
        codec.decode(forged)


def test_an_unknown_schema_is_refused_by_its_fingerprint() -> None:
    with pytest.raises(SchemaMismatch, match="0011223344556677") as caught:
        codec.decode(b"\xc3\x01" + bytes.fromhex("0011223344556677") + sample()[10:])
    assert "checkpoint_event.v1" in str(caught.value)


def test_something_else_than_avro_is_corrupted() -> None:
    for data in (b"", b"{}", b"\xc3", b"\xc3\x02" + sample()[2:]):
        with pytest.raises(Corrupted):
            codec.decode(data)
