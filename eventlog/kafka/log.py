"""The log on Kafka: the parts put together behind the contract of `eventlog.log`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path

from platformdirs import user_state_path

from eventlog.address import KafkaAddress
from eventlog.erasure.register import register_of
from eventlog.errors import ConfigurationError, StorageError, StoreClosed
from eventlog.kafka.client import admin
from eventlog.kafka.client import translated as kafka_translated
from eventlog.kafka.erased import is_deletion, is_sealed, without_erased
from eventlog.kafka.keys import KafkaKeys
from eventlog.kafka.keys_topic import open_key_table
from eventlog.kafka.offsets import Offsets
from eventlog.kafka.ownership import Ownership
from eventlog.kafka.placement import require_placement
from eventlog.kafka.tail import Tail, read_until
from eventlog.kafka.topic import Spec, TopicSpec, describe, differences, is_restoring, partition_of
from eventlog.kafka.view import View
from eventlog.kafka.writer import Writer
from eventlog.log import LogIdentity, Outcome, Record
from eventlog.position import Position
from eventlog.projection_errors import translated
from eventlog.projector import Archived
from eventlog.rules import Head, Proposal, require_form
from projections import history, stream
from projections.engine import Projection

_BARRIER_SECONDS = 30.0  # for both halves of a barrier: asking for the ends, and reading up to them
_AFTER_OFFSETS_SECONDS = 1.0  # at least, for the second half: the broker has just answered
_ROWS = 500


class KafkaLog:
    """A topic as a log. Made by `open_kafka_log`; safe to share between threads, not across a fork."""

    kind = "kafka"
    reads_wait = True

    def __init__(
        self,
        *,
        address: KafkaAddress,
        topic_id: str,
        identity: LogIdentity,
        directory: Path,
        spec: TopicSpec,
        max_event_bytes: int,
        key_table: KafkaKeys | None = None,
    ) -> None:
        self.address = address
        self.topic_id = topic_id
        self.identity = identity
        self.directory = directory
        self.max_event_bytes = max_event_bytes
        # The client compresses whole batches, and the projection each event against its successor, with which a compressed one shares
        # nothing: a payload stays as it is if it fits.
        self.compress_from = max_event_bytes
        self.view = View(identity=identity, directory=directory, hold_ms=spec.hold_ms)
        self._pid = os.getpid()
        self._offsets = Offsets(address=address, partitions=identity.partitions)
        self.ownership = Ownership(
            address=address, topic_id=topic_id, view=self.view, offsets=self._offsets, max_event_bytes=max_event_bytes
        )
        self.writer = Writer(topic=address.topic, partitions=identity.partitions, view=self.view, ownership=self.ownership)
        self._key_table = key_table
        self.erased: set[str] = set()  # checkpoints whose payloads are read as if compaction had taken them already
        self.compacted_within = spec.compacted_within_ms  # milliseconds after which superseded records leave the topic
        self._tail: Tail | None = None
        self.projector = _BarrierFirst(self)

    def open(self) -> None:
        """Opens the projection, starts to follow the topic, and is ready to write. Owns nothing until something is written."""
        try:
            self.view.open()
            self.view.read_from_log = self.read
            self.view.without_erased = self._without_erased
            self.view.clock.heard(self._offsets.newest_time(timeout=_BARRIER_SECONDS))
            tail = Tail(
                address=self.address,
                topic_id=self.topic_id,
                starts=self.view.positions,
                sink=self._ingest,
                failed=self.view.fail,
                refused=self.view.refuse,
            )
            tail.start()
            self._tail = tail
            self._require_placement()
            self.writer.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets what is in flight end, then stops every thread: writer, tail, projection, clients."""
        self.writer.close()
        if self._tail is not None:
            self._tail.stop()
        self.view.close()
        self._offsets.close()
        if self._key_table is not None:
            self._key_table.close()

    @property
    def key_source(self) -> str | None:
        """Of an encrypted store: where its keys are."""
        return None if self._key_table is None else self._key_table.source

    def open_keys(self) -> KafkaKeys:
        """The wrapped keys of an encrypted store, open since the log is."""
        assert self._key_table is not None
        return self._key_table

    # -- the Log contract -----------------------------------------------------------------------------------------

    def append(self, proposals: Sequence[Proposal], *, timeout: float) -> Sequence[Outcome]:
        """See `Log.append`. Raises `EncryptionMismatch` for all of them when one is not in the log's form."""
        self._require_process()
        self._require_form(proposals)
        return self.writer.append(proposals, timeout=timeout)

    def append_at_once(self, proposals: Sequence[Proposal]) -> Sequence[Outcome] | None:  # noqa: ARG002
        """See `Log.append_at_once`. A broker always has to be waited for."""
        return None

    def append_later(self, proposals: Sequence[Proposal], *, timeout: float, done: Callable[[Sequence[Outcome]], None]) -> bool:
        """See `Log.append_later`, and `append` for what it raises."""
        self._require_process()
        self._require_form(proposals)
        self.writer.append_later(proposals, timeout=timeout, done=done)
        return True

    def settle(self, checkpoint_id: str | None, timeout: float) -> None:
        """See `Log.settle`. Takes the partitions over if need be: only a fence shows that nothing sent before can still arrive."""
        self._require_process()
        partitions = range(self.identity.partitions) if checkpoint_id is None else [self.partition_of(checkpoint_id)]
        self.writer.settle(list(partitions), timeout=timeout)

    def read(self, after: Position) -> Generator[tuple[Sequence[Record], Position], None, None]:
        """See `Log.read`. What the topic holds, quarantined records included."""
        ends = self._offsets.last_stable(timeout=_BARRIER_SECONDS)
        for records, position in read_until(self.address, self.topic_id, {number: after.next_offset(number) for number in ends}, ends):
            yield self._without_erased(records), position

    def withhold(self, checkpoint_ids: Collection[str]) -> None:
        """See `erasure.places.Compacted`."""
        self.erased.update(checkpoint_ids)

    def records_left(self, checkpoint_ids: Collection[str]) -> tuple[dict[str, int], str]:
        """See `erasure.places.Compacted`."""
        wanted = {each.encode(): each for each in checkpoint_ids}
        left: dict[str, int] = {}
        reached = Position()
        ends = self._offsets.last_stable(timeout=_BARRIER_SECONDS)
        for records, reached in read_until(self.address, self.topic_id, dict.fromkeys(ends, 0), ends):  # noqa: B007 - told afterwards
            for record in records:
                checkpoint_id = wanted.get(record.key or b"")
                if checkpoint_id is not None and not is_deletion(record):
                    left[checkpoint_id] = left.get(checkpoint_id, 0) + 1
        if self._key_table is not None:
            for checkpoint_id, count in self._key_table.values_left(checkpoint_ids).items():
                left[checkpoint_id] = left.get(checkpoint_id, 0) + count
        return left, str(reached)

    def revisions(self, after: Position) -> Iterator[tuple[Sequence[Record], Position]]:
        """See `Log.revisions`. From the projection, which also has what compaction has removed from the topic."""
        self._barrier()
        projection = self.view.flushed()
        reached = {number: after.next_offset(number) for number in range(self.identity.partitions)}
        for number, end in sorted(projection.positions().items()):
            start = reached[number]
            while start < end:
                with translated():
                    rows = stream.since(projection, number, start, end, _ROWS)
                if not rows:
                    break
                reached[number] = start = rows[-1].offset + 1
                yield [_record(row.partition, row.offset, row.recorded_at, row.event) for row in rows], Position.of(reached)
            reached[number] = max(start, end)
        yield [], Position.of(reached)

    def end(self) -> Position:
        """See `Log.end`."""
        return Position.of(self._barrier())

    def partition_of(self, checkpoint_id: str) -> int:
        """See `Log.partition_of`."""
        return partition_of(checkpoint_id, self.identity.partitions)

    def unread(self) -> int | None:
        """See `Log.unread`."""
        return None if self._tail is None else self._tail.behind

    def compacted_before(self) -> int:
        """See `Log.compacted_before`."""
        return self.view.clock.compacted_before()

    def wait(self, after: Position, timeout: float) -> bool:
        """See `Log.wait`."""
        return self.view.await_news(after, timeout)

    def place(self, checkpoint_id: str, *, at_least: Position | None) -> tuple[int, int] | None:
        """See `Log.place`."""
        head = self._head(checkpoint_id, at_least)
        return None if head is None else (head.partition, head.offset)

    def tenant_of(self, checkpoint_id: str, *, at_least: Position | None) -> str | None:
        """See `Log.tenant_of`."""
        head = self._head(checkpoint_id, at_least)
        return None if head is None else head.tenant

    def latest(self, checkpoint_id: str) -> Record | None:
        """See `Log.latest`."""
        return self.view.latest(checkpoint_id)

    def revision(self, checkpoint_id: str, revision: int) -> Record | None:
        """See `Log.revision`."""
        return self.view.revision(checkpoint_id, revision)

    def as_of(self, checkpoint_id: str, position: Position) -> Record | None:
        """See `Log.as_of`."""
        number = self.partition_of(checkpoint_id)
        with translated():
            row = history.as_of(self.view.flushed(), checkpoint_id, number, position.next_offset(number))
        return None if row is None else _record(row.partition, row.offset, row.recorded_at, row.event)

    def by_event_id(self, event_id: str) -> Record | None:
        """See `Log.by_event_id`."""
        self._barrier()
        with translated():
            row = history.by_event_id(self.view.flushed(), event_id)
        return None if row is None else _record(row.partition, row.offset, row.recorded_at, row.event)

    def history(self, checkpoint_id: str, *, after: int, position: Position | None, limit: int) -> Sequence[Record]:
        """See `Log.history`."""
        with translated():
            # Only the bound of the checkpoint's own partition matters, so a position that names no other will do.
            at = None if position is None else {number: position.next_offset(number) for number in range(self.identity.partitions)}
            rows = history.history(self.view.flushed(), checkpoint_id, after_revision=after, limit=limit, at=at)
        return [_record(row.partition, row.offset, row.recorded_at, row.event) for row in rows]

    def position_at(self, millis: int) -> Position:
        """See `Log.position_at`."""
        self._barrier()
        with translated():
            return Position.of(history.position_at(self.view.flushed(), millis))

    # -- inside ---------------------------------------------------------------------------------------------------

    def _head(self, checkpoint_id: str, at_least: Position | None) -> Head | None:
        if at_least is None:
            self._barrier(self.partition_of(checkpoint_id))
        else:
            self.view.await_position(dict(at_least.offsets), _BARRIER_SECONDS)
        with translated():
            return self.view.head(checkpoint_id)

    def _require_form(self, proposals: Sequence[Proposal]) -> None:
        for proposal in proposals:
            require_form(proposal, encrypted=self.identity.encrypted)

    def _require_placement(self) -> None:
        """For a projection that nothing was read into yet: see `placement`."""
        if any(self.view.applied.values()) or not any(self._offsets.last_stable(timeout=_BARRIER_SECONDS).values()):
            return
        with contextlib.closing(self.read(Position())) as batches:
            require_placement(
                (self._in_clear(records) for records, _ in batches),
                self.partition_of,
                address=self.address,
                partitions=self.identity.partitions,
            )

    def _in_clear(self, records: Sequence[Record]) -> Sequence[Record]:
        """Raises when sealed payloads show that a store without a topic of keys had one."""
        if not self.identity.encrypted and any(is_sealed(record) for record in records):
            raise ConfigurationError(
                f"{self.address} holds encrypted payloads, and its topic of keys is gone",
                hint="Restore that topic from the backup of the keys. Without it nothing is read, and all would be written in clear text.",
            )
        return records

    def _ingest(self, records: Sequence[Record], positions: Mapping[int, int]) -> None:
        self.view.ingest(self._without_erased(records), positions)

    def _without_erased(self, records: Sequence[Record]) -> Sequence[Record]:
        """What the topic still holds of erased checkpoints comes without its payload, so that it gets into no projection again."""
        return without_erased(records, self.erased) if self.erased else records

    def _barrier(self, partition: int | None = None) -> dict[int, int]:
        """Waits until this process has seen everything that was acknowledged to anybody before the call."""
        self._require_process()
        self.view.require()
        deadline = time.monotonic() + _BARRIER_SECONDS
        ends = self._offsets.last_stable(timeout=_BARRIER_SECONDS)
        wanted = ends if partition is None else {partition: ends[partition]}
        self.view.await_position(wanted, max(_AFTER_OFFSETS_SECONDS, deadline - time.monotonic()))
        return ends

    def _require_process(self) -> None:
        if self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")


