"""Decides what one principal may do, and puts on record what became of it.

A read is recorded when its outcome is known and before anything of it is handed out. A write is recorded before it is made: a record
that came after it could be missing when the process dies in between. That it was made, its event in the log of checkpoints shows, with
the same event id; if it failed, a second record says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eventlog.errors import AccessDenied, AuditUnavailable, CheckpointError, InvalidRequest, NotFound
from eventlog.ids import CheckpointId
from eventlog.privacy.access_event import AccessEvent, AccessOutcome
from eventlog.privacy.principals import Grant, Operation, Principal, granted
from eventlog.privacy.recorder import AccessRecorder

_MOST_TEXT = 1_000  # characters that are kept, of an SQL statement for example


@dataclass(slots=True)
class Access:
    """What is being accessed. Whoever does it fills in what becomes known on the way."""

    operation: Operation
    checkpoint_id: str | None = None
    revision: int | None = None
    last_revision: int | None = None
    event_id: str | None = None
    tenant: str | None = None  # whose data it is; the principal's tenant when None
    target: str | None = None
    items: int | None = None
    position: str | None = None
    outcome: AccessOutcome = AccessOutcome.ALLOWED


class AccessGuard:
    """The door of one principal. Safe to share between threads.

    Arguments:
        recorder: of the store's access log; None: nothing is recorded, but the roles hold all the same.
        reason: why, in the principal's words; stands in every record.
    """

    def __init__(self, *, principal: Principal, recorder: AccessRecorder | None, reason: str | None = None) -> None:
        self.principal = principal
        self.recorder = recorder
        self.reason = reason

    # -- deciding -------------------------------------------------------------------------------------------------

    def grant(self, access: Access) -> Grant:
        """What the roles give. Raises `AccessDenied`, which is on record by then, or `AuditUnavailable`."""
        try:
            return granted(access.operation, self.principal)
        except AccessDenied as error:
            self.record([self.failure(access, error)])
            raise

    @contextlib.contextmanager
    def reading(self, access: Access) -> Iterator[Access]:
        """A read: recorded at the end of the block, whose result must not be handed out before that."""
        self.grant(access)
        try:
            yield access
        except BaseException as error:
            with contextlib.suppress(*_unless_told(error)):
                self.record([self.failure(access, error)])
            raise
        self.record([self.event(access, access.outcome)])

    @contextlib.contextmanager
    def writing(self, access: Access) -> Iterator[Access]:
        """A write, or any other operation that changes something: recorded before the block, and again if it fails."""
        self.grant(access)
        self.record([self.event(access)])
        try:
            yield access
        except BaseException as error:
            with contextlib.suppress(AuditUnavailable):  # that it was tried is on record, and what became of it its caller must learn
                self.record([self.failure(access, error)])
            raise

    # -- recording ------------------------------------------------------------------------------------------------

    def record(self, events: Sequence[AccessEvent]) -> None:
        """Puts events on record, in the store's mode: also for what others do for the principal (keys, retention, erasure)."""
        if self.recorder is not None and events:
            self.recorder.record(events)

    def event(self, access: Access, outcome: AccessOutcome = AccessOutcome.ALLOWED, detail: str | None = None) -> AccessEvent:
        """An access as it is recorded, now."""
        who = self.principal
        return AccessEvent(
            time.time_ns() // 1_000_000,
            who.subject,
            tuple(sorted(who.roles)),
            _text(who.tenant if access.tenant is None else access.tenant),
            access.operation.value,
            outcome,
            known_id(access.checkpoint_id),
            _whole(access.revision),
            _whole(access.last_revision),
            known_id(access.event_id),
            _text(access.target),
            access.items,
            access.position,
            self.reason,
            detail,
        )

    def failure(self, access: Access, error: BaseException) -> AccessEvent:
        """An access that ended with an error. Never its text, which may quote what somebody typed."""
        if isinstance(error, NotFound):
            return self.event(access, AccessOutcome.ABSENT)
        if isinstance(error, AccessDenied):
            return self.event(access, AccessOutcome.REFUSED, error.needs)
        kind = error.kind.value if isinstance(error, CheckpointError) else type(error).__name__
        return self.event(access, AccessOutcome.FAILED, f"{kind} {error.field}" if isinstance(error, InvalidRequest) else kind)


def _unless_told(error: BaseException) -> tuple[type[BaseException], ...]:
    """What may be missing from the record: an error of the store's tells something of its data, any other tells nothing."""
    return () if isinstance(error, CheckpointError) else (AuditUnavailable,)


def _whole(number: object) -> int | None:
    """A number that a record can hold; whatever else a caller has given is refused elsewhere."""
    return number if type(number) is int and 0 <= number < 2**63 else None


def _text(given: object) -> str | None:
    """A text that a record can hold."""
    return given[:_MOST_TEXT].encode("utf-8", "replace").decode() if isinstance(given, str) else None


def known_id(given: object) -> str | None:
    """An id as a caller has given it, if it is one."""
    try:
        return None if given is None else str(CheckpointId(given))  # type: ignore[arg-type]
    except (InvalidRequest, TypeError):
        return None
