"""Master keys by version, from which every tenant's key is derived: for providers that have the keys' bytes in hand.

Derived, not made one by one: a new tenant then needs no change of a file, and machines that share a store cannot come to differ in it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from eventlog.errors import KeysUnavailable
from eventlog.privacy.envelope import KEY_BYTES, NONCE_BYTES


class MasterKeys:
    """Versions 1, 2, ...: the highest wraps, all unwrap. Safe to share between threads."""

    def __init__(self, *, source: str, keys: Mapping[int, bytes]) -> None:
        self.source = source
        self.current = max(keys)
        self._keys = dict(keys)
        self._tenants: dict[tuple[int, str], AESGCM] = {}
        self._lock = threading.Lock()

    @property
    def versions(self) -> frozenset[int]:
        return frozenset(self._keys)

    def wrap(self, tenant: str, key: bytes, context: bytes) -> tuple[str, bytes]:
        """See `KeyProvider.wrap`."""
        nonce = os.urandom(NONCE_BYTES)
        return str(self.current), nonce + self._tenants_key(self.current, tenant).encrypt(nonce, key, context)

    def unwrap(self, tenant: str, version: str, wrapped: bytes, context: bytes) -> bytes:
        """See `KeyProvider.unwrap`."""
        number = int(version) if version.isascii() and version.isdigit() else -1
        if number not in self._keys:
            raise KeysUnavailable(
                self.source,
                f"has no version {version[:40]!r} of the key of tenant {tenant}; it has {', '.join(map(str, sorted(self._keys)))}",
            )
        try:
            return self._tenants_key(number, tenant).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], context)
        except (InvalidTag, ValueError) as error:
            raise wrong_key(self.source, tenant, version) from error

    def _tenants_key(self, version: int, tenant: str) -> AESGCM:
        with self._lock:
            found = self._tenants.get((version, tenant))
            if found is None:
                derived = HKDF(SHA256(), KEY_BYTES, salt=None, info=b"eventlog tenant key 1\x00" + tenant.encode())
                found = self._tenants[version, tenant] = AESGCM(derived.derive(self._keys[version]))
            return found

    def __repr__(self) -> str:
        return f"MasterKeys({self.source}, current {self.current})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys do not leave their process")


def wrong_key(source: str, tenant: str, version: str) -> KeysUnavailable:
    """The error of a key that does not open what it is said to have wrapped."""
    return KeysUnavailable(
        source,
        f"version {version} of the key of tenant {tenant} does not open the wrapped data key: it is another key, or that was altered",
        hint="Name the keys that the store was made with (EVENTLOG_KEYS), or restore the store's wrapped keys from a backup.",
    )
