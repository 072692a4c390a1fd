"""What a projection is rebuilt from: the topic, and before it an archive, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from eventlog.kafka.clock import LogClock
from eventlog.kafka.topic import partition_of
from eventlog.log import LogIdentity, Record
from eventlog.position import Position
from eventlog.projector import Archived, ArchivedStretch, follow
from projections.engine import Projection

WithoutErased = Callable[[Sequence[Record]], Sequence[Record]]


class _Withheld:
    """An archived stretch, without the payloads that were erased since, should an older copy of the archive have them."""

    def __init__(self, stretch: ArchivedStretch, without_erased: WithoutErased) -> None:
        self.identity = stretch.identity
        self._stretch = stretch
        self._without_erased = without_erased

    def read(self, after: Position) -> Iterator[tuple[Sequence[Record], Position]]:
        """See `Log.read`."""
        for records, position in self._stretch.read(after):
            yield self._without_erased(records), position


class TopicSource:
    """The topic, as `projector.follow` reads it."""

    def __init__(
        self,
        identity: LogIdentity,
        read: Callable[[Position], Iterable[tuple[Sequence[Record], Position]]],
        clock: LogClock,
        without_erased: WithoutErased,
    ) -> None:
        self.identity = identity
        self.read = read
        self._clock = clock
        self._without_erased = without_erased

    def follow(self, projection: Projection, progress: Callable[[int], None] | None = None, archived: Archived | None = None) -> None:
        """Brings a projection up to the topic's end, through the archive first.

        In what is archived nothing is missing but what is known to be: a foreign record is told from a gap as it was at first.
        """
        if archived is not None:
            stretch = archived(self)
            gaps = stretch.known_gaps()
            follow(
                _Withheld(stretch, self._without_erased),
                projection,
                keep_events=True,
                partition_of=self._partition_of,
                known_gaps=gaps,
                progress=progress,
            )
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
