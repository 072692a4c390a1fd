"""How far the archive is ahead of compaction."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import NamedTuple

from eventlog.address import DirectoryAddress, KafkaAddress
from eventlog.archive.directory import Archive
from eventlog.position import Position
from eventlog.projection_errors import translated
from eventlog.store import CheckpointStore
from projections import stream


class MarginState(StrEnum):
    """Whether there is time left."""

    SAFE = "safe"
    SHORT = "short"  # less than half of the hold is left
    OVERTAKEN = "overtaken"  # compaction may have removed what is not archived


class ArchiveMargin(NamedTuple):
    """The time left until compaction may remove what is not archived."""

    state: MarginState
    oldest_at: int | None  # when the oldest unarchived revision was recorded, in milliseconds since 1970 UTC; None: all are archived
    hold_ms: int
    left_ms: int  # of the hold; below 0: it is over


def archive_margin(store: CheckpointStore, archive: Archive | None, *, hold_ms: int, now_ms: int | None = None) -> ArchiveMargin:
    """The margin of a topic's archive; without an archive nothing is archived.

    Arguments:
        hold_ms: how long a topic surely keeps every revision: its `min.compaction.lag.ms`.
        now_ms: milliseconds since 1970 UTC; this machine's clock when None.

    Raises `Corrupted` when the archive is damaged, and what the store raises when its projection cannot be read.
    """
    end = Position() if archive is None else archive.end()
    with translated():
        oldest = stream.oldest_behind(store.catalog.projection(), dict(end.offsets))
    now = int(time.time() * 1000) if now_ms is None else now_ms
    left = hold_ms if oldest is None else oldest + hold_ms - now
    state = MarginState.OVERTAKEN if left < 0 else MarginState.SHORT if 2 * left < hold_ms else MarginState.SAFE
    return ArchiveMargin(state, oldest, hold_ms, left)


def margin_of(store: CheckpointStore, where: DirectoryAddress | KafkaAddress, archive: Archive | None) -> ArchiveMargin | None:
    """The margin of the store at an address, whose topic's hold is part of it; None for a directory, from which only `compact` takes
    anything, and only what is archived. Raises as `archive_margin` does.
    """
    if isinstance(where, DirectoryAddress):
        return None
    from eventlog.kafka.topic import TopicSpec

    return archive_margin(store, archive, hold_ms=TopicSpec.of(where).hold_ms)
