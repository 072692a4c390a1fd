"""What a verification finds: faults by kind, gaps, and how much was looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from eventlog.position import Position

MOST_FINDINGS = 200  # kept; all are counted


class FaultKind(StrEnum):
    """What can be wrong."""

    UNREADABLE = "unreadable"  # not an event that this version can decode
    WRONG_KEY = "wrong key"
    WRONG_PARTITION = "wrong partition"  # not the one that its key belongs to: nobody looks for it there
    WRONG_DIGEST = "wrong digest"  # the body is not the one that the header speaks of
    WRONG_ENCRYPTION = "wrong encryption"  # in clear text in an encrypted store, or sealed in another
    BROKEN_RULE = "broken rule"  # the hash chain, the order of revisions, the identity: see `rules.judge`
    WRONG_PAYLOAD = "wrong payload"  # not JSON, or not of the stated size
    BEHIND_A_FAULT = "behind a fault"  # nothing wrong by itself, but what it builds on is
    ACCESS = "access log"  # it is not what its writers made of it
    PROJECTION = "projection"  # the read side says something else than the log
    ARCHIVE = "archive"  # a segment is damaged, or says something else than the log
    ANCHOR = "anchor"  # the log is no continuation of the one that was anchored


class Fault(NamedTuple):
    """One thing that is wrong. `position` is the record's own place, partition:offset; None for a whole projection or archive."""

    position: str | None
    checkpoint_id: str | None
    kind: FaultKind
    problem: str


class MissingRevisions(NamedTuple):
    """Revisions that the log no longer holds: a fact, not a fault."""

    checkpoint_id: str
    first_revision: int
    last_revision: int


@dataclass
class Verification:
    """What a verification found. Of `faults` and `gaps` the first 200 are kept; the counts are of all."""

    events: int = 0
    checkpoints: int = 0
    payload_bytes: int = 0
    erased: int = 0  # payloads whose body was emptied or whose key was destroyed; everything else about them was checked
    sealed: int = 0  # encrypted payloads in a store that was opened without keys: all but what is in them was checked
    moved: int = 0  # bodies that are in the archive only
    archived: int = 0  # events that were held against the archive
    anchored: int = 0  # events that an anchor vouches for
    accesses: int = 0  # records of the access log, where there is one
    position: Position = field(default_factory=Position)  # how far the log was read
    faults: list[Fault] = field(default_factory=list)
    fault_counts: Counter[FaultKind] = field(default_factory=Counter)
    gaps: list[MissingRevisions] = field(default_factory=list)
    gap_count: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fault_counts

    def first_of_each_kind(self) -> list[Fault]:
        """The first fault of each kind."""
        first: dict[FaultKind, Fault] = {}
        for fault in self.faults:
            first.setdefault(fault.kind, fault)
        return list(first.values())

    def add(self, fault: Fault) -> None:
        """Counts a fault, unless it was found already by another way; keeps it if it is the first of its kind or there is room."""
        if fault in self.faults:
            return
        if not self.fault_counts[fault.kind] or len(self.faults) < MOST_FINDINGS:
            self.faults.append(fault)
        self.fault_counts[fault.kind] += 1
