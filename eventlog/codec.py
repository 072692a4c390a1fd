"""Events to Avro single-object bytes and back: C3 01, the schema's CRC-64-AVRO fingerprint, header, body.

A record's encoding is its fields' one after the other. So the header is a slice of the event, which is what is hashed; and, as
`previous_hash` is its last field, all before it can be encoded before the log decides where the event stands.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from eventlog.errors import Corrupted, SchemaMismatch
from eventlog.event import CheckpointEvent, EventHeader, EventType, check_body

MARKER = b"\xc3\x01"
_PREAMBLE = len(MARKER) + 8
_HASH = 32
SALT_BYTES = 16
TENANT_WITHIN = 512  # bytes from an event's start: event id, type and tenant (at most 100 characters) take 150 at most
_EMPTY_BODY = b"\x00\x00"  # neither salt nor payload


def schema_text(name: str) -> str:
    """The text of a schema file: from the installed package, or from `schemas/` of a checkout."""
    packaged = resources.files("eventlog") / "_schemas" / name
    return (packaged if packaged.is_file() else Path(__file__).parent.parent / "schemas" / name).read_text()


class EventSchema(NamedTuple):
    """One released version of the event, in the forms that are needed to read and write it."""

    name: str
    fingerprint: bytes  # 8 bytes, little-endian, as it stands in every event
    header: Any
    body: Any
    beginning: Any  # the header's fields up to the tenant
    draft: Any  # all but the header's last field, previous_hash: a record of the other header fields, then the body


@lru_cache
def event_schema(version: int) -> EventSchema:
    """A released version of CheckpointEvent."""
    name = f"checkpoint_event.v{version}"
    schema = json.loads(schema_text(f"{name}.avsc"))
    # Ids and times stay text and numbers: logical types are no part of an encoding or a fingerprint, and cost 4 us an event.
    physical = without_logical_types(schema)
    header, body = (field["type"] for field in physical["fields"])
    first = [field["name"] for field in header["fields"]].index("tenant") + 1
    beginning = {**header, "name": header["name"] + "Beginning", "fields": header["fields"][:first]}
    prefix = {**header, "name": header["name"] + "Prefix", "fields": header["fields"][:-1]}
    space = physical["namespace"]
    draft_fields = [{"name": "header", "type": prefix}, {"name": "body", "type": body}]
    return EventSchema(
        name=name,
        fingerprint=bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")),
        header=fastavro.parse_schema({**header, "namespace": space}),
        body=fastavro.parse_schema({**body, "namespace": space}),
        beginning=fastavro.parse_schema({**beginning, "namespace": space}),
        draft=fastavro.parse_schema({"type": "record", "name": "Draft", "namespace": space, "fields": draft_fields}),
    )


def without_logical_types(node: Any) -> Any:
    """A schema as it is encoded: ids as text, times as numbers."""
    if isinstance(node, list):
        return [without_logical_types(each) for each in node]
    if not isinstance(node, dict):
        return node
    if "logicalType" in node:
        return node["type"]
    return {key: without_logical_types(value) for key, value in node.items()}


VERSIONS = (1,)
_WRITTEN = event_schema(VERSIONS[-1])
_BY_FINGERPRINT = {schema.fingerprint: schema for schema in map(event_schema, VERSIONS)}
_EVENT_START = MARKER + _WRITTEN.fingerprint


class Draft(NamedTuple):
    """An event that lacks only its place in the chain: the bytes before the header's last field, and those behind it."""

    before: bytes
    body: bytes

    @property
    def size(self) -> int:
        """Bytes of the finished event."""
        return len(self.before) + _HASH + len(self.body)


def draft(fields: dict[str, Any], stored: bytes) -> Draft:
    """Encodes all that does not depend on the log. `fields` are those of the header but digest and previous hash."""
    salt = os.urandom(SALT_BYTES)
    fields["payload_digest"] = hashlib.sha256(salt + stored).digest()
    out = io.BytesIO()
    out.write(_EVENT_START)
    fastavro.schemaless_writer(out, _WRITTEN.draft, {"header": fields, "body": {"salt": salt, "payload": stored}})
    data = out.getvalue()
    header_end = len(data) - _bytes_field(SALT_BYTES) - _bytes_field(len(stored))
    return Draft(data[:header_end], data[header_end:])


