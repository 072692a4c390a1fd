"""Every failure that the store reports: one tree, typed attributes, what may be retried, and what a person should do.

A client library's exception never crosses the public API bare; it is the `__cause__` of one of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from eventlog.error_kinds import ErrorKind as ErrorKind
from eventlog.error_kinds import Retry as Retry


class CheckpointError(Exception):
    """The root. `kind` and `retry` are for programs, `str(error)` and `hint` for people."""

    kind: ClassVar[ErrorKind] = ErrorKind.STORAGE
    retry: ClassVar[Retry] = Retry.NEVER
    hint: str = "See the cause."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross process boundaries (a pool's worker raises them): by their attributes, not by calling the constructor again."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[CheckpointError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> CheckpointError:
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


# -- answers of the store about a checkpoint -------------------------------------------------------------------


class NotFound(CheckpointError):
    """No such checkpoint, or revision, that this caller may see."""

    kind = ErrorKind.NOT_FOUND
    hint = "Check the id, the tenant and the store's address."

    def __init__(self, checkpoint_id: str, *, revision: int | None = None, detail: str | None = None) -> None:
        where = f"checkpoint {checkpoint_id}" + ("" if revision is None else f" revision {revision}")
        super().__init__(f"{where} not found" + (f": {detail}" if detail else ""))
        self.checkpoint_id = checkpoint_id
        self.revision = revision


class Deleted(NotFound):
    """The checkpoint existed and was deleted; its id never starts again."""

    hint = "Use a new checkpoint id. The history and the deletion's event stay readable."

    def __init__(self, checkpoint_id: str, *, last_revision: int) -> None:
        super().__init__(checkpoint_id, detail=f"deleted at revision {last_revision}")
        self.last_revision = last_revision


class Conflict(CheckpointError):
    """Another writer's revision stands where this one should; nothing of this proposal was or will be written."""

    kind = ErrorKind.CONFLICT
    retry = Retry.RELOAD
    hint = "Load the checkpoint, decide again from what the other writer committed, and propose its successor."

    def __init__(self, checkpoint_id: str, *, expected: int | None, actual: int | None, proposed: int, detail: str | None = None) -> None:
        current = "absent" if actual is None else f"at revision {actual}"
        wanted = "it to be absent" if expected is None else f"revision {expected}"
        super().__init__(
            f"checkpoint {checkpoint_id} is {current}; revision {proposed} was proposed expecting {wanted}"
            + (f" ({detail})" if detail else "")
        )
        self.checkpoint_id = checkpoint_id
        self.expected = expected
        self.actual = actual
        self.proposed = proposed


class EventIdReused(CheckpointError):
    """The event id was committed before with other content."""

    kind = ErrorKind.CONFLICT
    hint = "An event id names one revision with one content for ever. Build each revision with next(), which gives it a new id."

    def __init__(self, checkpoint_id: str, *, event_id: str, differs: str) -> None:
        super().__init__(f"event {event_id} of checkpoint {checkpoint_id} was committed before with another {differs}")
        self.checkpoint_id = checkpoint_id
        self.event_id = event_id
        self.differs = differs


class Quarantined(CheckpointError):
    """The checkpoint is read-only: a record that breaks the rules stands behind its last good revision."""

    kind = ErrorKind.QUARANTINED
    hint = "Somebody else wrote to the log. `eventlog doctor` shows the record; restrict write access to the log by ACLs."

    def __init__(self, checkpoint_id: str, *, last_good_revision: int | None, reason: str) -> None:
        good = "it has no good revision" if last_good_revision is None else f"its last good revision is {last_good_revision}"
        super().__init__(f"checkpoint {checkpoint_id} is read-only, {good}: {reason}")
        self.checkpoint_id = checkpoint_id
        self.last_good_revision = last_good_revision
        self.reason = reason


class HeldByLegalHold(CheckpointError):
    """The checkpoint may not be deleted: legal holds lie on it. `remembered`: once the last is released, the next plan names it as due."""

    kind = ErrorKind.HELD
    hint = "`eventlog retention holds` says who has placed each and why; only its release makes a deletion possible."

    def __init__(self, checkpoint_id: str, *, holds: Sequence[str], remembered: bool = False) -> None:
        named = f"legal hold {holds[0]}" if len(holds) == 1 else f"{len(holds)} legal holds: {', '.join(holds)}"
        super().__init__(f"checkpoint {checkpoint_id} is kept by {named}")
        self.checkpoint_id = checkpoint_id
        self.holds = tuple(holds)
        self.remembered = remembered


