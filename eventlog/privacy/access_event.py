"""An access event: who did or tried what, when, and what came of it; and its Avro bytes. Never a payload."""

from __future__ import annotations

import hashlib
import io
import json
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from eventlog.codec import MARKER, schema_text, without_logical_types
from eventlog.errors import Corrupted, SchemaMismatch

GENESIS = bytes(32)  # the previous hash of a session's first event
_PREAMBLE = len(MARKER) + 8


class AccessOutcome(StrEnum):
    """What came of an access."""

    ALLOWED = "allowed"
    REFUSED = "refused"  # by the roles or the tenant
    FAILED = "failed"  # by the store: a conflict, a full disk
    ABSENT = "absent"  # there is no such checkpoint, or none for this principal


class AccessEvent(NamedTuple):
    """One access. The fields and their order are those of `schemas/access_event.v1.avsc`, without the writer's chain."""

    at: int  # milliseconds since 1970 UTC, the recorder's clock
    subject: str
    roles: tuple[str, ...]
    tenant: str | None  # whose data it concerned
    action: str
    outcome: AccessOutcome
    checkpoint_id: str | None = None
    revision: int | None = None
    last_revision: int | None = None
    event_id: str | None = None
    target: str | None = None
    items: int | None = None
    position: str | None = None
    reason: str | None = None
    detail: str | None = None


class SealedAccess(NamedTuple):
    """An access event in its place in the chain of the session that wrote it."""

    event: AccessEvent
    session: str
    number: int
    previous_hash: bytes
    hash: bytes  # SHA-256 of the record's Avro bytes


class _Schema(NamedTuple):
    fingerprint: bytes
    parsed: Any


@lru_cache
def access_schema(version: int) -> _Schema:
    """A released version of AccessEvent."""
    schema = json.loads(schema_text(f"access_event.v{version}.avsc"))
    mark = bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))
    return _Schema(mark, fastavro.parse_schema(without_logical_types(schema)))


VERSIONS = (1,)
_WRITTEN = access_schema(VERSIONS[-1])
_BY_FINGERPRINT = {schema.fingerprint: schema for schema in map(access_schema, VERSIONS)}


def encode(event: AccessEvent, *, session: str, number: int, previous_hash: bytes) -> tuple[bytes, bytes]:
    """The event's bytes, and its hash."""
    fields = {**event._asdict(), "session": session, "number": number, "previous_hash": previous_hash}
    fields["outcome"] = event.outcome.value
    fields["roles"] = list(event.roles)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _WRITTEN.parsed, fields)
    record = out.getvalue()
    return MARKER + _WRITTEN.fingerprint + record, hashlib.sha256(record).digest()


def hash_of(data: bytes) -> bytes:
    """The hash of a record's bytes, of one that cannot be decoded too."""
    return hashlib.sha256(data[_PREAMBLE:]).digest()


def decode(data: bytes) -> SealedAccess:
    """The event and its place. Raises `SchemaMismatch` or `Corrupted`."""
    if data[:2] != MARKER:
        raise Corrupted("access event", f"not an Avro single-object encoding (starts with {data[:2].hex() or 'nothing'})")
    schema = _BY_FINGERPRINT.get(data[2:_PREAMBLE])
    if schema is None:
        raise SchemaMismatch(f"access event of an unknown schema, fingerprint {data[2:_PREAMBLE].hex()}")
    stream = io.BytesIO(data)
    stream.seek(_PREAMBLE)
    try:
        fields: Any = fastavro.schemaless_reader(stream, schema.parsed, None)
    # fastavro reports damaged bytes in each of these ways
    except (EOFError, ValueError, IndexError, KeyError, MemoryError, OverflowError, TypeError) as error:
        raise Corrupted("access event", f"cannot be decoded: {error!r}") from error
    if stream.read(1):
        raise Corrupted("access event", "bytes follow it")
    session, number, previous = (fields.pop(name) for name in ("session", "number", "previous_hash"))
    fields["outcome"] = AccessOutcome(fields["outcome"])
    fields["roles"] = tuple(fields["roles"])
    return SealedAccess(AccessEvent(**fields), session, number, previous, hash_of(data))
