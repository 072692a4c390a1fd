"""The rules, against a model of the table that was written without looking at them; and what a foreign record may be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.codec import Draft
from eventlog.errors import CheckpointError, Conflict, Deleted, EventIdReused, InvalidRequest, NotFound
from eventlog.event import GENESIS, EventHeader
from eventlog.rules import Head, Proposal, Verdict, decide, judge, rejection

LAST = 2**63 - 1
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 5, LAST - 1, LAST])
TYPES = st.sampled_from(["REVISION", "IMPORTED", "MIGRATED", "DELETED"])
USAGE = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(min_value=0, max_value=3))

HEADS = st.none() | st.builds(
    lambda **fields: Head(checkpoint_id="c", partition=0, offset=0, recorded_at=0, hash=b"h" * 32, **fields),
    event_id=st.sampled_from(["e1", "e2"]),
    type=TYPES,
    tenant=st.sampled_from(["north", "south"]),
    run_id=st.sampled_from(["r1", "r2"]),
    revision=NUMBERS,
    kind=st.sampled_from(["k1", "k2"]),
    schema_version=st.sampled_from([1, 2]),
    usage=USAGE,
)
PROPOSALS = st.builds(
    lambda **fields: Proposal(checkpoint_id="c", draft=Draft(b"", b""), **fields),
    expected=st.none() | NUMBERS,
    revision=NUMBERS,
    event_id=st.sampled_from(["e1", "e2", "e3"]),
    type=TYPES,
    tenant=st.sampled_from(["north", "south"]),
    run_id=st.sampled_from(["r1", "r2"]),
    kind=st.sampled_from(["k1", "k2"]),
    schema_version=st.sampled_from([1, 2]),
    usage=USAGE,
)


def by_the_table(head: Head | None, proposal: Proposal) -> Any:
    """What the design's table says: Verdict, or the error's class."""
    match head:
        case None if proposal.expected is not None:
            return NotFound
        case None if proposal.revision == 0 or proposal.type == "IMPORTED":
            return Verdict.ACCEPT
        case None:
            return Conflict
    if proposal.tenant != head.tenant:
        return NotFound
    if proposal.revision < head.revision:
        return Verdict.COMPARE  # the log knows the event of that revision
    deleted = head.type == "DELETED"
    if proposal.revision == head.revision:  # the head is the event of that revision: a retry, or a loser
        return Verdict.COMPARE if proposal.event_id == head.event_id else Deleted if deleted else Conflict
    exact = proposal.expected == head.revision and proposal.revision == head.revision + 1
    if proposal.event_id == head.event_id:
        return {EventIdReused, Verdict.COMPARE}
    if deleted:
        return Deleted
    if not exact:
        return Conflict
    if proposal.run_id != head.run_id:
        return InvalidRequest
    if proposal.type == "IMPORTED":
        return Conflict
    if proposal.type != "MIGRATED" and (proposal.kind, proposal.schema_version) != (head.kind, head.schema_version):
        return InvalidRequest
    if any(proposal.usage.get(name, 0) < spent for name, spent in head.usage.items()):
        return InvalidRequest
    return Verdict.ACCEPT


@settings(max_examples=3000)
@given(HEADS, PROPOSALS)
def test_decisions_are_those_of_the_table(head: Head | None, proposal: Proposal) -> None:
    decision = decide(head, proposal)
    wanted = by_the_table(head, proposal)
    got: Any = type(decision) if isinstance(decision, CheckpointError) else decision
    assert got in wanted if isinstance(wanted, set) else got is wanted
    if isinstance(decision, Conflict):
        actual = None if head is None else head.revision
        assert (decision.expected, decision.actual, decision.proposed) == (proposal.expected, actual, proposal.revision)


@settings(max_examples=1000)
@given(HEADS, PROPOSALS)
def test_a_deleted_head_is_the_end(head: Head | None, proposal: Proposal) -> None:
    if head is not None and head.type == "DELETED" and head.tenant == proposal.tenant:
        assert decide(head, proposal) is not Verdict.ACCEPT
        assert isinstance(rejection(head, proposal), Deleted)


@settings(max_examples=1000)
@given(HEADS, PROPOSALS)
def test_what_is_accepted_becomes_a_head_that_accepts_only_its_successor(head: Head | None, proposal: Proposal) -> None:
    if decide(head, proposal) is Verdict.ACCEPT:
        following = proposal.head(b"x" * 32, 0, 1, 2)
        assert following.revision == (0 if head is None else head.revision + 1) or proposal.type == "IMPORTED"
        assert decide(following, proposal) is Verdict.COMPARE
        assert all(following.usage.get(name, 0) >= spent for name, spent in (head.usage if head else {}).items())


# -- what stands in a log that others could write to ------------------------------------------------------------


def header(revision: int, previous: bytes = GENESIS, **fields: Any) -> EventHeader:
    values: dict[str, Any] = {
        "event_id": f"e{revision}",
        "type": "REVISION",
        "tenant": "north",
        "checkpoint_id": "c",
        "run_id": "r1",
        "revision": revision,
        "kind": "k",
        "schema_version": 1,
        "phase": None,
        "updated_at": 0,
        "actor": None,
        "labels": {},
        "usage": {"turns": 5},
        "payload_size": 0,
        "payload_digest": b"",
        "encoding": "json",
        "encryption": None,
        "previous_hash": previous,
    }
    return EventHeader(**{**values, **fields})


HASH = b"5" * 32
AT_5 = Head.of(header(5), HASH, 0, 5, 0)
DELETED_AT_5 = AT_5._replace(type="DELETED")

GOOD = [
    (None, header(0), False),
    (None, header(7, type="IMPORTED"), False),
    (AT_5, header(6, HASH), False),
    (AT_5, header(6, HASH, type="DELETED"), False),
    (AT_5, header(6, HASH, type="MIGRATED", kind="k2", schema_version=2), False),
    (AT_5, header(6, HASH), True),
]


@pytest.mark.parametrize(("head", "record", "compacted"), GOOD)
def test_a_good_record_is_accepted(head: Head | None, record: EventHeader, compacted: bool) -> None:
    finding = judge(head, record, compacted=compacted)
    assert (finding.fault, finding.missing) == (None, None)


FAULTY = [
    ("a start in the middle", None, header(3)),
    ("a first one with a predecessor", None, header(0, HASH)),
    ("the same revision again", AT_5, header(5, HASH)),
    ("an older revision", AT_5, header(4, HASH)),
    ("a jump", AT_5, header(8, HASH)),
    ("another chain", AT_5, header(6, b"x" * 32)),
    ("no chain", AT_5, header(6)),
    ("another tenant", AT_5, header(6, HASH, tenant="south")),
    ("another run", AT_5, header(6, HASH, run_id="r2")),
    ("a successor of a deletion", DELETED_AT_5, header(6, HASH)),
    ("a start over", AT_5, header(0)),
    ("an import over another", AT_5, header(9, type="IMPORTED")),
]


@pytest.mark.parametrize(("head", "record"), [each[1:] for each in FAULTY], ids=[each[0] for each in FAULTY])
def test_a_record_that_breaks_the_rules_is_a_fault(head: Head | None, record: EventHeader) -> None:
    assert judge(head, record, compacted=False).fault is not None


UNJUDGED = [
    ("another kind", header(6, HASH, kind="k2")),
    ("another schema version", header(6, HASH, schema_version=2)),
    ("usage that went down", header(6, HASH, usage={"turns": 4})),
    ("an import as a successor", header(6, HASH, type="IMPORTED")),
    ("the event of the head once more", header(6, HASH, event_id="e5")),
]


@pytest.mark.parametrize("record", [each[1] for each in UNJUDGED], ids=[each[0] for each in UNJUDGED])
def test_a_foreign_successor_that_decide_would_refuse_is_a_fault(record: EventHeader) -> None:
    # Once: judge() holds a record against less than decide() does: kind, schema version, usage and type are not looked at.
    assert judge(AT_5, record, compacted=False).fault is not None


def test_what_compaction_removed_is_a_gap() -> None:
    assert judge(AT_5, header(9, b"x" * 32), compacted=True).missing == (6, 8)
    assert judge(None, header(9, b"x" * 32), compacted=True).missing == (0, 8)
    for record in (header(9, tenant="south"), header(9, run_id="r2"), header(4)):
        assert judge(AT_5, record, compacted=True).fault is not None


def test_compaction_does_not_revive_a_deleted_checkpoint() -> None:
    # Once: behind a DELETED head any jump is taken for a gap where compaction may have been.
    assert judge(DELETED_AT_5, header(9, b"x" * 32), compacted=True).fault is not None
