"""A store's payloads in their envelopes: finds, makes and unwraps the data keys that seal and open them."""

from __future__ import annotations

import os
import time
from typing import NoReturn, Protocol

from eventlog import payload
from eventlog.errors import Corrupted, EncryptionMismatch, HistoryRemoved, KeyDestroyed, KeysUnavailable, NotFound
from eventlog.event import IN_CLEAR, CheckpointEvent, EventHeader, EventType
from eventlog.privacy.envelope import KEY_BYTES, Place
from eventlog.privacy.keys import DataKey, KeyCache, WrappedKey, is_key_of, new_key_id
from eventlog.privacy.providers.provider import KeyProvider, NoKeys
from eventlog.privacy.table import KeyTable
from eventlog.revision import JsonText

PROBE = "store"  # in the place of a checkpoint: a key that only shows whether the provider is the one that the store was made with
_PROBE_TENANT = ""  # which no tenant is called


class HeadOf(Protocol):
    """The header of a checkpoint's latest event, as of now; None when there is none."""

    def __call__(self, checkpoint_id: str) -> EventHeader | None: ...


class DataKeys:
    """The data keys of an encrypted store. Safe to share between threads.

    A key lies in memory, ready for use, for at most the cache's time; then its wrapped form is looked up again, so that a destroyed key
    is used no longer than that anywhere.
    """

    def __init__(
        self, *, table: KeyTable, provider: KeyProvider, head_of: HeadOf, owns_provider: bool = False, cache: KeyCache | None = None
    ) -> None:
        self.table = table
        self.provider = provider
        self._owns_provider = owns_provider
        self._head_of = head_of
        self.cache = KeyCache() if cache is None else cache

    def for_writing(self, checkpoint_id: str, tenant: str, *, expected: int | None, begins: bool) -> DataKey:
        """The key that seals a revision behind `expected`. A key that is made here is durable before it is returned.

        Arguments:
            begins: whether it may become a checkpoint's first event, for which a key is made.

        Raises `NotFound` when there is nothing that such a revision could follow, `KeyDestroyed`, `KeysUnavailable`.
        """
        return self.cache.get(checkpoint_id) or self._found_or_made(checkpoint_id, tenant, expected, begins)

    def unkept(self, checkpoint_id: str) -> DataKey:
        """A key that is stored nowhere, for what will not be committed."""
        return DataKey(checkpoint_id=checkpoint_id, key_id=new_key_id(checkpoint_id), key=os.urandom(KEY_BYTES))

    def is_at_hand(self, checkpoint_id: str) -> bool:
        """Whether a key of a checkpoint is in memory, so that nothing has to be waited for."""
        return self.cache.get(checkpoint_id) is not None

    def json_text(self, event: CheckpointEvent) -> bytes:
        """The JSON text of an event's payload.

        Raises `HistoryRemoved` (erased), `KeyDestroyed`, `KeysUnavailable`, `EncryptionMismatch` (in clear text), `Corrupted`.
        """
        header = event.header
        if header.encryption is None:
            raise EncryptionMismatch(header.checkpoint_id, revision=header.revision, problem=IN_CLEAR)
        if not event.salt:
            raise HistoryRemoved.erased(header.checkpoint_id, header.revision)
        key_id: str = header.encryption["key_id"]
        key = self.cache.get(header.checkpoint_id, key_id) or self._found(header, key_id)
        place = Place(
            header.tenant,
            header.checkpoint_id,
            header.revision,
            header.kind,
            header.schema_version,
            header.event_id,
            header.encoding,
            header.payload_size,
            key_id,
        )
        stored = key.unseal(place, header.encryption["nonce"], event.stored)
        return payload.json_text(header.encoding, stored, header.payload_size)

    def clear(self) -> None:
        """Forgets every key that is in memory."""
        self.cache.clear()

    @property
    def can_open(self) -> bool:
        """False in a store that was opened without keys."""
        return not isinstance(self.provider, NoKeys)

    def close(self) -> None:
        """Lets go of the keys and of the table; of the provider too, unless that is the caller's."""
        self.clear()
        self.table.close()
        if self._owns_provider:
            self.provider.close()

    def _found_or_made(self, checkpoint_id: str, tenant: str, expected: int | None, begins: bool) -> DataKey:
        # A checkpoint that is new needs no look at what others have done: were it not, both keys would be as good.
        held = self.table.of(checkpoint_id, now=not begins)
        if held:
            return self._unwrapped(held[-1])
        if begins:
            return self._made(checkpoint_id, tenant)
        head = None if expected is None else self._head_of(checkpoint_id)
        if expected is None or (head is not None and head.type == EventType.DELETED):
            # It cannot be committed; the log says what it is, a retry, a conflict or too late. A key that nobody keeps will do.
            return self.unkept(checkpoint_id)
        if head is None:
            raise NotFound(checkpoint_id)
        held = self.table.of(checkpoint_id)  # once more: the head may have come after the first look
        if held:
            return self._unwrapped(held[-1])
        if head.encryption is None:
            raise EncryptionMismatch(checkpoint_id, revision=head.revision, problem=IN_CLEAR)
        raise KeyDestroyed(checkpoint_id, revision=head.revision, key_id=head.encryption["key_id"])

    def _made(self, checkpoint_id: str, tenant: str) -> DataKey:
        wrapped, key = new_key(self.provider, checkpoint_id, tenant)
        self.table.put(wrapped)  # before anything that it seals can be committed
        made = DataKey(checkpoint_id=checkpoint_id, key_id=wrapped.key_id, key=key)
        self.cache.put(made)
        return made

    def _found(self, header: EventHeader, key_id: str) -> DataKey:
        if not is_key_of(header.checkpoint_id, key_id):
            raise Corrupted(
                f"checkpoint {header.checkpoint_id} revision {header.revision}",
                f"its payload was sealed for another checkpoint, with key {key_id}",
            )
        wrapped = self.table.get(header.checkpoint_id, key_id)
        if wrapped is None:
            raise KeyDestroyed(header.checkpoint_id, revision=header.revision, key_id=key_id)
        return self._unwrapped(wrapped)

    def _unwrapped(self, wrapped: WrappedKey) -> DataKey:
        key = unwrapped(self.provider, wrapped)
        found = DataKey(checkpoint_id=wrapped.checkpoint_id, key_id=wrapped.key_id, key=key)
        self.cache.put(found)
        return found

    def __repr__(self) -> str:
        return f"DataKeys({len(self.cache)} at hand, keys from {self.provider.source})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("data keys do not leave their process")


