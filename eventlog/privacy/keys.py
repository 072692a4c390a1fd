"""Data keys: one a checkpoint, made when its first revision is proposed, kept wrapped by the tenant's key, and here for a while.

Nothing in here can be printed, pickled or raised with a key in it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple, NoReturn

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from eventlog.privacy.envelope import NONCE_BYTES, Place, seal, unseal

CACHE_ENTRIES = 10_000  # about 1 KB each
CACHE_SECONDS = 300.0  # how long a key that was destroyed elsewhere may still be used in a process that has it

_ID_BYTES = 8
_LENGTH = Struct(">I").pack


def new_key_id(checkpoint_id: str) -> str:
    """An id for a new key of a checkpoint, from which `is_key_of` can tell whose it is."""
    chance = os.urandom(_ID_BYTES)
    return f"{chance.hex()}-{_tag(checkpoint_id, chance)}"


def is_key_of(checkpoint_id: str, key_id: str) -> bool:
    """Whether a key id was made for a checkpoint. So a payload that was copied from another one is told from one whose key is destroyed."""
    chance, _, tag = key_id.partition("-")
    try:
        return tag == _tag(checkpoint_id, bytes.fromhex(chance))
    except ValueError:
        return False


def _tag(checkpoint_id: str, chance: bytes) -> str:
    return hashlib.sha256(b"eventlog data key id 1" + chance + checkpoint_id.encode()).digest()[:_ID_BYTES].hex()


class WrappedKey(NamedTuple):
    """A data key as it is kept: encrypted by a version of its tenant's key, worth nothing without that."""

    checkpoint_id: str
    key_id: str
    tenant: str
    version: str  # of the tenant's key
    wrapped: bytes
    made_at: int  # milliseconds since 1970 UTC; for people

    @property
    def context(self) -> bytes:
        """What the wrapping is bound to, so that no wrapped key can be passed off as another one's."""
        texts = (self.tenant, self.checkpoint_id, self.key_id)
        return b"eventlog data key 1" + b"".join(_LENGTH(len(each.encode())) + each.encode() for each in texts)


class DataKey:
    """One checkpoint's data key, ready for use. Safe to share between threads."""

    __slots__ = ("_cipher", "checkpoint_id", "key_id")

    def __init__(self, *, checkpoint_id: str, key_id: str, key: bytes) -> None:
        self.checkpoint_id = checkpoint_id
        self.key_id = key_id
        self._cipher = AESGCM(key)

    def seal(self, fields: dict[str, Any], stored: bytes) -> bytes:
        """Seals a payload for the place that an event's header fields name, and writes into them how."""
        nonce = os.urandom(NONCE_BYTES)
        fields["encryption"] = {"key_id": self.key_id, "nonce": nonce}
        place = Place(
            fields["tenant"],
            fields["checkpoint_id"],
            fields["revision"],
            fields["kind"],
            fields["schema_version"],
            fields["event_id"],
            fields["encoding"],
            fields["payload_size"],
            self.key_id,
        )
        return seal(self._cipher, nonce, place, stored)

    def unseal(self, place: Place, nonce: bytes, sealed: bytes) -> bytes:
        """The stored payload. Raises `Corrupted`."""
        return unseal(self._cipher, nonce, place, sealed)

    def __repr__(self) -> str:
        return f"DataKey({self.key_id} of checkpoint {self.checkpoint_id})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a data key does not leave its process")


class KeyCache:
    """The data keys that were used last, at most `entries` of them, none for longer than `seconds` after it was unwrapped."""

    def __init__(
        self, *, entries: int = CACHE_ENTRIES, seconds: float = CACHE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entries = entries
        self._seconds = seconds
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, dict[str, DataKey]]] = OrderedDict()  # by checkpoint
        self._lock = threading.Lock()

    def get(self, checkpoint_id: str, key_id: str | None = None) -> DataKey | None:
        """A checkpoint's key of an id; any of its keys when that is None."""
        with self._lock:
            held = self._held.get(checkpoint_id)
            if held is None:
                return None
            ends, keys = held
            if self._clock() >= ends:
                del self._held[checkpoint_id]
                return None
            self._held.move_to_end(checkpoint_id)
            return next(iter(keys.values())) if key_id is None else keys.get(key_id)

    def put(self, key: DataKey) -> None:
        with self._lock:
            ends, keys = self._held.pop(key.checkpoint_id, (0.0, {}))
            now = self._clock()
            if now >= ends:
                ends, keys = now + self._seconds, {}
            self._held[key.checkpoint_id] = (ends, {**keys, key.key_id: key})
            while len(self._held) > self._entries:
                self._held.popitem(last=False)

    def forget(self, checkpoint_id: str) -> None:
        """Lets go of a checkpoint's keys at once."""
        with self._lock:
            self._held.pop(checkpoint_id, None)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()

    def __len__(self) -> int:
        return len(self._held)
