"""Where a store's archive is: a small file beside its projection, so that reads and `doctor` find it."""

from __future__ import annotations

import json
from pathlib import Path

from eventlog.errors import Corrupted, StorageError
from projections.durable import put_in_place

FILE = "archive.json"


def remember(state: Path, archive: Path) -> None:
    """Notes the archive of the store that keeps its state in a directory. Durable when it returns. Raises `StorageError`."""
    if remembered(state) == archive.absolute():
        return
    draft = state / f"{FILE}.new"
    try:
        draft.write_text(json.dumps({"directory": str(archive.absolute())}))
        put_in_place(draft, state / FILE)
    except OSError as error:
        raise StorageError(str(draft), f"cannot be written: {error.strerror}") from error


def remembered(state: Path) -> Path | None:
    """The archive that was noted last, if any; whether it is still there is not asked. Raises `Corrupted` or `StorageError`."""
    try:
        text = (state / FILE).read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(str(state / FILE), f"cannot be read: {error.strerror}") from error
    try:
        return Path(json.loads(text)["directory"])
    except (ValueError, KeyError, TypeError) as error:
        hint = "Run `eventlog archive run --to DIR` again: it writes this file."
        raise Corrupted(str(state / FILE), f"cannot be read: {error!r}", hint=hint) from error
