"""A checkpoint revision as an application sees it, and what it gets back for committing one."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from eventlog.errors import CheckpointError, InvalidRequest
from eventlog.ids import CheckpointId, EventId, RunId
from eventlog.position import Position

LAST_REVISION = 2**63 - 1  # an Avro long, a SQLite and a DuckDB integer
DEFAULT_TENANT = "default"
LAST_SCHEMA_VERSION = 2**31 - 1
MAX_KIND = 200
MAX_TENANT = 100
MAX_ACTOR = 200
MAX_REASON = 1_000  # characters of why somebody did something that stays on record
MAX_PHASE = 200
MAX_LABELS = 32
MAX_LABEL_KEY = 63
MAX_LABEL_VALUE = 256
MAX_USAGE = 64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*"
_is_name = re.compile(_NAME).fullmatch
_is_label_key = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*").fullmatch


def to_millis(moment: datetime, field: str = "time") -> int:
    """Milliseconds since 1970 UTC. A naive datetime is refused: nothing is guessed."""
    if not isinstance(moment, datetime):
        raise InvalidRequest(field, f"must be a datetime with tzinfo, not {type(moment).__name__}")
    if moment.tzinfo is None:
        raise InvalidRequest(field, f"{moment.isoformat()} has no time zone", hint="Use a datetime with tzinfo, for example UTC.")
    return (moment - _EPOCH) // _MILLISECOND


def from_millis(millis: int) -> datetime:
    """A UTC datetime of milliseconds since 1970."""
    return _EPOCH + _MILLISECOND * millis


class Checkpoint(BaseModel):
    """One revision of the state of a run. Frozen: `next()` builds the successor.

    `payload` is any JSON value. It is not copied: treat it as frozen too. `labels` are clear text and searchable, so never
    personal data. `usage` are cumulative whole numbers (`input_tokens`, `cost_microusd`, `duration_micros`, `turns`, ...) of
    which the store accepts no decrease. Malformed fields raise `InvalidRequest`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: CheckpointId
    run_id: RunId
    revision: Annotated[int, Field(ge=0, le=LAST_REVISION)]
    kind: str
    schema_version: Annotated[int, Field(ge=1, le=LAST_SCHEMA_VERSION)]
    payload: Any
    updated_at: datetime
    event_id: EventId
    tenant: str = DEFAULT_TENANT
    labels: dict[str, str] = Field(default_factory=dict)
    usage: dict[str, int] = Field(default_factory=dict)
    phase: str | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            made = handler(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise InvalidRequest(".".join(map(str, first["loc"])) or "checkpoint", first["msg"]) from error
        check_fields(made)
        return made

    @classmethod
    def initial(
        cls,
        id: CheckpointId | UUID | str,  # noqa: A002 - the field's name
        run_id: RunId | UUID | str,
        kind: str,
        schema_version: int,
        payload: Any,
        *,
        tenant: str = DEFAULT_TENANT,
        labels: Mapping[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
        phase: str | None = None,
        event_id: EventId | UUID | str | None = None,
        updated_at: datetime | None = None,
    ) -> Self:
        """Revision 0 of a new checkpoint; commit it with `compare_and_swap(initial, None)` before any work is done.

        `phase` is taken from the payload's `phase` (a string, or an object with `state`) unless it is given.
        """
        return cls(
            id=CheckpointId(id),
            run_id=RunId(run_id),
            revision=0,
            kind=kind,
            schema_version=schema_version,
            payload=payload,
            updated_at=_now() if updated_at is None else updated_at,
            event_id=EventId.new() if event_id is None else EventId(event_id),
            tenant=tenant,
            labels={} if labels is None else _mapping("labels", labels),
            usage={} if usage is None else _mapping("usage", usage),
            phase=phase_of(payload) if phase is None else phase,
        )

    def next(
        self,
        payload: Any,
        *,
        labels: Mapping[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
        phase: str | None = None,
        event_id: EventId | UUID | str | None = None,
        updated_at: datetime | None = None,
    ) -> Self:
        """The successor: revision + 1, a new event id, the same identity. `labels` and `usage` are carried on unless given.

        Raises `InvalidRequest` at the last revision (2^63-1). Other fields are checked when it is committed.
        """
        if self.revision >= LAST_REVISION:
            raise InvalidRequest("revision", f"{self.revision} is the last one that a checkpoint can have", hint="Start a new checkpoint.")
        return self._trusted(  # the commit checks the fields
            id=self.id,
            run_id=self.run_id,
            revision=self.revision + 1,
            kind=self.kind,
            schema_version=self.schema_version,
            payload=payload,
            updated_at=_now() if updated_at is None else updated_at,
            event_id=EventId.new() if event_id is None else EventId(event_id),
            tenant=self.tenant,
            labels=_mapping("labels", self.labels if labels is None else labels),
            usage=_mapping("usage", self.usage if usage is None else usage),
            phase=phase_of(payload) if phase is None else phase,
        )

    @classmethod
    def _trusted(cls, **fields: Any) -> Self:
        """Without validation, for fields that were validated before (a quarter of the cost, on the path of every load)."""
        self = cls.__new__(cls)
        object.__setattr__(self, "__dict__", fields)
        object.__setattr__(self, "__pydantic_fields_set__", _ALL_FIELDS)
        object.__setattr__(self, "__pydantic_extra__", None)
        object.__setattr__(self, "__pydantic_private__", None)
        return self


_ALL_FIELDS = set(Checkpoint.model_fields)


class Receipt(NamedTuple):
    """Proof that a revision is in the log."""

    event_id: EventId
    revision: int
    position: Position  # just behind the event: a read at least here sees it
    recorded_at: datetime  # the log's clock
    duplicate: bool = False  # the event had been committed before; this call was a retry


def phase_of(payload: Any) -> str | None:
    """The phase that a payload declares: its `phase`, a string or an object with a `state`; None when there is none that could be one.

    A payload is the application's own; a `phase` in it that is too long, or no text for one line, is only not shown.
    """
    phase = payload.get("phase") if isinstance(payload, dict) else None
    if isinstance(phase, dict):
        phase = phase.get("state")
    return phase if isinstance(phase, str) and 0 < len(phase) <= MAX_PHASE and phase.isprintable() else None


def check_fields(checkpoint: Checkpoint) -> None:
    """Raises `InvalidRequest` for a field out of its limits. `model_copy` does not validate, so every commit checks again."""
    _whole("revision", checkpoint.revision, 0)
    _whole("schema_version", checkpoint.schema_version, 1, LAST_SCHEMA_VERSION)
    check_name("kind", checkpoint.kind, MAX_KIND)
    check_name("tenant", checkpoint.tenant, MAX_TENANT)
    if type(checkpoint.id) is not CheckpointId or type(checkpoint.run_id) is not RunId or type(checkpoint.event_id) is not EventId:
        for field, wanted in (("id", CheckpointId), ("run_id", RunId), ("event_id", EventId)):
            if type(getattr(checkpoint, field)) is not wanted:
                raise InvalidRequest(field, f"must be a {wanted.__name__}, not {type(getattr(checkpoint, field)).__name__}")
    if checkpoint.phase is not None:
        check_text("phase", checkpoint.phase, MAX_PHASE)
    if checkpoint.labels != {}:
        check_labels(checkpoint.labels)
    if checkpoint.usage != {}:
        _check_usage(checkpoint.usage)


def check_name(field: str, value: object, longest: int) -> None:
    """A dotted name such as `acme.order`: letters, digits, `_` and `-`, parts joined by dots."""
    if not isinstance(value, str) or not value:
        raise InvalidRequest(field, "must be a text that is not empty")
    if value in _known_names:
        return
    if len(value) > longest:
        raise InvalidRequest(field, f"has {len(value)} characters; at most {longest} are allowed")
    if not _is_name(value):
        raise InvalidRequest(field, f"{value[:60]!r} is not a dotted name such as acme.order (letters, digits, _ and -)")
    if len(value) <= MAX_TENANT and len(_known_names) < 1000:  # bounded: names may come from outside
        _known_names.add(value)


_known_names: set[str] = set()


def check_text(field: str, value: object, longest: int) -> None:
    """Text of 1 to `longest` characters that can be encoded and printed on a line."""
    if not isinstance(value, str) or not value:
        raise InvalidRequest(field, "must be a text that is not empty")
    if len(value) > longest:
        raise InvalidRequest(field, f"has {len(value)} characters; at most {longest} are allowed")
    if not value.isprintable():
        raise InvalidRequest(field, "contains characters that cannot be printed")


def check_identity(tenant: str | None, actor: str | None) -> None:
    """Raises `InvalidRequest` for a malformed tenant or actor."""
    if tenant is not None:
        check_name("tenant", tenant, MAX_TENANT)
    if actor is not None:
        check_text("actor", actor, MAX_ACTOR)


def check_labels(labels: object) -> None:
    """Few, short, printable: they are an index for people, not a second payload."""
    if not isinstance(labels, Mapping):
        raise InvalidRequest("labels", "must be a mapping of text to text")
    if len(labels) > MAX_LABELS:
        raise InvalidRequest("labels", f"has {len(labels)} entries; at most {MAX_LABELS} are allowed")
    for key, value in labels.items():
        if not isinstance(key, str) or not _is_label_key(key) or len(key) > MAX_LABEL_KEY:
            raise InvalidRequest("labels", f"the key {str(key)[:70]!r} is not 1 to {MAX_LABEL_KEY} letters, digits, _ . / or -")
        if value == "":
            continue
        check_text(f"labels.{key}", value, MAX_LABEL_VALUE)


def _check_usage(usage: object) -> None:
    if not isinstance(usage, Mapping):
        raise InvalidRequest("usage", "must be a mapping of text to whole numbers")
    if len(usage) > MAX_USAGE:
        raise InvalidRequest("usage", f"has {len(usage)} entries; at most {MAX_USAGE} are allowed")
    for key, value in usage.items():
        if not isinstance(key, str) or not _is_label_key(key) or len(key) > MAX_LABEL_KEY:
            raise InvalidRequest("usage", f"the key {str(key)[:70]!r} is not 1 to {MAX_LABEL_KEY} letters, digits, _ . / or -")
        _whole(f"usage.{key}", value, 0)


def _whole(field: str, value: object, least: int, most: int = LAST_REVISION) -> None:
    if type(value) is not int:
        raise InvalidRequest(field, f"must be a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidRequest(field, f"{value} is not within {least} to {most}")


def _mapping(field: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy, so that no two revisions share one."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, f"must be a mapping, not {type(value).__name__}")
    return dict(value)


def _now() -> datetime:
    return from_millis(time.time_ns() // 1_000_000)


__all__ = ["Checkpoint", "CheckpointError", "CheckpointId", "EventId", "Receipt", "RunId"]
