"""Keys in a token (HSM) behind PKCS#11: made in there, not extractable; wrapping and unwrapping happen in there too."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl, quote, unquote

from eventlog.errors import ConfigurationError, InvalidRequest, KeysUnavailable
from eventlog.privacy.envelope import NONCE_BYTES, TAG_BYTES
from eventlog.privacy.providers.master_keys import wrong_key
from eventlog.privacy.providers.pkcs11_session import TokenSession, release, take

PIN_VARIABLE = "EVENTLOG_PKCS11_PIN"
_FORM = "pkcs11:token=LABEL[;object=PREFIX]?module-path=/path/to/module.so[&pin-source=env:NAME]"
_ID_BYTES = 8


class _Version(NamedTuple):
    """One key of a tenant: its number, and the id that tells it from one that another process made at the same moment."""

    number: int
    id: bytes

    def __str__(self) -> str:
        return f"{self.number}/{self.id.hex()}"


class Pkcs11Keys:
    """A tenant's keys are AES-256 keys in a token, labelled `PREFIX:TENANT:NUMBER`, made when the tenant first needs one.

    Arguments:
        token: the token's label.
        module: the library of the token's maker.
        prefix: of the keys' labels.
        pin_env: the environment variable with the user's PIN.
    """

    def __init__(self, *, token: str, module: Path, prefix: str = "eventlog", pin_env: str = PIN_VARIABLE) -> None:
        self._token = token
        self._module = module
        self._prefix = prefix
        self._pin_env = pin_env
        self._held: TokenSession | None = None
        self._keys: dict[str, dict[str, Any]] = {}  # by tenant and version

    @classmethod
    def of(cls, uri: str) -> Pkcs11Keys:
        """From a URI in the manner of RFC 7512. Raises `InvalidRequest`; a PIN in it is refused, for it would be remembered."""
        path, _, query = uri.removeprefix("pkcs11:").partition("?")
        pairs = [part.partition("=")[::2] for part in path.split(";") if part]
        attributes = {name: unquote(value) for name, value in pairs}
        settings = dict(parse_qsl(query))
        if "pin-value" in settings or "pin-value" in attributes:
            raise InvalidRequest("keys", "a PIN in the URI would be remembered by the store", hint=f"Name a variable: {_FORM}")
        unknown = {*attributes} - {"token", "object"} | {*settings} - {"module-path", "pin-source"}
        pin = settings.get("pin-source", f"env:{PIN_VARIABLE}")
        if unknown or not attributes.get("token") or not settings.get("module-path") or not pin.startswith("env:"):
            what = f"{min(unknown)!r} is not known here" if unknown else "the token, its module or the PIN's variable is missing"
            raise InvalidRequest("keys", f"{what} in the PKCS#11 URI", hint=f"It looks like {_FORM}")
        module = Path(settings["module-path"])
        prefix = attributes.get("object", "eventlog")
        return cls(token=attributes["token"], module=module, prefix=prefix, pin_env=pin.removeprefix("env:"))

    @property
    def source(self) -> str:
        where = f"token={quote(self._token)};object={quote(self._prefix)}"
        return f"pkcs11:{where}?module-path={quote(str(self._module))}&pin-source=env:{self._pin_env}"

    def create(self) -> None:
        """See `KeyProvider.create`. The token must be there; keys are made in it as tenants need them."""
        self.open()

    def open(self) -> None:
        """See `KeyProvider.open`."""
        if self._held is not None:
            return
        try:
            import pkcs11  # noqa: F401 - an optional extra
        except ImportError as error:
            raise ConfigurationError(
                "the keys are in a PKCS#11 token, for which python-pkcs11 is needed", hint="pip install 'eventlog-checkpoints[pkcs11]'"
            ) from error
        pin = os.environ.get(self._pin_env)
        if not pin:
            raise KeysUnavailable(self.source, f"the variable {self._pin_env} is not set", hint="Set it to the user's PIN of the token.")
        with self._told():
            self._held = take(self._module, self._token, pin)

    def current(self, tenant: str) -> str:
        """See `KeyProvider.current`."""
        with self._at_the_token():
            return str(self._current(tenant)[0])

    def wrap(self, tenant: str, key: bytes, context: bytes) -> tuple[str, bytes]:
        """See `KeyProvider.wrap`. The first time for a tenant, its key is made."""
        from pkcs11 import Mechanism

        nonce = os.urandom(NONCE_BYTES)
        with self._at_the_token():
            version, held = self._current(tenant)
            sealed = held.encrypt(key, mechanism=Mechanism.AES_GCM, mechanism_param=_gcm(nonce, context))
        return str(version), nonce + bytes(sealed)

    def unwrap(self, tenant: str, version: str, wrapped: bytes, context: bytes) -> bytes:
        """See `KeyProvider.unwrap`."""
        from pkcs11 import GeneralError, Mechanism, PKCS11Error

        with self._at_the_token():
            held = self._keys.get(tenant, {}).get(version) or self._found(tenant).get(version)
            if held is None:
                raise KeysUnavailable(self.source, f"the token holds no version {version[:40]!r} of the key of tenant {tenant}")
            nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
            try:
                return bytes(held.decrypt(sealed, mechanism=Mechanism.AES_GCM, mechanism_param=_gcm(nonce, context)))
            except PKCS11Error as error:
                # Tokens differ in how they say that the tag is wrong; SoftHSM has but a general error for it.
                if isinstance(error, GeneralError) or "Encrypted" in type(error).__name__ or "Data" in type(error).__name__:
                    raise wrong_key(self.source, tenant, version) from error
                raise

    def advance(self, tenant: str) -> None:
        """See `KeyProvider.advance`."""
        with self._at_the_token():
            found = self._found(tenant)
            self._make(tenant, max((_version(each).number for each in found), default=0) + 1)

    def close(self) -> None:
        """See `KeyProvider.close`."""
        held, self._held = self._held, None
        self._keys.clear()
        if held is not None:
            release(held)

    def _current(self, tenant: str) -> tuple[str, Any]:
        """The highest version; of two with that number, made by two processes at once, the same one for both."""
        found = self._found(tenant)
        if not found:
            self._make(tenant, 1)
            found = self._found(tenant)
        newest = max(found, key=_version)
        return newest, found[newest]

    @property
    def _session(self) -> Any:
        if self._held is None:
            raise KeysUnavailable(self.source, "is not open")
        return self._held.session

    @contextlib.contextmanager
    def _at_the_token(self) -> Iterator[None]:
        held = self._held
        if held is None:
            raise KeysUnavailable(self.source, "is not open")
        with self._told(), held.lock:
            yield

    def _found(self, tenant: str) -> dict[str, Any]:
        from pkcs11 import Attribute, ObjectClass

        start = f"{self._prefix}:{tenant}:"
        found: dict[str, Any] = {}
        for each in self._session.get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY}):
            number = each.label.removeprefix(start) if each.label.startswith(start) else ""
            if number.isascii() and number.isdigit():
                found[str(_Version(int(number), each.id))] = each
        self._keys[tenant] = found
        return found

    def _make(self, tenant: str, number: int) -> None:
        from pkcs11 import Attribute, KeyType

        own = {Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False, Attribute.PRIVATE: True}
        label = f"{self._prefix}:{tenant}:{number}"
        self._session.generate_key(KeyType.AES, 256, id=secrets.token_bytes(_ID_BYTES), label=label, store=True, template=own)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """The token's errors in the store's own words."""
        from pkcs11 import NoSuchToken, PinIncorrect, PinLocked, PKCS11Error

        try:
            yield
        except NoSuchToken as error:
            raise KeysUnavailable(self.source, f"there is no token {self._token!r}") from error
        except (PinIncorrect, PinLocked) as error:
            raise KeysUnavailable(self.source, "the token refuses the PIN", hint=f"Correct the variable {self._pin_env}.") from error
        except PKCS11Error as error:
            raise KeysUnavailable(self.source, f"the token or its module failed: {type(error).__name__} {error}".strip()) from error

    def __repr__(self) -> str:
        return f"Pkcs11Keys({self._token})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys do not leave their token")


def _version(text: str) -> _Version:
    number, _, identity = text.partition("/")
    return _Version(int(number), bytes.fromhex(identity))


def _gcm(nonce: bytes, context: bytes) -> Any:
    from pkcs11 import GCMParams

    return GCMParams(nonce=nonce, aad=context, tag_bits=8 * TAG_BYTES)
