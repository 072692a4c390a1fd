"""The tail: this process's own read_committed reader of the topic. What it shows is what happened; nothing else decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from eventlog.address import KafkaAddress
from eventlog.diagnostics import Notice, tell
from eventlog.errors import CheckpointError, ConfigurationError
from eventlog.kafka.boundaries import Boundary, passed
from eventlog.kafka.client import MOST_POLLED, consumer, require_topic, translated
from eventlog.kafka.refusals import REFUSED
from eventlog.kafka.rights import Operation
from eventlog.log import Record
from eventlog.position import Position

_POLL_MS = 100  # how soon the thread notices that it should end
_POLLED_BYTES = 16 << 20  # of one poll, about: in a fetch the events are compressed, in memory they are not
_RETRY_SECONDS = 0.1  # between attempts to reach a broker that does not answer
_REFUSED_SECONDS = 1.0  # between attempts at one that refuses: it answers at once, and writes each into its own log

Sink = Callable[[Sequence[Record], Mapping[int, int]], None]


def read_partitions(address: KafkaAddress, topic_id: str, starts: Mapping[int, int], *, isolation: str = "read_committed") -> KafkaConsumer:
    """A consumer that stands at the given offsets.

    Raises `ConfigurationError` when one lies outside the log, or when it is another topic: nothing is skipped silently.
    """
    client = consumer(address, isolation=isolation)
    try:
        with translated(address, Operation.READ):
            partitions = [TopicPartition(address.topic, number) for number in starts]
            client.assign(partitions)
            firsts, ends = client.beginning_offsets(partitions), client.end_offsets(partitions)
            require_topic(client._cluster, address, topic_id)
            for partition in partitions:
                start = starts[partition.partition]
                if start < firsts[partition]:
                    # Compaction never moves the start of a log: somebody deleted records, or let retention do so for a while.
                    raise ConfigurationError(
                        f"{address}: partition {partition.partition} begins at {firsts[partition]}, and what lay before it was deleted;"
                        f" this store has to read it from {start} on",
                        hint="What is deleted cannot be known, and writing on would forget it. Use a projection that has read it"
                        " (?state=DIR), or restore the topic.",
                    )
                if start > ends[partition]:
                    # The last stable offset may lie behind an acknowledged one only when the log was cut or made anew.
                    raise ConfigurationError(
                        f"{address}: this store has read partition {partition.partition} up to {start}, but it ends at {ends[partition]}",
                        hint="The topic lost data. Find out why before anything is written; a new projection (?state=DIR) knows only what"
                        " the topic holds now.",
                    )
                client.seek(partition, start)
    except BaseException:
        client.close()
        raise
    return client


def poll(client: KafkaConsumer, timeout_ms: int, most: int = MOST_POLLED) -> tuple[list[Record], dict[int, int]]:
    """The next records, up to `most`, and the first offset of each partition that is not read yet.

    Positions, not records, say how far reading got: markers and removed records take offsets too.
    """
    polled = client.poll(timeout_ms=timeout_ms, max_records=most)
    records = [
        Record(partition.partition, each.offset, each.timestamp, each.key, each.value)
        for partition, batch in polled.items()
        for each in batch
    ]
    return records, {partition.partition: client.position(partition) for partition in client.assignment()}


def following(records: Sequence[Record]) -> int:
    """How many records to poll next, when they are as large as the last ones."""
    size = sum(len(record.value or b"") for record in records)
    return min(MOST_POLLED, 1 + _POLLED_BYTES * len(records) // size) if size else MOST_POLLED


def behind(client: KafkaConsumer, positions: Mapping[int, int]) -> int:
    """How far the positions lie before the high watermarks that came with the last fetches."""
    ends = {partition.partition: client.highwater(partition) for partition in client.assignment()}
    return sum(max(0, end - positions[number]) for number, end in ends.items() if end is not None)


class Tail:
    """A thread that reads all partitions and hands what it reads to `sink`, for ever.

    Assumes that it alone calls its consumer, which is not thread-safe. A broker that goes away is waited for; anything else that goes
    wrong ends the thread and is told to `failed`, so that the store can say so instead of living on without news. A broker that refuses
    is in between: `refused` is told why, at once, and gets None when reading goes on.
    """

    def __init__(
        self,
        *,
        address: KafkaAddress,
        topic_id: str,
        starts: Mapping[int, int],
        sink: Sink,
        failed: Callable[[Exception], None],
        refused: Callable[[CheckpointError | None], None],
    ) -> None:
        self._address = address
        self._topic_id = topic_id
        self._positions = dict(starts)
        self._sink = sink
        self._failed = failed
        self._refused = refused
        self._is_refused = False
        self._client: KafkaConsumer | None = None
        self._stop = threading.Event()
        self._waiting = False  # for a broker that does not answer, or refuses
        self.behind = 0  # offsets that the broker is known to have and this has not read
        self._thread = threading.Thread(target=self._run, name=f"eventlog-tail-{address.topic}", daemon=True)

    def start(self) -> None:
        """Begins to read. Raises `ConfigurationError` when there is no reading on from where it is to start."""
        self._client = read_partitions(self._address, self._topic_id, self._positions)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._client is not None:
            self._client.close()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._follow()
                except REFUSED as error:  # a right may be granted again, a password renewed
                    self._refused(error)
                    self._is_refused = True
                    self._interrupted(error, _REFUSED_SECONDS)
                except KafkaError as error:
                    self._interrupted(error, _RETRY_SECONDS)
                except CheckpointError as error:  # of an offset out of range, the next attempt says which end of the log it lies behind
                    if isinstance(error, ConfigurationError) or not isinstance(error.__cause__, KafkaError):
                        raise
                    self._interrupted(error, _RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001 - nobody else would see it
            self._failed(error)
            tell(Notice.TAIL_STOPPED, store="kafka", topic=self._address.topic, reason=error)

    def _interrupted(self, error: Exception, seconds: float) -> None:
        """Waits for the next attempt. Told once, not for each attempt."""
        if not self._waiting:
            self._waiting = True
            tell(Notice.TAIL_INTERRUPTED, store="kafka", topic=self._address.topic, reason=error)
        self._stop.wait(seconds)

    def _follow(self) -> None:
        client, self._client = self._client or read_partitions(self._address, self._topic_id, self._positions), None
        most = MOST_POLLED
        try:
            while not self._stop.is_set():
                with translated(self._address, Operation.READ):
                    records, positions = poll(client, _POLL_MS, most)
                if self._is_refused:
                    self._refused(None)
                    self._is_refused = False
                if self._waiting:
                    self._waiting = False
                    tell(Notice.TAIL_RESUMED, store="kafka", topic=self._address.topic)
                most = following(records)
                require_topic(client._cluster, self._address, self._topic_id)
                self.behind = behind(client, positions)
                if records:
                    passed(Boundary.TAIL_READ)
                if records or positions != self._positions:
                    self._sink(records, positions)
                    self._positions = positions
        finally:
            client.close()


def read_until(
    address: KafkaAddress, topic_id: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[tuple[Sequence[Record], Position]]:
    """Everything that is committed between two cuts, in batches, each with the position that it reaches."""
    client = read_partitions(address, topic_id, starts)
    try:
        positions, most = dict(starts), MOST_POLLED
        while any(positions[number] < end for number, end in ends.items()):
            with translated(address, Operation.READ):
                records, positions = poll(client, _POLL_MS, most)
            most = following(records)
            yield (
                [record for record in records if record.offset < ends[record.partition]],
                Position.of({number: min(offset, ends[number]) for number, offset in positions.items()}),
            )
    finally:
        client.close()
