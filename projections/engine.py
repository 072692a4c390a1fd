"""The projection: one DuckDB file, owned by one process, that follows a log and answers questions about it."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import duckdb

from projections.copying import copy_database, draft_of
from projections.database import Database, Parameters, Rows, Table, ThreadCursor, translated
from projections.durable import put_in_place
from projections.errors import InvalidBatch, InvalidQuery, ProjectionDamaged, ProjectionError
from projections.forms import opened
from projections.identity import Identity, require_identity
from projections.ownership import Ownership
from projections.rows import Batch
from projections.select_only import run_select
from projections.staging import require_consistent, staged
from projections.statements import named

_APPLY = named("staging.sql")
_HEADS = named("heads.sql")
# Placeholders come in few sizes so that few statements are parsed. An IN list of up to 64 is answered by the index in 2 ms at
# a million heads, a join with unnest() by a scan in 7 (measured).
_LOOKUP_SIZES = (1, 16, 64)


class HeadRow(NamedTuple):
    """The latest revision of a checkpoint, as a writer's validation and a load need it. Units as in `RevisionRow`."""

    checkpoint_id: str
    partition: int
    offset: int
    recorded_at: int
    revision: int
    event_id: str
    run_id: str
    type: str
    tenant: str
    kind: str
    schema_version: int
    usage: dict[str, int]
    event_hash: bytes
    event: bytes | None
    quarantined: bool


