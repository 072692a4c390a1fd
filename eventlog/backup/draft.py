"""A directory that is there whole, under its name, or not at all, whatever dies in between."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from eventlog.errors import ConfigurationError, StorageError
from projections.durable import fsync_directory, fsync_file, make_directory

SUFFIX = "part"


def require_free(target: Path) -> None:
    """Raises `ConfigurationError` unless nothing is there, or an empty directory."""
    try:
        taken = target.exists() and not (target.is_dir() and not any(target.iterdir()))
    except OSError as error:
        raise StorageError(str(target), f"cannot be read: {error.strerror}") from error
    if taken:
        raise ConfigurationError(f"{target} is there already, and not an empty directory", hint="Choose a new or empty directory.")


@contextlib.contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """A directory beside the target, to be filled. It gets the target's name when the block ends, durably, with all that is in it.

    When the block raises, it is removed; of a process that was killed it stays, as `NAME.<16 digits>.part`, until the next draft of the
    same name. Raises `ConfigurationError` when the target is taken, `StorageError`.
    """
    require_free(target)
    try:
        make_directory(target.absolute().parent)
        draft, lock = _locked_draft(target.absolute())
    except OSError as error:
        raise StorageError(str(target), f"cannot be made: {error.strerror}") from error
    try:
        yield draft
        _publish(draft, target.absolute())
    except OSError as error:
        raise StorageError(str(error.filename or target), f"cannot be read or written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # nothing is there any more when it has got its name
        os.close(lock)


def _locked_draft(target: Path) -> tuple[Path, int]:
    """A new draft, with the lock that shows that somebody is at work in it; and those of dead processes are removed."""
    parent = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)  # between the making of a draft and its lock, nobody looks for dead ones
        _remove_dead(target)
        draft = target.with_name(f"{target.name}.{secrets.token_hex(8)}.{SUFFIX}")
        draft.mkdir()
        lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return draft, lock
    finally:
        os.close(parent)


def _remove_dead(target: Path) -> None:
    is_draft = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{16}}\.{SUFFIX}").fullmatch
    for each in target.parent.iterdir():
        if not is_draft(each.name):
            continue
        lock = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(each)
        except BlockingIOError:
            pass  # somebody is at work in it
        finally:
            os.close(lock)


def _publish(draft: Path, target: Path) -> None:
    """Everything is on the disk before the name is given, and the name before this returns."""
    for folder, _, files in os.walk(draft, topdown=False):
        for name in files:
            fsync_file(Path(folder) / name)
        fsync_directory(Path(folder))
    try:
        os.rename(draft, target)  # onto an empty directory too, which it replaces
    except OSError as error:
        if target.exists():
            raise ConfigurationError(f"{target} was made by somebody else meanwhile", hint="Choose a new or empty directory.") from error
        raise
    fsync_directory(target.parent)
