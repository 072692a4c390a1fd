"""Events by the revisions that they committed, whatever form they are kept in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from projections.engine import Projection
from projections.errors import ProjectionDamaged
from projections.forms import BLOCK_BITS, block_end, opened
from projections.statements import named

_EVENTS = named("events.sql")

Place = tuple[int, int]  # partition and offset


class _Kept(NamedTuple):
    partition: int
    offset: int
    base: int | None  # the offset of the event that this one is kept against
    event: bytes
    form: int


def of_checkpoint(projection: Projection, checkpoint_id: str, first: int, last: int, wanted: Collection[Place]) -> dict[Place, bytes]:
    """Return the events at `wanted`, which are of revisions `first` to `last` of one checkpoint. Raises `ProjectionDamaged`."""
    if not projection.identity.keep_events or not wanted:
        return {}
    parameters = {"checkpoint_id": checkpoint_id, "first": first, "last": block_end(last)}
    return _opened(map(_Kept._make, projection.query(_EVENTS["of_checkpoint"], parameters)), wanted, projection.path)


def of_blocks(projection: Projection, revisions: Iterable[tuple[str, int]], wanted: Collection[Place]) -> dict[Place, bytes]:
    """The same for revisions of many checkpoints, given as (checkpoint id, revision). For each, its whole block is read."""
    if not projection.identity.keep_events or not wanted:
        return {}
    blocks = dict.fromkeys((checkpoint_id, revision >> BLOCK_BITS) for checkpoint_id, revision in revisions)
    parameters = {"ids": [each[0] for each in blocks], "blocks": [each[1] for each in blocks], "bits": BLOCK_BITS}
    return _opened(map(_Kept._make, projection.query(_EVENTS["of_blocks"], parameters)), wanted, projection.path)


def _opened(newest_first: Iterable[_Kept], wanted: Collection[Place], path: Path | None) -> dict[Place, bytes]:
    """Opens what is wanted and what that is kept against, each once: a successor always comes before what is kept against it."""
    kept: Sequence[_Kept] = list(newest_first)
    needed = set(wanted)
    for each in reversed(kept):
        if each.base is not None and (each.partition, each.offset) in needed:
            needed.add((each.partition, each.base))
    found: dict[Place, bytes] = {}
    for each in kept:
        if (each.partition, each.offset) not in needed:
            continue
        try:
            successor = None if each.base is None else found.get((each.partition, each.base))
            found[each.partition, each.offset] = opened(each.form, each.event, successor)
        except ValueError as error:
            raise ProjectionDamaged(path, f"{error} ({each.partition}:{each.offset})") from error
    return {place: found[place] for place in wanted if place in found}
