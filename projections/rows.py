"""The relational shape of what a projection is given: one row a revision, and what could not become one.

This floor knows nothing of Avro, Kafka or SQLite: a row carries the exact bytes of its event, or none where
the log itself keeps them, and never looks inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class RevisionRow(NamedTuple):
    """One committed revision. The field order is the column order of the table `revisions`."""

    partition: int
    offset: int
    recorded_at: int  # the log's clock, milliseconds since 1970 UTC
    checkpoint_id: str  # UUID as lower-case text, like the two below
    revision: int
    event_id: str
    run_id: str
    type: str  # REVISION | IMPORTED | MIGRATED | DELETED
    tenant: str
    kind: str
    schema_version: int
    phase: str | None
    updated_at: int  # the writer's clock, milliseconds since 1970 UTC
    actor: str | None
    labels: Mapping[str, str]
    usage: Mapping[str, int]
    payload_size: int  # bytes of the JSON before compression
    stored_size: int  # bytes of the event as stored
    payload_digest: bytes  # 32 bytes
    encoding: str
    key_id: str | None  # of the encryption key; null for clear text
    event_hash: bytes  # 32 bytes
    previous_hash: bytes  # 32 bytes, zeros for the first
    event: bytes | None  # the exact event; None where the log keeps the bodies


class GapRow(NamedTuple):
    """Revisions of a checkpoint that the log no longer holds, as noticed at a position."""

    partition: int
    offset: int  # of the first record after the gap
    checkpoint_id: str
    first_revision: int
    last_revision: int
    reason: str  # compaction | import


class QuarantineRow(NamedTuple):
    """A record that could not be accepted. It blocks its own checkpoint, when that is known."""

    partition: int
    offset: int
    recorded_at: int
    checkpoint_id: str | None  # None when not even the key could be read
    reason: str
    key: bytes | None
    value: bytes | None


class AccessRow(NamedTuple):
    """One access, from the access log. The columns of the table `access`, in their order."""

    partition: int
    offset: int
    at: int  # milliseconds since 1970 UTC
    subject: str
    roles: str
    tenant: str | None
    action: str
    outcome: str  # allowed | refused | failed | absent
    checkpoint_id: str | None
    revision: int | None  # of several the first
    last_revision: int | None
    event_id: str | None
    target: str | None
    items: int | None
    position: str | None
    reason: str | None
    detail: str | None
    session: str
    number: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction applies. `next_offsets` names, per partition, the first offset that is not part of it."""

    next_offsets: Mapping[int, int]
    rows: Sequence[RevisionRow] = ()
    gaps: Sequence[GapRow] = ()
    quarantined: Sequence[QuarantineRow] = ()
    released: Sequence[str] = field(default=())  # checkpoint ids that a repair has unblocked
