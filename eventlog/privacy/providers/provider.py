"""The protocol of a key provider, and from the text that a store remembers to the provider that it names."""

from __future__ import annotations

from typing import NoReturn, Protocol

from eventlog.errors import InvalidRequest, KeysUnavailable

_KINDS = "file:PATH, env:NAME or pkcs11:URI"


class KeyProvider(Protocol):
    """Holds the tenants' keys, and lets them wrap data keys. What it holds never leaves it: not by repr, error or pickle.

    `context` is bound to what is wrapped: it must be the same for both ways. A version names one key of one tenant for ever.
    Methods raise `KeysUnavailable`, or `InvalidRequest` for settings that make no sense.
    """

    @property
    def source(self) -> str:
        """Where the keys are, never what they are: remembered by the store, and read again by `provider_of`."""
        ...

    def create(self) -> None:
        """Makes the first key where there is none, durably; opens it otherwise. Only a new store asks for this."""
        ...

    def open(self) -> None:
        """Gets ready. Raises `KeysUnavailable` when the keys are not there, or not readable."""
        ...

    def current(self, tenant: str) -> str:
        """The version that wraps now."""
        ...

    def wrap(self, tenant: str, key: bytes, context: bytes) -> tuple[str, bytes]:
        """A data key wrapped by the current version, and which that is."""
        ...

    def unwrap(self, tenant: str, version: str, wrapped: bytes, context: bytes) -> bytes:
        """The data key that was wrapped by a version."""
        ...

    def advance(self, tenant: str) -> None:
        """Makes a new version the current one; earlier ones go on unwrapping. A provider with one key for all moves all tenants on."""
        ...

    def close(self) -> None: ...


class NoKeys:
    """For whoever may see everything but payloads: headers, lists, chains and proofs need no key. Payloads raise `KeysUnavailable`."""

    source = "no keys"

    def create(self) -> NoReturn:
        self._refuse()

    def open(self) -> None:
        """Nothing to get ready."""

    def current(self, tenant: str) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def wrap(self, tenant: str, key: bytes, context: bytes) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def unwrap(self, tenant: str, version: str, wrapped: bytes, context: bytes) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def advance(self, tenant: str) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def close(self) -> None:
        """Nothing to let go of."""

    def _refuse(self) -> NoReturn:
        raise KeysUnavailable("the store", "was opened without keys", hint="Open it with its keys to read or write payloads.")


def provider_of(source: str) -> KeyProvider:
    """The provider that a text names, not yet open. Raises `InvalidRequest`.

    Arguments:
        source: `file:PATH[?passphrase=env:NAME]`, `env:NAME`, or
            `pkcs11:token=LABEL[;object=PREFIX]?module-path=FILE[&pin-source=env:NAME]`.
    """
    kind, _, rest = source.partition(":")
    if kind == "file" and rest:
        from eventlog.privacy.providers.key_file import KeyFile

        return KeyFile.of(rest)
    if kind == "env" and rest:
        from eventlog.privacy.providers.environment import EnvironmentKey

        return EnvironmentKey(name=rest)
    if kind == "pkcs11" and rest:
        from eventlog.privacy.providers.pkcs11 import Pkcs11Keys

        return Pkcs11Keys.of(source)
    raise InvalidRequest("keys", f"{kind!r} is no place of keys", hint=f"It is {_KINDS}.")
