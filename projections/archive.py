"""Segments of an archive: Parquet files of revisions, written and read through DuckDB, with no database.

A segment is only rows here; what makes it part of an archive, and what shows that it is unchanged, is decided above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

from projections.errors import ProjectionError
from projections.rows import RevisionRow
from projections.staging import text_of_labels, text_of_usage
from projections.statements import literal, named

_ARCHIVE = named("archive.sql")
_FETCHED = 256  # rows at a time: of 8 MB at most, and of far less together in a segment


class ArchivedEvent(NamedTuple):
    """A revision's place, the log's clock (milliseconds since 1970 UTC) and its exact event."""

    offset: int
    recorded_at: int
    event: bytes


def write_segment(rows: Sequence[RevisionRow], draft: Path) -> None:
    """Write rows, in the order of their offsets, to a new Parquet file. Needs memory for about three times the events' bytes.

    Args:
        rows: of one partition, each with its event.
        draft: the file, replaced if it is there. It is neither flushed nor given another name.

    Raises:
        ProjectionError: the file could not be written.
    """
    with _connection(draft) as connection:
        connection.execute(_ARCHIVE["create"])
        with connection.appender("segment") as appender:
            appender.append_rows([(*row[:14], text_of_labels(row.labels), text_of_usage(row.usage), *row[16:]) for row in rows])
        connection.execute(_ARCHIVE["write"].replace("/* file */", literal(str(draft))))


def read_segment(file: Path, *, start: int = 0) -> Iterator[RevisionRow]:
    """Yield the rows of a segment in the order of the file, from offset `start` on. Raises `ProjectionError` when it cannot be read."""
    with _connection(file) as connection:
        connection.execute(_ARCHIVE["read"], {"file": _exactly(file), "start": start})
        while rows := connection.fetchmany(_FETCHED):
            yield from map(RevisionRow._make, rows)


def pick(file: Path, offsets: Sequence[int]) -> list[ArchivedEvent]:
    """Return the events at some offsets of a segment. Raises `ProjectionError` when it cannot be read."""
    with _connection(file) as connection:
        where = {"file": _exactly(file), "offsets": list(offsets), "first": min(offsets), "last": max(offsets)}
        return [ArchivedEvent._make(row) for row in connection.execute(_ARCHIVE["pick"], where).fetchall()]


def holds(file: Path, ids: Sequence[str]) -> bool:
    """Return whether a segment has a revision of any of some checkpoints. Raises `ProjectionError` when it cannot be read."""
    with _connection(file) as connection:
        return bool(connection.execute(_ARCHIVE["holds"], {"file": _exactly(file), "ids": list(ids)}).fetchall()[0][0])


@contextmanager
def _connection(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": "512MB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    except duckdb.Error as error:
        raise ProjectionError(f"{file}: {str(error).strip()}") from error
    finally:
        connection.close()


def _exactly(file: Path) -> str:
    """A path in which nothing stands for something else: DuckDB takes file names as patterns."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in str(file))