class Projection:
    """A DuckDB read model of one log.

    Any thread may read, each on a cursor of its own; `apply` and the maintenance calls take turns. After `close()`, and in a forked
    child, every call raises `ProjectionError`.

    Args:
        path: the database file, or None for one in memory.
        store_id: identity of the log (on Kafka the cluster's and the topic's); pinned in the file.
        partitions: how many partitions the log has; pinned too.
        keep_events: whether events' bytes are kept (Kafka) or left to the log (embedded); pinned too.
        memory_limit: DuckDB's buffer limit, such as `256MB`. The process needs about 200 MB more.
        threads: DuckDB's worker threads.
    """

    def __init__(
        self, *, path: Path | None, store_id: str, partitions: int, keep_events: bool, memory_limit: str = "256MB", threads: int = 2
    ) -> None:
        self.path = path
        self.identity = Identity(store_id=store_id, partitions=partitions, keep_events=keep_events)
        self._ownership = Ownership(path=path) if path else None
        self._memory_limit = memory_limit
        self._threads = threads
        self._database = Database(path=path, memory_limit=memory_limit, threads=threads)
        self.snapshot_lock = threading.Lock()  # taken by `snapshot`, one at a time: they share a file name
        self._write_lock = threading.Lock()
        self._steps: dict[str, duckdb.Statement] = {}  # of staging.sql, parsed
        self._quarantined: frozenset[str] = frozenset()
        self._unsettled = 0

    def open(self) -> Self:
        """Take ownership, open or create the file, and check whose it is.

        Raises:
            ProjectionLocked: another process or projection owns the file.
            ProjectionForeign: it belongs to another store, has another partition count, or a newer format.
            ProjectionDamaged: it cannot be read.
            OSError: its directory is absent or may not be written.
        """
        if self._ownership:
            self._ownership.take()
        try:
            if self.path is not None and not self.path.exists():
                self._create(self.path)
            self._database.open()
            self._prepare()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Wait for running reads and the running batch, then close the file and give up its ownership. Harmless when closed."""
        with self._write_lock:
            self._database.close()
            if self._ownership:
                self._ownership.release()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _create(self, path: Path) -> None:
        """Make a new file under another name, and give it its own when it is complete: DuckDB itself would leave half a file of a process
        that is killed in here, and refuse to open it ever after.
        """
        draft = Path(f"{path}.new")
        for left in (*_wal_files(path), draft, *_wal_files(draft)):  # of a process that was killed in here, or of a file that was deleted
            left.unlink(missing_ok=True)
        database = Database(path=draft, memory_limit=self._memory_limit, threads=self._threads)
        database.open()
        try:
            require_identity(database.writer, self.identity, draft)
        except duckdb.Error as error:
            raise translated(error, draft) from error
        finally:
            database.close()
        if _wal_files(draft):
            raise ProjectionError(f"{draft} still has a WAL after closing")
        put_in_place(draft, path)

    def _prepare(self) -> None:
        """Create or check the tables, and what an open connection needs beside them."""
        try:
            require_identity(self._database.writer, self.identity, self.path)
            self._database.writer.execute(_APPLY["create"])
            self._steps = {name: self._database.writer.extract_statements(sql)[0] for name, sql in _APPLY.items()}
            self._load_quarantined()
            self.count_unsettled()
        except (duckdb.Error, InvalidQuery) as error:
            failure = translated(error, self.path) if isinstance(error, duckdb.Error) else error
            # The statements are fixed ones: if they make no sense to this file, it is the file that is wrong.
            raise (ProjectionDamaged(self.path, str(error)) if isinstance(failure, InvalidQuery) else failure) from error

    def _load_quarantined(self) -> None:
        self._quarantined = frozenset(row[0] for row in self.query(_APPLY["quarantined"]))

    def count_unsettled(self) -> None:
        """Make `unsettled_bytes` exact again."""
        self._unsettled = self.query(_APPLY["unsettled"])[0][0]

    @property
    def unsettled_bytes(self) -> int:
        """About how many bytes of superseded events `settling` has not yet kept against their successors."""
        return self._unsettled

    def apply(self, batch: Batch) -> None:
        """Apply a batch and the positions behind it, all or nothing. The same batch again changes nothing.

        The order of the steps is what makes a projection safe to kill at any instruction and to feed twice:

        1. Begin first, then read the stored positions inside the transaction. What "already applied" means is decided against the same
           snapshot that the new rows go into; the log's own consumer offsets play no part.
        2. Drop what lies below a stored position. A consumer that restarts, or a rebuild that overlaps, delivers records again;
           `revisions` has no key that would refuse them, so this comparison alone keeps them single.
        3. Stage the remaining rows in a temporary table, through the appender. Every conversion error (a bad UUID, a number too large)
           surfaces here or in step 4, before a head has been touched.
        4. Append to `revisions`, in the order of the log: zone maps prune by offset only as long as rows lie in that order.
        5. Replace heads, older ones only: DELETE, then INSERT whatever has no head left. Not an upsert, which rewrites the payload
           of every vector it touches (80 to 110 times slower at a million heads, measured); and the DELETE comes first, because
           the primary key is checked at the INSERT. The newest row of a key was chosen in step 3, so a key occurs once. A head
           holds the only copy of its event, so the events of those that go are put aside before, of those that were passed over after.
        6. Add gaps and quarantined records, then release. Release comes after them because a repair may follow, in the same
           batch, the very record that it answers; a record behind the repair stays quarantined.
        7. Move the positions last but in this transaction: were they committed before the rows, a crash between the two would skip
           records for ever; were they committed after, it would apply them twice.
        8. Clear the staging table, then commit: one write of the WAL, one fdatasync. Nothing is reported applied before it returned.

        An error anywhere ends in a rollback and is raised. It must not be swallowed on the way: DuckDB's commit() after a failed
        statement returns normally while it rolls back, and whoever then moved on would have lost the batch. A commit that fails itself
        has already ended its transaction, so the rollback after it must not mask the error.

        Args:
            batch: rows in the order of the log within each partition. Memory: about twice its bytes, so 1,000 to 5,000 rows a batch.

        Raises:
            InvalidBatch: it contradicts itself, or a value does not fit its column. Nothing was applied; the projection stays usable.
            ProjectionError: it could not be written. Nothing was applied.
        """
        require_consistent(batch, self.identity.partitions)
        with self.writing() as writer:
            passed = self._apply(writer, batch)
        self._unsettled += passed
        if batch.quarantined or batch.released:
            self._load_quarantined()

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Lend the writing connection for one transaction, which ends with the block: see `apply` for what an error does."""
        with self._write_lock:
            writer = self._database.writer
            try:
                writer.begin()
                yield writer
                writer.commit()
            except BaseException as error:
                _roll_back(writer)
                if not isinstance(error, duckdb.Error):
                    raise
                failure = translated(error, self.path)
                unfit = isinstance(failure, InvalidQuery) or isinstance(error, duckdb.ConstraintException)
                raise (InvalidBatch(str(error)) if unfit else failure) from error

    def _apply(self, writer: duckdb.DuckDBPyConnection, batch: Batch) -> int:
        """Runs the statements; how many bytes of events are superseded by them, about."""
        passed = 0
        stored = dict(writer.execute(self._steps["positions"]).fetchall())
        moved = {partition: offset for partition, offset in batch.next_offsets.items() if offset > stored[partition]}
        rows = [row for row in batch.rows if row.offset >= stored[row.partition]]
        if rows:
            staging = staged(rows, keep_events=self.identity.keep_events)
            with writer.appender("staging") as appender:
                appender.append_rows(staging)
            heads = sum(row[-1] for row in staging)
            self._run(writer, "insert_revisions")
            passed = self._run(writer, "keep_replaced") if self.identity.keep_events else 0
            self._run(writer, "delete_heads")
            late = heads - self._run(writer, "insert_heads")
            if self.identity.keep_events and heads < len(rows):
                passed += self._run(writer, "keep_passed")
            if self.identity.keep_events and late:
                passed += self._run(writer, "keep_late")
            passed = passed * sum(row.stored_size for row in rows) // len(rows)
        for table, records in (
            ("gaps", [tuple(gap) for gap in batch.gaps if gap.offset >= stored[gap.partition]]),
            ("quarantine", [(*record, False) for record in batch.quarantined if record.offset >= stored[record.partition]]),
        ):
            if records:
                with writer.appender(table) as appender:
                    appender.append_rows(records)
        if batch.released:
            repaired = {row.checkpoint_id: row.offset for row in rows}
            for checkpoint_id in batch.released:
                for partition, offset in moved.items():
                    below = repaired.get(checkpoint_id, offset)
                    writer.execute(self._steps["release"], {"checkpoint": checkpoint_id, "partition": partition, "below": below})
        if moved:
            writer.execute(self._steps["set_positions"], {"partitions": list(moved), "offsets": list(moved.values())})
        writer.execute(self._steps["clear"])
        return passed

    def _run(self, writer: duckdb.DuckDBPyConnection, step: str) -> int:
        """Runs a statement; how many rows it changed."""
        return int(writer.execute(self._steps[step]).fetchall()[0][0])

    def positions(self) -> dict[int, int]:
        """Return the next offset to apply of every partition (0 for one of which nothing has been applied)."""
        return dict(self.query(_APPLY["positions"]))

    def head(self, checkpoint_id: str) -> HeadRow | None:
        """Return the latest revision of a checkpoint, deleted or not, or None. Raises `InvalidQuery` if the id is no UUID."""
        return next(iter(self.heads([checkpoint_id]).values()), None)

    def heads(self, ids: Collection[str], *, events: bool = True) -> dict[str, HeadRow]:
        """Return the latest revisions of many checkpoints by id (lower-case text); absent ones are absent.

        Args:
            ids: UUIDs as text. Answered by the index, 64 at a time, whatever the number of heads; more of them without events by one scan
                of the ids (2000 of 100,000 heads: 8 instead of 120 ms, measured).
            events: whether to read the events' bytes too; without them a lookup touches less of the file.
        """
        wanted = list(dict.fromkeys(ids))
        template = _HEADS["lookup" if events else "lookup_without_event"]
        found: Rows = []
        with self.cursor() as cursor:
            if not events and len(wanted) > _LOOKUP_SIZES[-1]:
                found = cursor.fetch(_HEADS["lookup_many_without_event"], {"ids": wanted})
                wanted = []
            for sql, some in lookups(template, wanted):
                found += cursor.fetch(sql, some)
        quarantined = self._quarantined
        return {row[0]: HeadRow._make((*row[:11], json.loads(row[11]), row[12], self._event(row), row[0] in quarantined)) for row in found}

    def _event(self, row: tuple[Any, ...]) -> bytes | None:
        event, form = row[13:]
        try:
            return None if event is None else opened(form, event)
        except ValueError as error:
            raise ProjectionDamaged(self.path, f"the head of checkpoint {row[0]}: {error}") from error

    def quarantined_ids(self) -> frozenset[str]:
        """Return the ids of the checkpoints that a quarantined record blocks, those without any accepted revision too."""
        return self._quarantined

    @contextmanager
    def cursor(self) -> Iterator[ThreadCursor]:
        """Lend this thread's cursor, for several questions in a row. Closing and swapping wait until it is given back."""
        with self._database.cursor() as cursor:
            yield cursor

    def query(self, sql: str, parameters: Parameters = ()) -> Rows:
        """Run one fixed statement of a program (parsed once per thread, then reused) and return all rows."""
        with self._database.cursor() as cursor:
            return cursor.fetch(sql, parameters)

    def table(self, sql: str, parameters: Parameters = ()) -> Table:
        """Run one fixed statement of a program and return its rows with the names and types of its columns."""
        with self._database.cursor() as cursor:
            return cursor.table(sql, parameters)

    def sql(self, statement: str) -> Table:
        """Answer a person's SELECT over the views. Raises `InvalidQuery` for anything else. Not a sandbox: see `select_only`."""
        with self._database.cursor() as cursor:
            return run_select(cursor.connection, statement, self.path)

    def checkpoint(self) -> None:
        """Move the WAL into the file. Call it at quiet moments: otherwise a commit does, at 256 MB, and its readers wait longer."""
        with self._write_lock:
            try:
                self._database.writer.execute("CHECKPOINT")
            except duckdb.Error as error:
                raise translated(error, self.path) from error

    def replace_with(self, new: Projection) -> None:
        """Put a rebuilt projection in the place of this one, which stays open; `new` is closed and its file is gone.

        Readers wait while the file is exchanged (as long as the longest running read, then some milliseconds) and see no error.
        A crash at any point leaves the old file or the new one, each with its own positions.

        Args:
            new: an open projection of the same log, in the same directory.

        Raises:
            ProjectionError: it is of another log, in memory, or still has a WAL after closing. This projection is unchanged.
        """
        if self.path is None or new.path is None or new.identity != self.identity or new.path.parent != self.path.parent:
            raise ProjectionError("only a projection of the same log, in a file in the same directory, can take the place of this one")
        new.close()
        if _wal_files(new.path):
            raise ProjectionError(f"{new.path} still has a WAL after closing")
        self.checkpoint()  # readers would otherwise wait for the checkpoint that closing makes
        with self._write_lock:
            self._exchange(self.path, new.path)

    def compact(self) -> None:
        """Write the file anew without the space of what was deleted, which DuckDB would only use again. Batches wait, reads go on.

        Takes about 20 s a gigabyte, and room for a second file. A crash at any point leaves the old file or the new one.
        """
        if self.path is None:
            return
        draft = draft_of(self.path)
        with self.snapshot_lock, self._write_lock:
            try:
                self._database.writer.execute("CHECKPOINT")
                with self.cursor() as cursor:
                    copy_database(cursor.connection, draft)
            except duckdb.Error as error:
                raise translated(error, self.path) from error
            self._exchange(self.path, draft)

    def _exchange(self, path: Path, new: Path) -> None:
        """Puts a closed file in the place of this one, for whoever holds the write lock."""
        with self._database.replaced():
            for stale in _wal_files(path):
                stale.unlink()  # of the old file: replayed on the new one it would corrupt it
            put_in_place(new, path)
        self._prepare()


def lookups(template: str, ids: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Return the statements, with their parameters, that look ids up by the index: `template` with placeholders for `/* ids */`."""
    for start in range(0, len(ids), _LOOKUP_SIZES[-1]):
        chunk = list(ids[start : start + _LOOKUP_SIZES[-1]])
        size = next(size for size in _LOOKUP_SIZES if size >= len(chunk))
        yield template.replace("/* ids */", ", ".join(["?::UUID"] * size)), chunk + chunk[:1] * (size - len(chunk))


def _roll_back(writer: duckdb.DuckDBPyConnection) -> None:
    try:
        writer.rollback()
    except duckdb.Error:
        return  # a failed commit has already ended the transaction; the error that led here is the one to report


def _wal_files(path: Path) -> list[Path]:
    return [wal for suffix in (".wal", ".wal.checkpoint", ".wal.recovery") if (wal := Path(f"{path}{suffix}")).exists()]
