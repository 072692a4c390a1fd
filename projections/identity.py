"""Whose projection a file is: pinned when the file is made, checked whenever it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import duckdb

from projections.errors import ProjectionForeign
from projections.statements import script

FORMAT_VERSION = 3  # of tables.sql and views.sql
# A file of an earlier version is brought up to date where it is: on Kafka it may hold history that the topic no longer has.
_UPGRADES = {1: "upgrade_from_1.sql", 2: "upgrade_from_2.sql"}


class Identity(NamedTuple):
    """What must be the same for two files to hold the same projection."""

    store_id: str
    partitions: int
    keep_events: bool


def require_identity(writer: duckdb.DuckDBPyConnection, identity: Identity, path: Path | None) -> None:
    """Create the tables of a new file, or check those of an existing one. Raises `ProjectionForeign`."""
    tables = {row[0] for row in writer.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()}
    if not tables:
        _create(writer, identity)
    elif "meta" not in tables:
        raise ProjectionForeign(path, "a projection", "tables of another kind")
    else:
        _upgrade(writer, path)
        _check(writer, identity, path)


def _create(writer: duckdb.DuckDBPyConnection, identity: Identity) -> None:
    writer.begin()
    try:
        writer.execute(script("tables.sql"))
        writer.execute(script("views.sql"))
        writer.execute(
            "INSERT INTO meta VALUES (?, ?, ?, ?, now())", [FORMAT_VERSION, identity.store_id, identity.partitions, identity.keep_events]
        )
        writer.execute("INSERT INTO positions SELECT range, 0 FROM range(?)", [identity.partitions])
    except BaseException:
        writer.rollback()
        raise
    writer.commit()


def _upgrade(writer: duckdb.DuckDBPyConnection, path: Path | None) -> None:
    """Bring a file of an earlier format up to this one, version by version, each in one transaction. Others are left to `_check`."""
    while upgrade := _UPGRADES.get(_format_version(writer, path)):
        writer.begin()
        try:
            writer.execute(script(upgrade))
        except BaseException:
            writer.rollback()
            raise
        writer.commit()


def _format_version(writer: duckdb.DuckDBPyConnection, path: Path | None) -> int:
    versions = writer.execute("SELECT format_version FROM meta").fetchall()
    if len(versions) != 1:
        raise ProjectionForeign(path, f"format version {FORMAT_VERSION}", "format version unknown")
    return int(versions[0][0])


def _check(writer: duckdb.DuckDBPyConnection, identity: Identity, path: Path | None) -> None:
    version = _format_version(writer, path)
    if version != FORMAT_VERSION:
        raise ProjectionForeign(path, f"format version {FORMAT_VERSION}", f"format version {version}")
    found = Identity(*writer.execute("SELECT store_id, partitions, keep_events FROM meta").fetchall()[0])
    for name, expected_value, found_value in zip(Identity._fields, identity, found, strict=True):
        if expected_value != found_value:
            raise ProjectionForeign(path, f"{name} {expected_value!r}", f"{name} {found_value!r}")
