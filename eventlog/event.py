"""A checkpoint event: one revision as it stands in the log, in plain Python values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from eventlog import payload
from eventlog.checkpoint import Checkpoint, from_millis
from eventlog.errors import Corrupted, EncryptionMismatch, HistoryRemoved, SchemaMismatch
from eventlog.ids import CheckpointId, EventId, RunId

IN_CLEAR = "its payload is in clear text, and this store is encrypted"
GENESIS = bytes(32)  # the previous hash of a checkpoint's first event


class EventType(StrEnum):
    REVISION = "REVISION"
    IMPORTED = "IMPORTED"  # starts a stream at another store's latest revision
    MIGRATED = "MIGRATED"  # the only successor that may change kind or schema version
    DELETED = "DELETED"


class EventHeader(NamedTuple):
    """What stays for ever. The fields and their order are those of the record `CheckpointHeader` in `schemas/`."""

    event_id: str
    type: str
    tenant: str
    checkpoint_id: str
    run_id: str
    revision: int
    kind: str
    schema_version: int
    phase: str | None
    updated_at: int
    actor: str | None
    labels: dict[str, str]
    usage: dict[str, int]
    payload_size: int
    payload_digest: bytes
    encoding: str
    encryption: dict[str, Any] | None
    previous_hash: bytes


class CheckpointEvent(NamedTuple):
    """A decoded event. `hash` is SHA-256 of the header's Avro bytes; `salt` and `stored` are empty after an erasure."""

    header: EventHeader
    hash: bytes
    salt: bytes
    stored: bytes

    def json_text(self) -> bytes:
        """The JSON text of a payload in clear text; `DataKeys.json_text` is the same for sealed ones.

        Raises `HistoryRemoved` when it was erased, `EncryptionMismatch` when it is sealed, `SchemaMismatch` when it cannot be read.
        """
        header = self.header
        problem = misfit(header, encrypted=False)
        if problem is not None:
            raise EncryptionMismatch(header.checkpoint_id, revision=header.revision, problem=problem)
        if not self.salt:
            raise HistoryRemoved.erased(header.checkpoint_id, header.revision)
        return payload.json_text(header.encoding, self.stored, header.payload_size)


def to_checkpoint(header: EventHeader, json_text: bytes) -> Checkpoint:
    """The application's view of an event, with a payload of its own."""
    return checkpoint_of(header, payload.load_json(json_text))


def checkpoint_of(header: EventHeader, value: Any) -> Checkpoint:
    """The same for a payload that is decoded already; it becomes the caller's own."""
    if header.type not in EventType.__members__:
        raise SchemaMismatch(f"unknown event type {header.type!r}")
    return Checkpoint._trusted(
        id=CheckpointId.trusted(header.checkpoint_id),
        run_id=RunId.trusted(header.run_id),
        revision=header.revision,
        kind=header.kind,
        schema_version=header.schema_version,
        payload=value,
        updated_at=from_millis(header.updated_at),
        event_id=EventId.trusted(header.event_id),
        tenant=header.tenant,
        labels=header.labels.copy(),
        usage=header.usage.copy(),
        phase=header.phase,
    )


def misfit(header: EventHeader, *, encrypted: bool) -> str | None:
    """Why an event does not belong into an encrypted store, or into one that is not; None when it does. A deletion has no payload."""
    if header.encryption is not None:
        return None if encrypted else f"its payload is encrypted with key {header.encryption['key_id']}, and this store is not encrypted"
    return IN_CLEAR if encrypted and (header.type != EventType.DELETED or header.payload_size) else None


def check_body(event: CheckpointEvent, digest: bytes) -> None:
    """Raises `Corrupted` when the body is not the one that the header's digest was made of."""
    if digest != event.header.payload_digest and (event.salt or event.stored):  # both are empty after an erasure
        raise Corrupted(
            f"checkpoint {event.header.checkpoint_id} revision {event.header.revision}", "the payload does not match its digest"
        )
