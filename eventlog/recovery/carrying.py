"""One checkpoint over the steps of a migration, and back: the revision that follows, or why there is none. Pure: no I/O, no clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from eventlog import payload
from eventlog.checkpoint import Checkpoint, phase_of, to_millis
from eventlog.errors import CheckpointError, InvalidPayload
from eventlog.event import EventType
from eventlog.ids import content_id
from eventlog.recovery.fields import own_copy
from eventlog.recovery.migrations import CannotCarry, Envelope, Migrations, MigrationStep, Payload, Schema, Way
from eventlog.recovery.usage import raised
from eventlog.revision import Gap, Revision


class Refusal(StrEnum):
    """Why a checkpoint is not migrated."""

    NO_WAY = "no_way"  # no step starts from what it is
    CANNOT_CARRY = "cannot_carry"  # a step says that this payload has no counterpart
    STEP_FAILED = "step_failed"  # a step's function has raised something else
    INVALID_RESULT = "invalid_result"  # what a step has made is not what its version demands
    NO_DOWN_STEP = "no_down_step"  # an undo, and a step has no way back
    WOULD_LOSE = "would_lose"  # an undo, and the present payload says more than the earlier version can hold
    HISTORY_REMOVED = "history_removed"  # an undo, and the log no longer holds what it was migrated from
    UNREADABLE = "unreadable"  # its payload cannot be read
    NOT_FOUND = "not_found"
    DELETED = "deleted"
    QUARANTINED = "quarantined"  # read-only
    NOT_COMMITTED = "not_committed"  # the store refuses the revision
    BUSY = "busy"  # live writers were always first


class CannotBeMigrated(Exception):
    """One checkpoint, for one reason."""

    def __init__(self, why: Refusal, detail: str) -> None:
        super().__init__(f"{why}: {detail}")
        self.why = why
        self.detail = detail


class Migrated(NamedTuple):
    """The last migration of a checkpoint that was not undone."""

    origin: Schema
    revision: int


def carried(migrations: Migrations, way: Way, checkpoint: Checkpoint) -> Checkpoint:
    """The successor that a migration commits. It follows from the checkpoint alone, its event id included.

    So whoever is killed and starts again, or does the same in another process, proposes the very same event. `updated_at` stays: it says
    when the state was written. Raises `CannotBeMigrated`.
    """
    usage = dict(checkpoint.usage)
    at = checkpoint
    for step in way:
        if step.usage is not None:
            usage = raised(_used(step, at.payload), usage)
        at = _stepped(migrations, step, at, step.up, step.to, moved_on=False)
    return _successor(checkpoint, at, usage)


def carried_back(migrations: Migrations, way: Way, checkpoint: Checkpoint, *, moved_on: bool) -> Checkpoint:
    """The successor that an undo commits: the present payload in its earlier version, if that loses nothing.

    What loses nothing is found out, not believed: taken up again, the result must be the present payload.
    Raises `CannotBeMigrated`.
    """
    at = checkpoint
    for step in reversed(way):
        if step.down is None:
            raise CannotBeMigrated(Refusal.NO_DOWN_STEP, f"the step {step} has no way back")
        at = _stepped(migrations, step, at, step.down, step.from_, moved_on=moved_on)
    try:
        again = at
        for step in way:
            again = _stepped(migrations, step, again, step.up, step.to, moved_on=False)
    except CannotBeMigrated as error:
        raise CannotBeMigrated(Refusal.WOULD_LOSE, f"what comes of it could not be migrated again: {error.detail}") from error
    if not payload.same_json(payload.dump_json(again.payload), payload.dump_json(checkpoint.payload)):
        fields = ", ".join(_differing(checkpoint.payload, again.payload))
        since = " since it was migrated" if moved_on else ""
        raise CannotBeMigrated(Refusal.WOULD_LOSE, f"{way[0].from_} cannot hold what {fields} has come to{since}")
    return _successor(checkpoint, at, dict(checkpoint.usage))


def last_migration(history: Iterable[Revision | Gap], until: int) -> Migrated | None:
    """What a checkpoint was migrated from last, as far as it was not undone.

    A migration back to where one came from is its undo. Raises `CannotBeMigrated` when that lies in a part of the history that is removed.
    """
    standing: list[Migrated] = []
    before: Schema | None = None
    unknown = False
    for each in history:
        if isinstance(each, Gap):
            standing, before, unknown = [], None, unknown or each.reason != "import"
            continue
        if each.checkpoint.revision > until:
            break
        schema = Schema(each.checkpoint.kind, each.checkpoint.schema_version)
        if each.type is EventType.MIGRATED and before is None:
            unknown = True
        elif before is not None and before != schema:
            came_from = [earlier.origin for earlier in standing]
            if schema in came_from:
                del standing[came_from.index(schema) :]
            else:
                standing.append(Migrated(before, each.checkpoint.revision))
        before = schema
    if standing:
        return standing[-1]
    if unknown:
        raise CannotBeMigrated(Refusal.HISTORY_REMOVED, "the log no longer holds what it may have been migrated from")
    return None


def _stepped(
    migrations: Migrations, step: MigrationStep, at: Checkpoint, function: Callable[..., Payload], to: Schema, *, moved_on: bool
) -> Checkpoint:
    """The same checkpoint with what one function has made of its payload, checked."""
    if not isinstance(at.payload, dict):
        raise CannotBeMigrated(Refusal.CANNOT_CARRY, f"{step}: the payload is no object")
    envelope = Envelope(at.id, to_millis(at.updated_at), at.usage, moved_on)
    arguments = (own_copy(at.payload), envelope) if step.with_envelope else (own_copy(at.payload),)
    try:
        made: Any = function(*arguments)
    except CannotCarry as error:
        raise CannotBeMigrated(Refusal.CANNOT_CARRY, f"{step}: {error}") from error
    except Exception as error:
        raise CannotBeMigrated(Refusal.STEP_FAILED, f"{step}: {type(error).__name__}: {error}") from error
    try:
        if not isinstance(made, dict):
            raise InvalidPayload("$", f"is {type(made).__name__}, not an object")
        payload.dump_json(made)
        after = at.model_copy(update={"kind": to.kind, "schema_version": to.version, "payload": made})
        migrations.check(after)
    except Exception as error:
        told = str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
        raise CannotBeMigrated(Refusal.INVALID_RESULT, f"{step}: not what {to} demands: {told}") from error
    return after


def _used(step: MigrationStep, given: Any) -> Mapping[str, int]:
    assert step.usage is not None
    try:
        return dict(step.usage(own_copy(given)))
    except CannotCarry as error:
        raise CannotBeMigrated(Refusal.CANNOT_CARRY, f"{step}: {error}") from error
    except Exception as error:
        raise CannotBeMigrated(Refusal.STEP_FAILED, f"{step}: usage: {type(error).__name__}: {error}") from error


def _successor(before: Checkpoint, at: Checkpoint, usage: dict[str, int]) -> Checkpoint:
    """A revision whose event id follows from what it follows and what it says. A phase that the payloads never named stays."""
    text = payload.dump_json(at.payload)
    event_id = content_id("eventlog.migration", before.event_id, at.kind, str(at.schema_version), json.dumps(usage, sort_keys=True), text)
    phase = before.phase if phase_of(before.payload) is None and phase_of(at.payload) is None else phase_of(at.payload)
    following = before.next(at.payload, usage=usage, event_id=event_id, updated_at=before.updated_at)
    return following.model_copy(update={"kind": at.kind, "schema_version": at.schema_version, "phase": phase})


def _differing(present: Payload, again: Payload) -> list[str]:
    nothing = object()
    names = [*present, *(name for name in again if name not in present)]
    return [name for name in names if present.get(name, nothing) != again.get(name, nothing)] or ["a number"]
