"""Keys in an environment variable: for places that hand secrets over so."""

from __future__ import annotations

import base64
import binascii
import os
import re
from typing import NoReturn

from eventlog.errors import InvalidRequest, KeysUnavailable
from eventlog.privacy.envelope import KEY_BYTES
from eventlog.privacy.providers.master_keys import MasterKeys

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}").fullmatch
_FORM = "It holds 32 random bytes in base64 (`openssl rand -base64 32`); later versions behind a comma, each as NUMBER:KEY."


class EnvironmentKey:
    """The variable `name`: `KEY`, or `1:KEY,2:KEY`, each 32 bytes in base64. The highest version wraps.

    Nothing is written: a new version is put into the variable by whoever sets it, in every process that uses the store.
    """

    def __init__(self, *, name: str) -> None:
        if not _NAME(name):
            raise InvalidRequest("keys", f"{name[:40]!r} is no name of an environment variable")
        self._name = name
        self._keys: MasterKeys | None = None

    @property
    def source(self) -> str:
        return f"env:{self._name}"

    def create(self) -> None:
        """See `KeyProvider.create`. The variable must be set already."""
        self.open()

    def open(self) -> None:
        """See `KeyProvider.open`."""
        text = os.environ.get(self._name)
        if not text:
            raise KeysUnavailable(self.source, "the variable is not set", hint=_FORM)
        self._keys = MasterKeys(source=self.source, keys=self._parsed(text))

    def current(self, tenant: str) -> str:  # noqa: ARG002 - one key for all
        """See `KeyProvider.current`."""
        return str(self._opened().current)

    def wrap(self, tenant: str, key: bytes, context: bytes) -> tuple[str, bytes]:
        """See `KeyProvider.wrap`."""
        return self._opened().wrap(tenant, key, context)

    def unwrap(self, tenant: str, version: str, wrapped: bytes, context: bytes) -> bytes:
        """See `KeyProvider.unwrap`."""
        return self._opened().unwrap(tenant, version, wrapped, context)

    def advance(self, tenant: str) -> NoReturn:  # noqa: ARG002
        """See `KeyProvider.advance`. Only whoever sets the variable can."""
        raise KeysUnavailable(
            self.source,
            f"holds no version behind {self._opened().current}",
            hint=f"Put a new version into the variable, in every process that uses the store, then rotate. {_FORM}",
        )

    def close(self) -> None:
        """See `KeyProvider.close`."""
        self._keys = None

    def _opened(self) -> MasterKeys:
        if self._keys is None:
            raise KeysUnavailable(self.source, "is not open")
        return self._keys

    def _parsed(self, text: str) -> dict[int, bytes]:
        """Says what is wrong with the variable, never what it holds."""
        keys: dict[int, bytes] = {}
        for number, part in enumerate(text.split(","), 1):
            version, colon, encoded = part.strip().rpartition(":")
            if colon and not (version.isascii() and version.isdigit() and 0 < int(version) < 2**31):
                raise KeysUnavailable(self.source, f"entry {number} does not begin with a version number", hint=_FORM)
            try:
                key = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                raise KeysUnavailable(self.source, f"entry {number} is not base64", hint=_FORM) from None
            if len(key) != KEY_BYTES:
                raise KeysUnavailable(self.source, f"entry {number} has {len(key)} bytes, not {KEY_BYTES}", hint=_FORM)
            if keys.setdefault(int(version) if colon else 1, key) is not key:
                raise KeysUnavailable(self.source, f"entry {number} repeats a version", hint=_FORM)
        return keys

    def __repr__(self) -> str:
        return f"EnvironmentKey({self._name})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys do not leave their process")
