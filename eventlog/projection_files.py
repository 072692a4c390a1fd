"""The files that a projection consists of, in the directory of its store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from projections.engine import Projection
from projections.snapshot import snapshot

PROJECTION_FILE = "projection.duckdb"
SNAPSHOT_FILE = "snapshot.duckdb"


def rewritten(projection: Projection, directory: Path, work: Callable[[Projection], None]) -> list[Path]:
    """Does some work on a projection, then writes anew whatever is made of it in a directory; returns the files.

    For whoever sees to it that nothing else changes it. DuckDB leaves deleted rows in free pages, and in its journal, until then.
    """
    work(projection)
    projection.compact()
    discard_file(directory / f"rebuild-{PROJECTION_FILE}")  # of a process that was killed over it
    last = directory / SNAPSHOT_FILE
    if not last.exists():
        return [directory / PROJECTION_FILE]
    snapshot(projection, last)
    return [directory / PROJECTION_FILE, last]


def discard_file(path: Path) -> None:
    """Removes a projection's file and journal, not its lock."""
    for each in path.parent.glob(f"{path.name}*"):
        if not each.name.endswith(".lock"):
            each.unlink(missing_ok=True)
