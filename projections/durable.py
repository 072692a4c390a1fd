"""Files that are there whole, or not at all, whatever dies in between."""

from __future__ import annotations

import os
from pathlib import Path


def put_in_place(draft: Path, target: Path) -> None:
    """Give a finished file its name, replacing what has it. Its content is flushed before the name is given, the name before it returns."""
    fsync_file(draft)
    os.replace(draft, target)
    fsync_directory(target.parent)


def fsync_directory(directory: Path) -> None:
    """Make a rename in `directory` survive a power loss."""
    fsync_file(directory)


def fsync_file(path: Path) -> None:
    """Make what was written to a file survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Make a directory, and its parents where they are missing, each of them to survive a power loss. Harmless when it is there."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for each in missing:
        fsync_directory(each.parent)
