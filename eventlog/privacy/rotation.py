"""Wraps every data key anew by a new version of its tenant's key. The log is not touched, and reading and writing go on meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from eventlog.privacy.data_keys import unwrapped
from eventlog.privacy.keys import WrappedKey
from eventlog.privacy.providers.provider import KeyProvider
from eventlog.privacy.table import KeyTable

BATCH = 500  # keys of one durable write


class KeyCount(NamedTuple):
    """How many data keys of a tenant a version of its key wraps. The tenant of the store's own key is empty."""

    tenant: str
    version: str
    current: bool
    keys: int


class Rotated(NamedTuple):
    """What a rotation did."""

    rewrapped: int
    new_version: bool  # False: it finished one that had been begun before


def status(table: KeyTable, provider: KeyProvider) -> list[KeyCount]:
    """How many keys each version wraps, by tenant. Raises `KeysUnavailable`."""
    counted = Counter((key.tenant, key.version) for key in table.all())
    current = {tenant: provider.current(tenant) for tenant, _ in counted}
    return [KeyCount(tenant, version, version == current[tenant], keys) for (tenant, version), keys in sorted(counted.items())]


def rotate(table: KeyTable, provider: KeyProvider, *, progress: Callable[[int], None] | None = None) -> Rotated:
    """Makes a new version of every tenant's key and wraps all data keys by it.

    Killed at any instruction it can be started again: while any key is wrapped by an earlier version, it goes on with those, and makes no
    new version. A key that is destroyed meanwhile stays destroyed.

    Arguments:
        progress: called with the number of keys that were wrapped anew so far.

    Raises `KeysUnavailable` when a key cannot be unwrapped, or no new version be made; what was done until then stays done.
    """
    counts = status(table, provider)
    fresh = all(count.current for count in counts)
    if fresh:
        for tenant, before in {count.tenant: count.version for count in counts}.items():
            if provider.current(tenant) == before:  # otherwise one key is for all, and was moved on with the first
                provider.advance(tenant)
    done = 0
    stale = True
    while stale:  # again until nothing is left: another process may have used the earlier version until a moment ago
        stale = False
        keys = _stale(table, provider)
        while batch := list(islice(keys, BATCH)):
            stale = True
            done += table.replace([(key, _rewrapped(provider, key)) for key in batch])
            if progress is not None:
                progress(done)
    return Rotated(done, fresh)


def _stale(table: KeyTable, provider: KeyProvider) -> Iterator[WrappedKey]:
    current: dict[str, str] = {}
    for key in table.all():
        if key.tenant not in current:
            current[key.tenant] = provider.current(key.tenant)
        if key.version != current[key.tenant]:
            yield key


def _rewrapped(provider: KeyProvider, key: WrappedKey) -> WrappedKey:
    version, wrapped = provider.wrap(key.tenant, unwrapped(provider, key), key.context)
    return key._replace(version=version, wrapped=wrapped)
