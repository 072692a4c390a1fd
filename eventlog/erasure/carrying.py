"""A copy of a register that is carried to a store that was restored from a backup."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple, Self

from eventlog.erasure.applying import Applied, apply_register, require_register
from eventlog.erasure.register import Register, register_of
from eventlog.errors import ConfigurationError, InvalidRequest, StorageError
from eventlog.store import CheckpointStore
from projections.durable import make_directory, put_in_place

_HINT = "Give the newest copy of the register that there is."


class RegisterMark(NamedTuple):
    """How far a register was when something was copied: a later one must contain it."""

    lines: int
    hash: str | None  # of the last of them; None: there was none

    @classmethod
    def of(cls, store: CheckpointStore) -> Self:
        """Where a store's own register is now. Raises `Corrupted` or `StorageError`."""
        entries = register_of(store.log.directory, store.log.identity.store_id).entries()
        return cls(len(entries), entries[-1].hash if entries else None)


def given_register(path: Path, store_id: str, *, since: RegisterMark) -> Register:
    """A register as somebody gives it, checked to its last byte.

    Arguments:
        store_id: of the store that it must be the register of.
        since: what it must contain at least.

    Raises `InvalidRequest` (there is none, or nothing in it), `Corrupted`, `ConfigurationError` (it is older than `since`), `StorageError`.
    """
    register = Register(path=path, store_id=store_id)
    entries = register.entries()
    if not entries:
        raise InvalidRequest("erasure register", f"{path} is missing, or there is nothing in it", hint=_HINT)
    if not path.read_bytes().endswith(b"\n"):
        raise InvalidRequest("erasure register", f"{path} was cut: its last line is not whole", hint=_HINT)
    if len(entries) < since.lines or (since.lines and entries[since.lines - 1].hash != since.hash):
        what = f"{path} has {len(entries)} lines, and is not a continuation of the {since.lines} that there were at the backup"
        raise ConfigurationError(what, hint=_HINT)
    return register


def carry_register(given: Register, store: CheckpointStore) -> Applied:
    """Makes a copy of a register that of a restored store, which nobody else can open yet, and erases all that it names.

    A store of the same id gets the lines, and the certificates that lie beside them. One with an id of its own, as a new topic has, gets
    one line that takes over what they name. Raises as `apply_register` does.
    """
    own = register_of(store.log.directory, store.log.identity.store_id)
    entries = given.entries()
    if all(entry.store_id == store.log.identity.store_id for entry in entries):
        _copy(given, own)
    else:
        own.append("adopted", entries[-1].hash, checkpoints=given.erased())
    require_register(store)
    return apply_register(store)


def _copy(given: Register, own: Register) -> None:
    try:
        _put(given.path, own.path)
        for name in {f"{entry.certificate}.json" for entry in given.entries() if entry.certificate is not None}:
            if (given.certificates / name).exists():
                make_directory(own.certificates)
                _put(given.certificates / name, own.certificates / name)
    except OSError as error:
        raise StorageError(str(error.filename or own.path), f"cannot be copied: {error.strerror}") from error


def _put(source: Path, target: Path) -> None:
    draft = Path(f"{target}.new")
    shutil.copyfile(source, draft)
    put_in_place(draft, target)
