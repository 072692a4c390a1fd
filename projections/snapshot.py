"""A copy of a projection that notebooks and second processes open while the owner goes on writing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from projections.copying import copy_database, draft_of
from projections.database import translated
from projections.durable import put_in_place
from projections.engine import Projection
from projections.errors import ProjectionError


def snapshot(projection: Projection, target: Path) -> None:
    """Write a consistent copy of an open projection to `target`, replacing what is there, while reads and batches go on.

    A process that has an older snapshot of the same name open keeps the old content until it detaches and attaches again.

    Args:
        projection: open, and with a file of its own.
        target: a file in a directory of the same file system.

    Raises:
        ProjectionError: the projection is in memory, or DuckDB could not write the copy.
        OSError: the file could not be put in its place.
    """
    with _copied(projection) as draft:
        put_in_place(draft, target)


def export(projection: Projection, target: Path) -> None:
    """Write a consistent copy of an open projection to a new file anywhere, while reads and batches go on. It is not flushed.

    Raises:
        ProjectionError: the projection is in memory, or DuckDB could not write the copy.
        OSError: the file could not be written.
    """
    with _copied(projection) as draft:
        shutil.copyfile(draft, target)
        draft.unlink()


@contextmanager
def _copied(projection: Projection) -> Iterator[Path]:
    """A copy beside the projection, which nobody has open; one at a time."""
    if projection.path is None:
        raise ProjectionError("a projection in memory cannot be snapshotted")
    draft = draft_of(projection.path)
    with projection.snapshot_lock, projection.cursor() as cursor:
        try:
            copy_database(cursor.connection, draft)
        except duckdb.Error as error:
            raise translated(error, projection.path) from error
        yield draft


def private_copy(source: Path, directory: Path) -> Path:
    """Copy a snapshot into a directory of one's own, to open it there as a `Projection` and follow the log from its positions.

    Only for a file that no DuckDB in this process has open: a plain copy of one would drop the process's lock on it.

    Args:
        source: a snapshot.
        directory: where the copy goes, under the same name; created if absent.

    Returns:
        The path of the copy.

    Raises:
        OSError: a file could not be read or written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f"{source.name}.copying"
    shutil.copyfile(source, draft)
    put_in_place(draft, directory / source.name)
    return directory / source.name
