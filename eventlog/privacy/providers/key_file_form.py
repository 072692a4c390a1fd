"""What stands in a key file: JSON, its keys in clear or sealed with a passphrase by scrypt and AES-256-GCM."""

from __future__ import annotations

import base64
import binascii
import json
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from eventlog.privacy.envelope import KEY_BYTES, NONCE_BYTES

FORMAT = "eventlog keys 1"
_SALT_BYTES = 16
_SCRYPT = {"n": 1 << 17, "r": 8, "p": 1}  # 128 MB and about half a second a guess
_LARGEST_N = 1 << 20  # of a file that somebody else may have written: 1 GB


class Unreadable(Exception):
    """Why there are no keys in it. Never holds any of it."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


def encode(keys: dict[int, bytes], passphrase: bytes | None) -> bytes:
    """The file's bytes, of keys by version."""
    plain = json.dumps({str(version): _text(key) for version, key in sorted(keys.items())})
    if passphrase is None:
        return json.dumps({"format": FORMAT, "keys": json.loads(plain)}, indent=2).encode() + b"\n"
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(NONCE_BYTES)
    sealed = _cipher(passphrase, salt, **_SCRYPT).encrypt(nonce, plain.encode(), FORMAT.encode())
    fields = {"format": FORMAT, "scrypt": {**_SCRYPT, "salt": _text(salt)}, "nonce": _text(nonce), "sealed": _text(sealed)}
    return json.dumps(fields, indent=2).encode() + b"\n"


def decode(data: bytes, passphrase: bytes | None) -> dict[int, bytes]:
    """The keys by version. Raises `Unreadable`."""
    fields = _object(data)
    if fields.get("format") != FORMAT:
        raise Unreadable("is no key file of a format that this version reads")
    if "sealed" in fields:
        if passphrase is None:
            raise Unreadable("is sealed with a passphrase", hint="Name the variable that holds it: file:PATH?passphrase=env:NAME.")
        data = _opened(fields, passphrase)
        found = _object(data)
    else:
        found = fields.get("keys", {})
        if passphrase is not None:
            raise Unreadable("is not sealed, though a passphrase is given", hint="Name it without one, if that is what it should be.")
    return _keys(found)


def _opened(fields: dict[str, Any], passphrase: bytes) -> bytes:
    try:
        cost = fields["scrypt"]
        salt, nonce, sealed = _bytes(cost["salt"]), _bytes(fields["nonce"]), _bytes(fields["sealed"])
        if not 1 < cost["n"] <= _LARGEST_N:
            raise Unreadable("asks for more work than any key file that was made here")
        return _cipher(passphrase, salt, n=cost["n"], r=cost["r"], p=cost["p"]).decrypt(nonce, sealed, FORMAT.encode())
    except InvalidTag:
        raise Unreadable("does not open with this passphrase, or was altered") from None
    except (KeyError, TypeError, ValueError):
        raise Unreadable("is damaged") from None


def _keys(found: Any) -> dict[int, bytes]:
    try:
        keys = {int(version): _bytes(text) for version, text in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise Unreadable("is damaged") from None
    if not keys or any(version < 1 or len(key) != KEY_BYTES for version, key in keys.items()):
        raise Unreadable("is damaged")
    return keys


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreadable("is not JSON")
    return found


def _cipher(passphrase: bytes, salt: bytes, *, n: int, r: int, p: int) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=KEY_BYTES, n=n, r=r, p=p).derive(passphrase))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError from None