def new_key(provider: KeyProvider, checkpoint_id: str, tenant: str, *, key_id: str | None = None) -> tuple[WrappedKey, bytes]:
    """A new data key, wrapped and in hand."""
    key = os.urandom(KEY_BYTES)
    blank = WrappedKey(checkpoint_id, key_id or new_key_id(checkpoint_id), tenant, "", b"", time.time_ns() // 1_000_000)
    version, sealed = provider.wrap(tenant, key, blank.context)
    return blank._replace(version=version, wrapped=sealed), key


def unwrapped(provider: KeyProvider, wrapped: WrappedKey) -> bytes:
    """The data key in hand. Raises `KeysUnavailable`, `Corrupted`."""
    key = provider.unwrap(wrapped.tenant, wrapped.version, wrapped.wrapped, wrapped.context)
    if len(key) != KEY_BYTES:
        raise Corrupted(f"data key {wrapped.key_id}", f"has {len(key)} bytes, not {KEY_BYTES}")
    return key


def put_probe(table: KeyTable, provider: KeyProvider) -> None:
    """Of a new store: the key by which `require_same_keys` knows the provider again."""
    table.put(new_key(provider, PROBE, _PROBE_TENANT, key_id="probe")[0])


def require_same_keys(table: KeyTable, provider: KeyProvider) -> None:
    """Raises `KeysUnavailable` unless a provider holds the keys that the store was made with.

    Otherwise a process with another key file would write what only it could ever read.
    """
    held = table.of(PROBE)
    if not held:
        raise Corrupted(
            "the store's wrapped keys", "lack the one that every encrypted store is made with", hint="Restore them from their backup."
        )
    try:
        unwrapped(provider, held[0])
    except KeysUnavailable as error:
        raise KeysUnavailable(
            provider.source,
            f"these are not the keys that the store was made with ({error.problem})",
            hint="Name the right ones with EVENTLOG_KEYS, or put them where the store remembers them.",
        ) from error


def json_text_by(keys: DataKeys | None) -> JsonText:
    """What opens the payloads of a store with these keys, or without any."""
    return CheckpointEvent.json_text if keys is None else keys.json_text
