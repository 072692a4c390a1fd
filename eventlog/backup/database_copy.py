"""Copies of SQLite files that are in use: consistent, as of one moment, while others write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from eventlog.embedded_files import BUSY_SECONDS, any_record_of, translate
from eventlog.log import Record
from eventlog.statements import named

_PAGES = 2_000  # of 4 KB, of one step; only progress is told in between
_ROWS = 500

_SQL = named("embedded.sql")


def copy_database(source: Path, target: Path, *, progress: Callable[[int, int], None] | None = None) -> None:
    """Copies a SQLite file by SQLite's own backup API. The copy is neither flushed nor in a journal.

    The source is held by one read transaction from beginning to end: the copy is what was committed when it began, and what others commit
    meanwhile cannot make it start again. In WAL mode they do not wait; the journal grows for so long.

    Arguments:
        progress: called with pages copied, and of how many.

    Raises what `translate` makes of SQLite's errors.
    """
    try:
        with closing(_opened(source, "mode=rw")) as live, closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            copy.execute("PRAGMA journal_mode = OFF")
            live.execute("BEGIN")
            live.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # from here on this is what is seen

            def tell(_: int, remaining: int, total: int) -> None:
                if progress is not None:
                    progress(total - remaining, total)

            live.backup(copy, pages=_PAGES, progress=tell)
            live.execute("COMMIT")
    except sqlite3.Error as error:
        raise translate(error, source) from error


def noted_in(path: Path) -> dict[str, str]:
    """What a copied log has noted of itself."""
    try:
        with closing(_opened(path, "mode=ro&immutable=1")) as connection:
            return dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except sqlite3.Error as error:
        raise translate(error, path) from error


def records_in(path: Path) -> Iterator[list[Record]]:
    """All records of a copied log, in order, in batches. Nothing is written beside it."""
    try:
        with closing(_opened(path, "mode=ro&immutable=1")) as connection:
            start = 0
            while rows := connection.execute(_SQL["read"], (start, 2**63 - 1, _ROWS)).fetchall():
                records = [any_record_of(row) for row in rows]
                start = records[-1].offset + 1
                yield records
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _opened(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, isolation_level=None, timeout=BUSY_SECONDS)
