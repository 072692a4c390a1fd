"""Whether a topic still has the number of partitions that it was made with.

Kafka keeps no such number, and lets anybody add partitions. The keys of most checkpoints then belong elsewhere, where nobody has written
yet: whoever looked there would find them absent, and start them again. A projection has the number pinned; this is for a store without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eventlog.address import KafkaAddress
from eventlog.errors import ConfigurationError, InvalidRequest
from eventlog.ids import CheckpointId
from eventlog.log import Record

_SAMPLE_KEYS = 200
_SAMPLE_RECORDS = 4_000
# One partition more moves half of the keys at least (from one partition to two), more from more. A foreign writer's records in the
# wrong place, which are quarantined one by one, are not a quarter of a topic's first checkpoints.
_MOVED_SHARE = 0.25


def require_placement(
    batches: Iterable[Sequence[Record]], partition_of: Callable[[str], int], *, address: KafkaAddress, partitions: int
) -> None:
    """Raises `ConfigurationError` when the first records of a log do not lie in the partitions that their keys belong to."""
    home: set[str] = set()
    elsewhere: set[str] = set()
    read = 0
    for records in batches:
        for record in records:
            key = _key(record)
            if key is not None:
                (home if partition_of(key) == record.partition else elsewhere).add(key)
        read += len(records)
        if len(home) + len(elsewhere) >= _SAMPLE_KEYS or read >= _SAMPLE_RECORDS:
            break
    moved = elsewhere - home
    known = len(home | elsewhere)
    if moved and len(moved) >= known * _MOVED_SHARE:
        raise ConfigurationError(
            f"{address} has {partitions} partitions now and had fewer when it was written: {len(moved)} of its first {known} checkpoints"
            f" lie where {partitions} partitions do not put them",
            hint="A partition count never changes: checkpoints would not be found and could begin again. Copy the topic's records into a"
            " new topic with the old number of partitions.",
        )


def _key(record: Record) -> str | None:
    """The id that a record stands under, if it is one."""
    try:
        key = (record.key or b"").decode("ascii")
        return key if CheckpointId(key) == key else None
    except (UnicodeDecodeError, InvalidRequest):
        return None
