"""A compact and consistent copy of an open DuckDB database, as a file beside it."""

from __future__ import annotations

from pathlib import Path

import duckdb

from projections.statements import identifier, literal


def draft_of(path: Path) -> Path:
    """Where the copies of a database file are written: the only file besides its own that it may open. The caller takes turns."""
    return Path(f"{path}.snapshot")


def copy_database(connection: duckdb.DuckDBPyConnection, draft: Path) -> None:
    """Write a copy of the connection's database to `draft`, as of one moment. Raises `duckdb.Error` or `OSError`."""
    for left in (draft, Path(f"{draft}.wal")):
        left.unlink(missing_ok=True)  # of a process that was killed in here
    name = identifier(connection.execute("SELECT current_database()").fetchall()[0][0])
    connection.execute(f"ATTACH {literal(str(draft))} AS snapshot_draft")
    try:
        connection.execute(f"COPY FROM DATABASE {name} TO snapshot_draft")
    finally:
        connection.execute("DETACH snapshot_draft")
