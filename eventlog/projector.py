"""Keeps a projection current with a log.

`Projector` pulls from a log on demand (embedded); the Kafka log's tail pushes through the same `interpret`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from eventlog.diagnostics import Notice, tell, told_rebuild
from eventlog.errors import Busy, CheckpointError, StoreClosed
from eventlog.interpreting import QUARANTINED_BEFORE, head_of_row, interpret
from eventlog.log import LogIdentity, Record
from eventlog.position import Position
from eventlog.projection_errors import translated
from eventlog.projection_files import PROJECTION_FILE, SNAPSHOT_FILE, discard_file, rewritten
from eventlog.rules import Head
from projections.engine import Projection
from projections.errors import ProjectionDamaged, ProjectionError, ProjectionForeign, ProjectionLocked
from projections.rows import Batch, QuarantineRow
from projections.snapshot import private_copy, snapshot

_BATCH_ROWS = 2_000  # facts: appender batches of about 1000 and more; beyond 2000 nothing is gained


def tell_quarantined(store: str, rows: Sequence[QuarantineRow]) -> None:
    """One notice a batch, with its first record. `doctor` says why: a reason may quote what a foreign record holds."""
    if rows:
        partition, offset, _, checkpoint_id, *_ = rows[0]
        tell(Notice.QUARANTINED, store=store, events=len(rows), checkpoint_id=checkpoint_id, partition=partition, offset=offset)


class Readable(Protocol):
    """The part of a log that a projection is built from."""

    @property
    def identity(self) -> LogIdentity: ...

    def read(self, after: Position) -> Iterable[tuple[Sequence[Record], Position]]: ...


class ArchivedStretch(Readable, Protocol):
    """What an archive holds of a log, beside what the log still holds there."""

    def known_gaps(self) -> frozenset[tuple[int, int]]: ...


Archived = Callable[[Readable], ArchivedStretch]


class Followed(Readable, Protocol):
    """A log that a projection is kept current with."""

    def end(self) -> Position: ...


def follow(
    log: Readable,
    projection: Projection,
    *,
    keep_events: bool,
    compacted_before: Callable[[], int] = lambda: 0,
    partition_of: Callable[[str], int] | None = None,
    known_gaps: Container[tuple[int, int]] = (),
    progress: Callable[[int], None] | None = None,
    quarantined: Callable[[Sequence[QuarantineRow]], None] | None = None,
) -> None:
    """Brings a projection up to the log's end. Killed at any instruction, it goes on where the last transaction ended.

    `progress` is called with the number of records of each batch, `quarantined` with those that are set aside. The other arguments are
    those of `interpret`; `compacted_before` is asked anew for each batch, since compaction goes on while the log is read.
    """

    def heads_of(ids: list[str]) -> dict[str, Head]:
        return {key: head_of_row(row) for key, row in projection.heads(ids, events=False).items()}

    before = projection.positions()
    blocked = dict.fromkeys(projection.quarantined_ids(), QUARANTINED_BEFORE)
    pending: list[Record] = []
    reached = Position.of(before)

    def apply() -> None:
        found = interpret(
            pending,
            heads_of=heads_of,
            blocked=blocked,
            keep_events=keep_events,
            compacted_before=compacted_before(),
            partition_of=partition_of,
            known_gaps=known_gaps,
            encrypted=log.identity.encrypted,
        )
        for each in found.quarantined:
            if each.checkpoint_id is not None:
                blocked.setdefault(each.checkpoint_id, each.reason)
        projection.apply(Batch(dict(reached.offsets), found.rows, found.gaps, found.quarantined))
        if quarantined is not None:
            quarantined(found.quarantined)
        if progress is not None:
            progress(len(pending))
        pending.clear()

    for records, reached in log.read(Position.of(before)):  # noqa: B007 - `apply` reads it
        pending.extend(records)
        if len(pending) >= _BATCH_ROWS:
            apply()
    if dict(reached.offsets) != before:
        apply()


class Projector:
    """Keeps the projection of an embedded log, brought up to the log's end whenever something is asked of it.

    The directory's projection belongs to one process. Another one that asks meanwhile builds a private one, from the last
    snapshot on, and throws it away when it closes; so does one that is there to look on (`private`), for as long as it likes.
    """

    def __init__(self, *, log: Followed, directory: Path, private: bool = False) -> None:
        self._log = log
        self._keeps_off = private
        self._directory = directory
        self._projection: Projection | None = None
        self._private: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    def current(self) -> Projection:
        """The projection, with everything that was acknowledged before this call."""
        self._require_open()
        with self._lock, translated(self._directory):
            self._require_open()
            if self._projection is None:
                self._projection = self._open()
            with self._let_go_when_damaged():
                follow(self._log, self._projection, keep_events=False, quarantined=partial(tell_quarantined, "embedded"))
            return self._projection

    def rebuild(self, progress: Callable[[int], None] | None = None, archived: Archived | None = None) -> None:
        """Builds the projection anew beside the old one and puts it in its place; reads go on meanwhile.

        `archived`: the log's archive, whose events are read before the log's own.
        """
        self._require_open()
        with self._lock, told_rebuild("embedded"), translated(self._directory):
            self._require_open()
            if self._projection is None:
                self._projection = self._open(rebuilding=True)
            if self._private is not None:
                raise Busy(str(self._directory), "the projection is in use by another process")
            draft = self._directory / f"rebuild-{PROJECTION_FILE}"
            discard_file(draft)
            new = self._make(draft).open()
            try:
                if archived is not None:
                    follow(archived(self._log), new, keep_events=False, progress=progress)
                follow(self._log, new, keep_events=False, progress=progress)
            except BaseException:
                new.close()
                discard_file(draft)
                raise
            with self._let_go_when_damaged():
                self._projection.replace_with(new)
                follow(self._log, self._projection, keep_events=False)

    def rewrite(self, work: Callable[[Projection], None]) -> Sequence[Path]:
        """See `Catalog.rewrite`."""
        self._require_open()
        with self._lock, translated(self._directory):
            self._require_open()
            if self._projection is None:
                self._projection = self._open()
            if self._private is not None:
                raise Busy(str(self._directory / PROJECTION_FILE), "the projection is in use by another process")
            with self._let_go_when_damaged():
                follow(self._log, self._projection, keep_events=False)
                return rewritten(self._projection, self._directory, work)

    def backlog(self) -> tuple[int | None, int | None]:
        """How many offsets it is behind the log, and how many checkpoints are quarantined; None before anything was asked of it."""
        projection = None if self._closed or self._pid != os.getpid() else self._projection
        if projection is None:
            return None, None
        reached = projection.positions()
        behind = sum(max(0, end - reached.get(number, 0)) for number, end in self._log.end().offsets)
        return behind, len(projection.quarantined_ids())

    def close(self) -> None:
        """Writes the snapshot for others, and closes. In a forked child nothing is touched: the files are the parent's."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
            projection, self._projection = self._projection, None
            if projection is not None:
                try:
                    with translated(self._directory):
                        if self._private is None:
                            snapshot(projection, self._directory / SNAPSHOT_FILE)
                finally:
                    projection.close()
            if self._private is not None:
                self._private.cleanup()

    @contextlib.contextmanager
    def _let_go_when_damaged(self) -> Iterator[None]:
        """A write that failed once makes DuckDB refuse all that follows: the next question opens the file anew, and its journal with it."""
        try:
            yield
        except ProjectionDamaged:
            projection, self._projection = self._projection, None
            assert projection is not None
            with contextlib.suppress(ProjectionError):  # of the same failure, which is on its way to the caller
                projection.close()
            if self._private is not None:
                self._private.cleanup()
                self._private = None
            raise

    def _require_open(self) -> None:
        if self._closed or self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")

    def _make(self, path: Path) -> Projection:
        identity = self._log.identity
        return Projection(path=path, store_id=identity.pinned, partitions=identity.partitions, keep_events=False)

    def _open(self, *, rebuilding: bool = False) -> Projection:
        path = self._directory / PROJECTION_FILE
        try:
            if self._keeps_off:
                return self._open_private()
            return self._make(path).open()
        except ProjectionLocked:
            return self._open_private()
        except (ProjectionDamaged, ProjectionForeign):
            if not rebuilding:
                raise
            discard_file(path)  # disposable, and the person has just asked for a new one
            return self._make(path).open()

    def _open_private(self) -> Projection:
        self._private = tempfile.TemporaryDirectory(prefix="eventlog-projection-")
        directory = Path(self._private.name)
        last = self._directory / SNAPSHOT_FILE
        if last.exists():
            with contextlib.suppress(ProjectionError, OSError, CheckpointError):  # a stale or foreign snapshot is only a slower start
                return self._make(private_copy(last, directory)).open()
            shutil.rmtree(directory)
            directory.mkdir()
        return self._make(directory / PROJECTION_FILE).open()
