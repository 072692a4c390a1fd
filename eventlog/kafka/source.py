"""What a projection is rebuilt from: the topic, and before it an archive, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eventlog.kafka.clock import LogClock
from eventlog.kafka.topic import partition_of
from eventlog.log import LogIdentity, Record
from eventlog.position import Position
from eventlog.projector import Archived, follow
from projections.engine import Projection


class TopicSource:
    """The topic, as `projector.follow` reads it."""

    def __init__(
        self, identity: LogIdentity, read: Callable[[Position], Iterable[tuple[Sequence[Record], Position]]], clock: LogClock
    ) -> None:
        self.identity = identity
        self.read = read
        self._clock = clock

    def follow(self, projection: Projection, progress: Callable[[int], None] | None = None, archived: Archived | None = None) -> None:
        """Brings a projection up to the topic's end, through the archive first.

        In what is archived nothing is missing but what is known to be: a foreign record is told from a gap as it was at first.
        """
        if archived is not None:
            stretch = archived(self)
            gaps = stretch.known_gaps()
            follow(stretch, projection, keep_events=True, partition_of=self._partition_of, known_gaps=gaps, progress=progress)
        follow(
            self,
            projection,
            keep_events=True,
            compacted_before=self._clock.compacted_before,
            partition_of=self._partition_of,
            progress=progress,
        )

    def _partition_of(self, checkpoint_id: str) -> int:
        return partition_of(checkpoint_id, self.identity.partitions)
