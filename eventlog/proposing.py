"""From a checkpoint to a proposal: checked, encoded, compressed and drafted before the log is asked."""

from __future__ import annotations

from typing import Any, Protocol

from eventlog import codec, payload
from eventlog.checkpoint import LAST_REVISION, Checkpoint, check_fields, to_millis
from eventlog.errors import InvalidRequest, TooLarge
from eventlog.event import CheckpointEvent, EventType
from eventlog.rules import Proposal


class SealingKey(Protocol):
    """One checkpoint's key, as a proposal needs it."""

    def seal(self, fields: dict[str, Any], stored: bytes) -> bytes:
        """The sealed form of a stored payload; writes into the header's fields how it was sealed."""
        ...


class PayloadKeys(Protocol):
    """The keys of an encrypted store, as a proposal needs them."""

    def for_writing(self, checkpoint_id: str, tenant: str, *, expected: int | None, begins: bool) -> SealingKey: ...
    def unkept(self, checkpoint_id: str) -> SealingKey: ...
    def json_text(self, event: CheckpointEvent) -> bytes: ...


def propose(
    checkpoint: Checkpoint,
    expected: int | None,
    *,
    actor: str | None,
    max_event_bytes: int,
    compress_from: int = payload.COMPRESS_FROM,
    event_type: EventType = EventType.REVISION,
    keys: PayloadKeys | None = None,
) -> Proposal:
    """A proposal for a revision. Raises `InvalidRequest`, `InvalidPayload` or `TooLarge`; nothing is written.

    A payload of `compress_from` bytes or more is compressed; a smaller one too if it would not fit otherwise. With `keys` it is sealed
    then, for which a new checkpoint's data key is made; raises what `DataKeys.for_writing` raises.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidRequest("checkpoint", f"must be a Checkpoint, not {type(checkpoint).__name__}")
    if expected is not None and (type(expected) is not int or not 0 <= expected <= LAST_REVISION):
        raise InvalidRequest("expected", f"{expected!r} is neither None nor a revision (0 to 2^63-1)")
    check_fields(checkpoint)
    if event_type is EventType.DELETED:
        text, size, encoding, stored = b"", 0, payload.JSON, b""
    else:
        text = payload.dump_json(checkpoint.payload)
        size = len(text)
        encoding, stored = payload.store_form(text, compress_from)
    usage = dict(checkpoint.usage)  # the head keeps it: what the caller does to its own afterwards must not reach it
    fields = {
        "event_id": checkpoint.event_id,
        "type": event_type.value,
        "tenant": checkpoint.tenant,
        "checkpoint_id": checkpoint.id,
        "run_id": checkpoint.run_id,
        "revision": checkpoint.revision,
        "kind": checkpoint.kind,
        "schema_version": checkpoint.schema_version,
        "phase": checkpoint.phase,
        "updated_at": to_millis(checkpoint.updated_at, "updated_at"),
        "actor": actor,
        "labels": checkpoint.labels,
        "usage": usage,
        "payload_size": size,
        "encoding": encoding,
        "encryption": None,
    }
    key = None
    if keys is not None and event_type is not EventType.DELETED:
        if len(stored) > max_event_bytes and encoding != payload.JSON:  # before a key is made for it
            size = codec.draft(fields, keys.unkept(checkpoint.id).seal(fields, stored)).size
            raise TooLarge(checkpoint.id, size=size, limit=max_event_bytes)
        begins = expected is None and (checkpoint.revision == 0 or event_type is EventType.IMPORTED)
        key = keys.for_writing(checkpoint.id, checkpoint.tenant, expected=expected, begins=begins)
    draft = codec.draft(fields, stored if key is None else key.seal(fields, stored))
    if draft.size > max_event_bytes and encoding == payload.JSON:
        fields["encoding"], stored = payload.store_form(text)
        draft = codec.draft(fields, stored if key is None else key.seal(fields, stored))
    if draft.size > max_event_bytes:
        raise TooLarge(checkpoint.id, size=draft.size, limit=max_event_bytes)
    return Proposal(
        checkpoint.id,
        expected,
        checkpoint.revision,
        checkpoint.event_id,
        event_type.value,
        checkpoint.tenant,
        checkpoint.run_id,
        checkpoint.kind,
        checkpoint.schema_version,
        usage,
        draft,
        *(() if keys is None else (key is not None, keys.json_text)),
    )