def finish(event: Draft, previous_hash: bytes) -> tuple[bytes, bytes]:
    """The event's bytes and its hash."""
    header = event.before + previous_hash
    return header + event.body, hashlib.sha256(memoryview(header)[_PREAMBLE:]).digest()


def decode_draft(event: Draft) -> CheckpointEvent:
    """The event that a draft would become as the first of its checkpoint."""
    return decode(finish(event, bytes(_HASH))[0], verify=False)


def decode_tenant(data: bytes) -> str:
    """The tenant of an event of which only the first `TENANT_WITHIN` bytes were read. Raises `SchemaMismatch` or `Corrupted`."""
    return str(_read_fields(data, _schema_of(data).beginning)[0]["tenant"])


def decode_header(data: bytes) -> tuple[EventHeader, bytes]:
    """The header and the event's hash, without touching the body. Raises `SchemaMismatch` or `Corrupted`."""
    header, digest, _, _ = _read_header(data)
    return header, digest


def decode(data: bytes, *, verify: bool = True) -> CheckpointEvent:
    """The whole event; `verify` holds the body against the header's digest. Raises `SchemaMismatch` or `Corrupted`."""
    header, digest, schema, stream = _read_header(data)
    try:
        body: Any = fastavro.schemaless_reader(stream, schema.body, None)
    except (EOFError, ValueError, IndexError, MemoryError, OverflowError) as error:
        raise Corrupted("event", f"its body cannot be decoded: {error!r}") from error
    if stream.read(1):
        raise Corrupted("event", "bytes follow its body")
    event = CheckpointEvent(header, digest, body["salt"], body["payload"])
    if verify:
        check_body(event, hashlib.sha256(event.salt + event.stored).digest())
    return event


def without_body(data: bytes) -> bytes:
    """The event with an empty body, as an erasure or a compact leaves it: its header and hash are the same."""
    return data[: header_end(data)] + _EMPTY_BODY


def header_end(data: bytes) -> int:
    """Where the body begins. Raises `SchemaMismatch` or `Corrupted`."""
    return _read_header(data)[3].tell()


def _schema_of(data: bytes) -> EventSchema:
    schema = _BY_FINGERPRINT.get(data[2:_PREAMBLE])
    if schema is None or data[:2] != MARKER:
        if data[:2] != MARKER:
            raise Corrupted("event", f"not an Avro single-object encoding (starts with {data[:2].hex() or 'nothing'})")
        raise SchemaMismatch(f"event of an unknown schema, fingerprint {data[2:_PREAMBLE].hex()}; this version reads {_readable()}")
    return schema


def _read_fields(data: bytes, record: Any) -> tuple[Any, io.BytesIO]:
    stream = io.BytesIO(data)
    stream.seek(_PREAMBLE)
    try:
        return fastavro.schemaless_reader(stream, record, None), stream
    # fastavro reports damaged bytes in each of these ways
    except (EOFError, ValueError, IndexError, KeyError, MemoryError, OverflowError, TypeError) as error:
        raise Corrupted("event", f"its header cannot be decoded: {error!r}") from error


def _read_header(data: bytes) -> tuple[EventHeader, bytes, EventSchema, io.BytesIO]:
    schema = _schema_of(data)
    fields, stream = _read_fields(data, schema.header)
    header = EventHeader._make(fields.values())
    if header.type not in EventType.__members__:
        raise SchemaMismatch(f"unknown event type {header.type!r}")
    return header, hashlib.sha256(data[_PREAMBLE : stream.tell()]).digest(), schema, stream


def _readable() -> str:
    return ", ".join(f"{schema.name} ({key.hex()})" for key, schema in _BY_FINGERPRINT.items())


def _bytes_field(length: int) -> int:
    """Bytes that an Avro `bytes` value of a length takes: its zigzag variable-length size, then itself."""
    return length + max(1, ((length << 1).bit_length() + 6) // 7)
