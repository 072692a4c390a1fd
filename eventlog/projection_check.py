"""The projection against the log, row by row and head by head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from eventlog.findings import MOST_FINDINGS, Fault, FaultKind, Verification
from eventlog.log import Record
from projections.checking import HeadPlace, head_places, heads_unlike_revisions, rows_between
from projections.engine import Projection
from projections.rows import RevisionRow


def compare_rows(
    projection: Projection, expected: Sequence[RevisionRow], records: Sequence[Record], reached: Mapping[int, int], found: Verification
) -> None:
    """What a batch of the log makes against the rows of the same stretch. On Kafka the projection also holds what compaction has removed.

    Arguments:
        expected: the rows of the records that are good, without their events.
        reached: how far the projection had come; what was committed later is not looked at.
    """
    bounds: dict[int, tuple[int, int]] = {}
    for record in records:
        first, _ = bounds.get(record.partition, (record.offset, 0))
        bounds[record.partition] = (first, record.offset)
    there = {
        (row.partition, row.offset): row
        for partition, (first, last) in bounds.items()
        for row in rows_between(projection, partition, first, last)
    }
    good = set()
    for row in expected:
        good.add((row.partition, row.offset))
        if row.offset >= reached.get(row.partition, 0):
            continue
        kept = there.get((row.partition, row.offset))
        problem = f"lacks revision {row.revision}" if kept is None else _difference(kept, row)
        if problem is not None:
            found.add(Fault(f"{row.partition}:{row.offset}", row.checkpoint_id, FaultKind.PROJECTION, problem))
    for place in {(record.partition, record.offset) for record in records} & there.keys() - good:
        what = "accepted a record that is at fault"
        found.add(Fault(f"{place[0]}:{place[1]}", there[place].checkpoint_id, FaultKind.PROJECTION, what))


def compare_heads(
    projection: Projection,
    head_of: Callable[[str], HeadPlace | None],
    lost: Callable[[str], bool],
    expected: int,
    reached: Mapping[int, int],
    found: Verification,
) -> None:
    """Every head of the projection against the log's, then whether any of the `expected` ones is missing, then what else the heads say.

    `lost`: whether compaction may have taken a checkpoint's last good revision, since it keeps the foreign record behind it.
    """
    matched = 0
    for kept in head_places(projection):
        at = f"{kept.partition}:{kept.offset}"
        head = head_of(kept.checkpoint_id)
        if head is None and lost(kept.checkpoint_id):
            continue
        if head is None:
            found.add(Fault(at, kept.checkpoint_id, FaultKind.PROJECTION, "knows a checkpoint that the log does not hold"))
        elif head.offset < reached.get(head.partition, 0):  # otherwise it has moved on since the projection was brought up to date
            matched += 1
            if head != kept:
                problem = f"its head is revision {kept.revision} at {at}; the log's is {head.revision} at {head.partition}:{head.offset}"
                found.add(Fault(at, kept.checkpoint_id, FaultKind.PROJECTION, problem))
    if matched < expected:
        found.add(Fault(None, None, FaultKind.PROJECTION, f"lacks the heads of {expected - matched} checkpoints"))
    for checkpoint_id, partition, offset in heads_unlike_revisions(projection, MOST_FINDINGS):
        found.add(Fault(f"{partition}:{offset}", checkpoint_id, FaultKind.PROJECTION, "its head is not the revision that it says it is"))


def _difference(kept: RevisionRow, row: RevisionRow) -> str | None:
    names: Iterable[str] = (name for name, there, here in zip(row._fields, kept, row, strict=True) if there != here)
    name = next(iter(names), None)
    return None if name is None else f"says {name} {_shown(getattr(kept, name))}; the log says {_shown(getattr(row, name))}"


def _shown(value: object) -> str:
    return value.hex()[:12] if isinstance(value, bytes) else repr(value)[:80]