class _BarrierFirst:
    """The projection as the catalog wants it: with everything that was acknowledged before the question."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log

    def current(self) -> Projection:
        self._log.end()
        return self._log.view.flushed()

    def rebuild(self, progress: Callable[[int], None] | None = None, archived: Archived | None = None) -> None:
        self._log.end()
        self._log.view.rebuild(progress, archived)

    def rewrite(self, work: Callable[[Projection], None]) -> Sequence[Path]:
        self._log.end()
        return self._log.view.rewrite(work)

    def backlog(self) -> tuple[int | None, int | None]:
        view = self._log.view
        applied = view.applied
        behind = sum(max(0, offset - applied.get(number, 0)) for number, offset in view.positions.items())
        return behind, len(view.quarantined())

    def close(self) -> None:
        """The log closes its own projection."""


def _record(partition: int, offset: int, recorded_at: int, event: bytes | None) -> Record:
    return Record(partition, offset, recorded_at, None, event)


def open_kafka_log(address: KafkaAddress, *, max_event_bytes: int | None = None, must_be: Spec | None = None) -> KafkaLog:
    """Checks the topic, and the one of its keys, exactly, then opens it.

    `must_be`: other settings than a log's, for whoever restores into the topic and opens it before anybody else can.

    Raises `ConfigurationError` with every difference, `NotAStore`, `Unavailable`, `AuthenticationFailed`, `MissingRight`, `Busy`.
    """
    spec = TopicSpec.of(address)
    client = admin(address)
    try:
        with kafka_translated(address):
            state = describe(client, address)
    finally:
        client.close()
    if must_be is None and is_restoring(state):
        hint = "Wait until the restore has ended. If it was interrupted, start it again: it begins from nothing."
        raise ConfigurationError(f"{address} is being restored from a backup, or the restore was interrupted", hint=hint)
    wrong = differences(state, must_be or spec)
    if wrong:
        hint = "Correct the topic's settings; the store does not start, because each of these can lose data."
        raise ConfigurationError(f"{address} is not set up as a checkpoint log", differences=wrong, hint=hint)
    limit = spec.max_event_bytes if max_event_bytes is None else min(max_event_bytes, spec.max_event_bytes)
    directory = _state_directory(address, state.cluster_id, state.topic_id)
    key_table = open_key_table(address)
    identity = LogIdentity(f"{state.cluster_id}/{state.topic_id}", state.partitions, encrypted=key_table is not None)
    log = KafkaLog(
        address=address,
        topic_id=state.topic_id,
        identity=identity,
        directory=directory,
        spec=spec,
        max_event_bytes=limit,
        key_table=key_table,
    )
    log.erased.update(register_of(directory, identity.store_id).erased())
    log.open()
    return log


def _state_directory(address: KafkaAddress, cluster_id: str, topic_id: str) -> Path:
    given = address.settings.get("state")
    directory = Path(given).expanduser() if given else user_state_path("eventlog") / cluster_id / topic_id
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(str(directory), f"cannot be made: {error.strerror}", hint="Give another one with ?state=DIR.") from error
    return directory
