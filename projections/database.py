"""One open DuckDB file: its settings, its connection for writing, and a cursor per reading thread."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from projections.errors import InvalidQuery, ProjectionDamaged, ProjectionError, ProjectionForeign, ProjectionLocked
from projections.gate import Gate
from projections.statements import literal

Rows = list[tuple[Any, ...]]
Parameters = Sequence[object] | Mapping[str, object]

# A commit that finds more WAL than this checkpoints inside the commit: up to 641 ms at DuckDB's 16 MB, 10 ms at this size (measured).
_WAL_LIMIT = "256MB"
# A lookup pins one block a row until it ends: with DuckDB's 256 KB, 1,000 scattered rows ran a 256 MB limit out of memory (measured).
# 16 KB made batches 10 % slower and snapshots twice as slow; 64 KB did not.
_BLOCK_SIZE = 65_536

_QUESTION_ERRORS = (
    duckdb.ParserException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.TypeMismatchException,
    duckdb.InvalidTypeException,
    duckdb.InvalidInputException,
    duckdb.SyntaxException,
    duckdb.PermissionException,
    duckdb.NotImplementedException,
)
_UNREADABLE = (
    "Corrupt database file",
    "Could not read enough bytes",
    "not a valid DuckDB database file",
    "Failure while replaying WAL",
    "has been invalidated",
)


def translated(error: duckdb.Error, path: Path | None) -> ProjectionError:
    """Return this package's error for one of DuckDB's."""
    text = str(error).strip()
    unreadable = isinstance(error, (duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException))
    if unreadable or any(sign in text for sign in _UNREADABLE):
        return ProjectionDamaged(path, text)
    if isinstance(error, _QUESTION_ERRORS):
        return InvalidQuery(text)
    return ProjectionError(text)


class Table(NamedTuple):
    """A result: column names, DuckDB's names of their types, and the rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Rows


def fetched(result: duckdb.DuckDBPyConnection) -> Table:
    """Return all of a result that has just been executed."""
    description = result.description or []
    columns, types = tuple(column[0] for column in description), tuple(str(column[1]) for column in description)
    return Table(columns, types, result.fetchall())


class ThreadCursor:
    """The cursor of one thread. A connection shared by threads returns other threads' rows (115 of 1,600, measured)."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path | None) -> None:
        self.connection = connection
        self._path = path
        self._statements: dict[str, duckdb.Statement] = {}

    def fetch(self, sql: str, parameters: Parameters = ()) -> Rows:
        """Run a statement of this package and return all rows. Parsed once per thread: p50 0.44 instead of 0.69 ms (measured)."""
        try:
            return self._execute(sql, parameters).fetchall()
        except duckdb.Error as error:
            raise translated(error, self._path) from error

    def table(self, sql: str, parameters: Parameters = ()) -> Table:
        """Run a statement of this package and return its rows with their columns."""
        try:
            return fetched(self._execute(sql, parameters))
        except duckdb.Error as error:
            raise translated(error, self._path) from error

    def _execute(self, sql: str, parameters: Parameters) -> duckdb.DuckDBPyConnection:
        statement = self._statements.get(sql)
        if statement is None:
            statement = self._statements[sql] = self.connection.extract_statements(sql)[0]
        return self.connection.execute(statement, parameters)


class Database:
    """An open DuckDB database. The caller serialises use of `writer`; `cursor()` may be used from any thread."""

    def __init__(self, *, path: Path | None, memory_limit: str, threads: int) -> None:
        self._path = path
        self._memory_limit = memory_limit
        self._threads = threads
        self._gate = Gate()
        self._local = threading.local()
        self._cursors: weakref.WeakSet[ThreadCursor] = weakref.WeakSet()
        self._cursors_lock = threading.Lock()
        self._writer: duckdb.DuckDBPyConnection | None = None
        self._generation = 0
        self._process = 0

    @property
    def writer(self) -> duckdb.DuckDBPyConnection:
        """The connection that writes. Raises `ProjectionError` when closed, or in a forked child."""
        self._require_owner()
        if self._writer is None:
            raise ProjectionError("the projection is not open")
        return self._writer

    def open(self) -> None:
        """Open the file, creating it if absent. Raises `ProjectionLocked`, `ProjectionDamaged` or `ProjectionForeign`."""
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": self._memory_limit,
            "threads": self._threads,
            "wal_autocheckpoint": _WAL_LIMIT,
            "default_block_size": _BLOCK_SIZE,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        }
        try:
            writer = duckdb.connect(str(self._path) if self._path else ":memory:", config=config)
        except duckdb.Error as error:
            raise self._open_error(error) from error
        try:
            for setting in self._locked_settings():
                writer.execute(setting)
        except duckdb.Error as error:
            writer.close()
            raise translated(error, self._path) from error
        self._process = os.getpid()
        self._generation += 1
        self._writer = writer

    def _locked_settings(self) -> list[str]:
        """Settings that connect() takes too early. External access goes off for good, but for the file that a snapshot is written to."""
        settings = ["SET GLOBAL TimeZone = 'UTC'"]
        if self._path:
            names = [literal(f"{self._path}.snapshot{suffix}") for suffix in ("", ".wal", ".wal.checkpoint", ".wal.recovery")]
            settings.append(f"SET GLOBAL allowed_paths = [{', '.join(names)}]")
        return [*settings, "SET GLOBAL enable_external_access = false", "SET GLOBAL lock_configuration = true"]

    def _open_error(self, error: duckdb.Error) -> ProjectionError:
        assert self._path is not None
        text = str(error).strip()
        if "Could not set lock" in text:
            return ProjectionLocked(self._path, text.partition("(PID ")[2].partition(")")[0] or "unknown")
        if "version number" in text:
            return ProjectionForeign(self._path, f"a storage format that DuckDB {duckdb.__version__} reads", text)
        if not self._path.is_file() or not os.access(self._path, os.R_OK | os.W_OK):
            return ProjectionError(text)
        return ProjectionDamaged(self._path, text)

    def close(self) -> None:
        """Wait for running reads, then close every cursor and the connection. Harmless when closed."""
        with self._gate.exclusive():
            self._close()

    def _close(self) -> None:
        with self._cursors_lock:
            for cursor in list(self._cursors):
                cursor.connection.close()
            self._cursors.clear()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Close for the length of the block, in which the file may be exchanged, and open again. Readers wait and see no error."""
        with self._gate.exclusive():
            self._close()
            try:
                yield
            finally:
                self.open()

    @contextmanager
    def cursor(self) -> Iterator[ThreadCursor]:
        """Lend this thread's cursor. The file is not exchanged or closed while it is lent, so do not keep it longer than a question."""
        with self._gate.shared():
            held: tuple[int, ThreadCursor] | None = getattr(self._local, "cursor", None)
            if held is None or held[0] != self._generation or self._writer is None:
                held = (self._generation, self._new_cursor())
                self._local.cursor = held
            else:
                self._require_owner()
            yield held[1]

    def _new_cursor(self) -> ThreadCursor:
        cursor = ThreadCursor(self.writer.cursor(), self._path)
        with self._cursors_lock:
            self._cursors.add(cursor)
        return cursor

    def _require_owner(self) -> None:
        # A forked child shares the WAL: its writes appear in the parent's file after a crash, its close() removes it (measured).
        if self._writer is not None and os.getpid() != self._process:
            raise ProjectionError("a projection cannot be used in a forked process: open a snapshot there, or spawn")
