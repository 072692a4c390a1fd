"""What a history is found guilty of, and how much happened in it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from eventlog.testing.history import Operation


class Rule(StrEnum):
    """What a store must not do. The text says what it did."""

    # the log in itself
    NOT_SEQUENTIAL = "the log's revisions do not follow one another"
    AFTER_DELETION = "the log holds a revision behind a deletion"
    TWICE_IN_LOG = "an event is in the log twice"
    NOBODY_PROPOSED = "the log holds an event that nobody proposed at this place"
    # writes
    LOST = "an acknowledged write is not in the log"
    MISPLACED = "an acknowledged write is not in the log as the successor of what it expected"
    CONFLICT_IN_LOG = "what was refused as a conflict, not found or deleted is in the log all the same"
    REFUSAL_IN_LOG = "what was refused, with nothing written, is in the log all the same"
    FALSE_CONFLICT = "an exact successor was refused as a conflict"
    ACTUAL_NEVER_CURRENT = "the revision that a conflict named was not the current one at any moment within the call"
    WRITE_ORDER = "a write was acknowledged before an earlier revision had been proposed"
    FALSE_RESOLVE = "a resolve says of an event what the log does not"
    # reads, and what refusals say about the state
    NOT_A_STATE = "a read gave what the log never held"
    READ_TOO_EARLY = "a read saw a revision before it, or one below it, had been proposed"
    STALE_READ = "a read missed what had been acknowledged before it"
    READ_WENT_BACK = "a read gave an older revision than an earlier read"
    RESURRECTED = "a deleted checkpoint was there again"
    FALSE_NOT_FOUND = "a checkpoint or revision that was there was not found"
    FALSE_DELETED = "a checkpoint that was not deleted was said to be"
    INCOMPLETE_HISTORY = "a history left revisions out"
    STALE_SESSION = "a local read missed what its own session had seen"


class Violation(NamedTuple):
    """One breach of a rule, with the operations that prove it."""

    rule: Rule
    checkpoint_id: str | None
    revision: int | None
    operations: tuple[Operation, ...]
    detail: str

    def __str__(self) -> str:
        where = "" if self.checkpoint_id is None else f" of checkpoint {self.checkpoint_id}"
        which = "" if self.revision is None else f" at revision {self.revision}"
        return "\n    ".join([f"{self.rule.name}{which}{where}: {self.rule.value} ({self.detail})", *map(str, self.operations)])


class Summary(NamedTuple):
    """How much really happened: a history without conflicts and unclear outcomes proves little."""

    operations: int = 0
    committed: int = 0  # receipts, those of retries included
    duplicates: int = 0  # receipts that say that the event had been committed before
    conflicts: int = 0
    unknown: int = 0
    pending: int = 0  # never returned: the process died
    settled: int = 0  # resolves that answered
    refused: int = 0  # writes refused for another reason: the log out of reach, a malformed request
    reads: int = 0
    not_found: int = 0
    deleted: int = 0  # answers that a checkpoint is deleted
    checkpoints: int = 0  # in the log
    revisions: int = 0  # in the log
    removed: int = 0  # acknowledged writes whose revision the log no longer holds: nothing could be said about them
    sessions: int = 0
    concurrency: int = 0  # the most operations that were under way at one moment
    seconds: float = 0.0  # from the first invocation to the last return

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.1f}" if isinstance(value, float) else f"{name} {value}" for name, value in self._asdict().items())

    def require(self, **least: int) -> None:
        """Raises `AssertionError`, naming each, when less happened than was meant to: `summary.require(conflicts=100, unknown=1)`."""
        short = {name: getattr(self, name) for name, wanted in least.items() if getattr(self, name) < wanted}
        if short:
            missed = ", ".join(f"{name} {there} of at least {least[name]}" for name, there in short.items())
            raise AssertionError(f"too little happened: {missed}\n{self}")


class Verdict(NamedTuple):
    """What the checker found."""

    violations: Sequence[Violation]  # the first ones, up to the limit that was asked for
    found: int  # how many there are
    summary: Summary

    def __str__(self) -> str:
        if not self.found:
            return f"no violation\n{self.summary}"
        more = [f"... and {self.found - len(self.violations)} more"] if self.found > len(self.violations) else []
        return "\n".join([f"{self.found} violations", *map(str, self.violations), *more, str(self.summary)])

    def require_none(self) -> None:
        """Raises `AssertionError` with every violation and its operations, if there is one."""
        if self.found:
            raise AssertionError(str(self))
