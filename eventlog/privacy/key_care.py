"""The care of a store's keys, as far as whoever asks may do it, and on record. What is done: `rotation.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from eventlog.errors import AuditUnavailable, ConfigurationError
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.privacy.rotation import KeyCount, Rotated, rotate, status
from eventlog.store import CheckpointStore


class KeysStatus(NamedTuple):
    """Where a store's keys are, and how many data keys each version wraps."""

    source: str
    counts: list[KeyCount]


def keys_status(store: CheckpointStore) -> KeysStatus:
    """Raises `AccessDenied`, `ConfigurationError` (not encrypted), `KeysUnavailable` or `AuditUnavailable`."""
    with store.entrusted(Operation.KEYS_STATUS) as whole:
        keys = _keys(whole)
        return KeysStatus(keys.provider.source, status(keys.table, keys.provider))


def rotate_keys(store: CheckpointStore, *, progress: Callable[[int], None] | None = None) -> Rotated:
    """See `rotation.rotate`. It is on record before the first key is unwrapped, and again with how many were wrapped anew when it is done.

    Raises `AccessDenied`, `ConfigurationError` (not encrypted), `KeysUnavailable` or `AuditUnavailable`.
    """
    with store.entrusted(Operation.KEYS_ROTATE) as whole:
        keys = _keys(whole)
        done = rotate(keys.table, keys.provider, progress=progress)
    with contextlib.suppress(AuditUnavailable):  # that it was begun is on record, and that it is done its caller must learn
        store.announce(Access(Operation.KEYS_ROTATE, target=keys.provider.source, items=done.rewrapped))
    return done


def _keys(store: CheckpointStore) -> DataKeys:
    if store.keys is None:
        raise ConfigurationError(
            "the store is not encrypted, so it has no keys", hint="A store is encrypted when it is made: `eventlog init --encrypt`."
        )
    return store.keys