class HistoryRemoved(CheckpointError):
    """What was asked for existed, but the log no longer holds it."""

    kind = ErrorKind.HISTORY_REMOVED
    hint = "Ask for a later revision or position, or read the archive."

    def __init__(self, what: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{what} has been removed: {reason}", hint=hint)
        self.reason = reason

    @classmethod
    def erased(cls, checkpoint_id: str, revision: int) -> HistoryRemoved:
        """A payload that was erased: its body is empty."""
        hint = "It is gone for good. `eventlog erase status` says when, by whom and why."
        return cls(f"the payload of checkpoint {checkpoint_id} revision {revision}", reason="erased", hint=hint)


class KeyDestroyed(HistoryRemoved):
    """The payload is sealed with a data key that the store does not have any more: an erasure has destroyed it."""

    hint = "Nobody can read this payload again. If nothing was erased, the store's keys were lost: restore them from their backup."

    def __init__(self, checkpoint_id: str, *, revision: int | None, key_id: str) -> None:
        where = f"the payload of checkpoint {checkpoint_id}" + ("" if revision is None else f" revision {revision}")
        super().__init__(where, reason=f"its data key {key_id} is not among the store's keys, as after an erasure")
        self.checkpoint_id = checkpoint_id
        self.revision = revision
        self.key_id = key_id


# -- who may do what -------------------------------------------------------------------------------------------


class AccessDenied(CheckpointError):
    """The principal's roles do not allow the operation; nothing was read or written. `missing` are the roles of which any one would do."""

    kind = ErrorKind.DENIED
    hint = "Ask whoever administers the store for one of the roles, or use a principal that has it."

    def __init__(self, subject: str, *, operation: str, missing: Sequence[str], whole_store: bool = False) -> None:
        self.needs = "it concerns all tenants, and this principal has one" if whole_store else f"it needs the role {' or '.join(missing)}"
        super().__init__(f"{subject} may not {operation}: {self.needs}")
        self.subject = subject
        self.operation = operation
        self.missing = tuple(missing)


class AuditUnavailable(CheckpointError):
    """The access could not be recorded, so nothing was handed out; of a write: so nothing was written."""

    kind = ErrorKind.UNAVAILABLE
    retry = Retry.BACKOFF
    hint = "Look at the access log's disk or topic: while it cannot be written, this store does nothing for anybody."

    def __init__(self, place: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"the access log {place} cannot be written: {problem}", hint=hint)
        self.place = place
        self.problem = problem


class ErasureIncomplete(CheckpointError):
    """Some place could not be visited, so nothing is certified. What was reached is erased; `places` says where it was not, and why."""

    kind = ErrorKind.STORAGE
    retry = Retry.BACKOFF
    hint = "See to the places that are named, then start the same erasure again: it goes on where it ended."

    def __init__(self, places: Sequence[tuple[str, str]], *, hint: str | None = None) -> None:
        what = "\n  - ".join(f"{place}: {problem}" for place, problem in places)
        super().__init__(f"the erasure is not complete\n  - {what}", hint=hint)
        self.places = tuple(places)


# -- the caller's input ----------------------------------------------------------------------------------------


class InvalidRequest(CheckpointError):
    """An argument is malformed or out of range; nothing was written."""

    kind = ErrorKind.INVALID_REQUEST
    hint = "Correct the named field."

    def __init__(self, field: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{field}: {problem}", hint=hint)
        self.field = field
        self.problem = problem


class InvalidPayload(CheckpointError):
    """The payload is not JSON, or not what its kind says; `path` says where (JSONPath-like, `$` is the payload itself)."""

    kind = ErrorKind.INVALID_PAYLOAD
    hint = "Payloads are plain JSON: objects with text keys, arrays (lists), text, finite numbers, true, false and null."

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"payload at {path}: {problem}")
        self.path = path
        self.problem = problem


class TooLarge(CheckpointError):
    """The event is larger than the log accepts."""

    kind = ErrorKind.TOO_LARGE
    hint = "Keep large blobs elsewhere and put a reference into the payload, or raise the log's limit."

    def __init__(self, checkpoint_id: str, *, size: int, limit: int) -> None:
        super().__init__(f"the event of checkpoint {checkpoint_id} has {size} bytes as stored; the log accepts {limit}")
        self.checkpoint_id = checkpoint_id
        self.size = size
        self.limit = limit


class SchemaMismatch(CheckpointError):
    """Bytes, a definition or a format that this version does not know, or that differ from what is registered."""

    kind = ErrorKind.SCHEMA_MISMATCH
    hint = "Upgrade this installation, or read the data with the version that wrote it."


class EncryptionMismatch(SchemaMismatch):
    """A payload in clear text where the store is encrypted, or a sealed one where it is not."""

    hint = "Somebody wrote past the store, or copied an event from another one. `eventlog verify` lists such events."

    def __init__(self, checkpoint_id: str, *, revision: int, problem: str) -> None:
        super().__init__(f"checkpoint {checkpoint_id} revision {revision}: {problem}")
        self.checkpoint_id = checkpoint_id
        self.revision = revision
        self.problem = problem


# -- the log and its surroundings ------------------------------------------------------------------------------


class OutcomeUnknown(CheckpointError):
    """The event may or may not have been committed; the log could not be asked in time."""

    kind = ErrorKind.OUTCOME_UNKNOWN
    retry = Retry.RESOLVE
    hint = "Call resolve() with this event before anything else; sending the same event again is safe too."

    def __init__(self, checkpoint_id: str | None, *, event_id: str, reason: str) -> None:
        whose = "" if checkpoint_id is None else f" of checkpoint {checkpoint_id}"
        super().__init__(f"the outcome of event {event_id}{whose} is unknown: {reason}")
        self.checkpoint_id = checkpoint_id
        self.event_id = event_id
        self.reason = reason


class Overloaded(CheckpointError):
    """The queue before the log stayed full; nothing was written."""

    kind = ErrorKind.OVERLOADED
    retry = Retry.BACKOFF
    hint = "Send less at once, or wait and try again."

    def __init__(self, *, waiting: int, limit: int) -> None:
        super().__init__(f"{waiting} revisions are already waiting for the log (limit {limit})")
        self.waiting = waiting
        self.limit = limit


class StorageError(CheckpointError):
    """The files of a store cannot be read or written."""

    kind = ErrorKind.STORAGE
    retry = Retry.BACKOFF
    hint = "Look at the disk, the permissions and the cause."

    def __init__(self, place: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{place}: {problem}", hint=hint)
        self.place = place
        self.problem = problem


class Corrupted(StorageError):
    """Stored bytes do not say what they said when they were written."""

    retry = Retry.NEVER
    hint = "Stop writing, keep a copy of the files, and restore from a backup. `eventlog verify` shows what is affected."


class Busy(StorageError):
    """Another process holds what this one needs."""

    hint = "Stop the other process, or ask it instead."


class Unavailable(CheckpointError):
    """The log cannot be reached; nothing was written by this call."""

    kind = ErrorKind.UNAVAILABLE
    retry = Retry.BACKOFF
    hint = "Check that the address is right and that the broker runs."

    def __init__(self, address: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{address}: {problem}", hint=hint)
        self.address = address
        self.problem = problem


class KeysUnavailable(CheckpointError):
    """The tenant's key cannot be used: not there, not the right one, or not readable. `source` says where it was looked for."""

    kind = ErrorKind.KEYS_UNAVAILABLE
    hint = "Make the key available where the store remembers it, or name another place with EVENTLOG_KEYS."

    def __init__(self, source: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{source}: {problem}", hint=hint)
        self.source = source
        self.problem = problem


class ConfigurationError(CheckpointError):
    """Something is set up in a way that the store refuses to work with; `differences` lists each, where there are several."""

    kind = ErrorKind.CONFIGURATION
    hint = "Correct the configuration; the store does not start with another one."

    def __init__(self, message: str, *, differences: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__("\n  - ".join([message, *differences]), hint=hint)
        self.differences = tuple(differences)


class NotAStore(ConfigurationError):
    """The address holds no store, or something else."""

    hint = "Make one with `eventlog init`, or correct the address."


class AuthenticationFailed(ConfigurationError):
    """The broker does not let this client in, or shows a certificate that this client does not accept; nothing was sent.

    A store that is open tries again from time to time: passwords and certificates are renewed.
    """

    hint = "Check the security settings of the address. No message names a password."

    def __init__(self, address: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{address}: {problem}", hint=hint)
        self.address = address
        self.problem = problem


class MissingRight(CheckpointError):
    """Kafka's authorizer does not allow what the store needs; of a write: nothing was written.

    `operation`, `resource` and `name` are the right's, as Kafka spells them; `principal` is who lacks it, where the address tells.
    """

    kind = ErrorKind.DENIED
    hint = "Whoever administers Kafka grants it: `eventlog topic acls` lists all that a role needs."

    def __init__(self, address: str, *, principal: str | None, operation: str, resource: str, name: str, hint: str | None = None) -> None:
        who = "this client" if principal is None else principal
        super().__init__(f"{address}: {who} lacks Kafka's right {operation} on {resource} {name}", hint=hint)
        self.address = address
        self.principal = principal
        self.operation = operation
        self.resource = resource
        self.name = name


class StoreClosed(CheckpointError):
    """The store was closed, or a part that it cannot work without has stopped; `str(error)` says which."""

    kind = ErrorKind.CLOSED
    hint = "Open the store again."
