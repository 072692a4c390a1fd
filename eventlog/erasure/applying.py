"""The register held against a store that was restored, or rebuilt: what was erased once is erased again before anybody reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eventlog.erasure.ending import end_all
from eventlog.erasure.erasing import visit_all
from eventlog.erasure.noting import applied, note_applied
from eventlog.erasure.register import Register, register_of
from eventlog.errors import ConfigurationError
from eventlog.privacy.principals import Operation
from eventlog.store import CheckpointStore

ACTOR = "erasure register"  # of DELETED events that an older backup lacks


class Applied(NamedTuple):
    """What applying the register did."""

    registered: int  # checkpoints in the register
    present: int  # of them, those that the log knows
    emptied: int  # payloads, keys and archived bodies that were there again


def require_register(store: CheckpointStore) -> Register:
    """The store's register of erasures, every line of it checked.

    Raises `ConfigurationError` when the log has gone through more erasures than the register has (the register is missing, or an older
    one), `Corrupted` or `StorageError`.
    """
    with store.entrusted(Operation.ERASE_STATUS) as whole:
        return _register(whole)


def _register(store: CheckpointStore) -> Register:
    register = register_of(store.log.directory, store.log.identity.store_id)
    certified = sum(entry.kind == "certified" for entry in register.entries())
    noted = applied(store) or 0
    if certified < noted:
        raise ConfigurationError(
            f"{register.path} has {certified} erasures where the log has gone through {noted}: it is missing, or an older one",
            hint="Put the newest register back. Without it, nothing shows what an older backup must not bring back.",
        )
    return register


def is_behind(store: CheckpointStore) -> bool:
    """Whether an embedded log has yet to go through erasures that the register has: it was restored from an older backup."""
    register = register_of(store.log.directory, store.log.identity.store_id)
    if not register.path.exists():
        return False
    certified = sum(entry.kind == "certified" for entry in register.entries())
    noted = applied(store)
    return noted is not None and noted < certified


def apply_register(store: CheckpointStore, *, archives: Sequence[Path] = ()) -> Applied:
    """Erases whatever the register names and the store has again. Harmless when there is nothing. May be killed and started again.

    Checkpoints that the log knows get their DELETED event, if they lack it. Of one that it does not know, the store's own check keeps it
    from being made anew. `open_store` calls this for a directory whose log is older than its register.

    Raises as `erase` does.
    """
    with store.entrusted(Operation.ERASE) as whole:
        return _applied_to(whole, archives)


def _applied_to(store: CheckpointStore, archives: Sequence[Path]) -> Applied:
    register = register_of(store.log.directory, store.log.identity.store_id)
    with register.locked():
        entries = register.entries()
        erased = {key for entry in entries for key in entry.checkpoints}
        present = [each for each in sorted(erased) if store.log.place(each, at_least=None) is not None]
        emptied = 0
        if present:
            end_all(store, present, actor=ACTOR)
            emptied = sum(place.erased for place in visit_all(store, present, archives) if place.place != "memory")
        note_applied(store, sum(entry.kind == "certified" for entry in entries))
        return Applied(len(erased), len(present), emptied)
