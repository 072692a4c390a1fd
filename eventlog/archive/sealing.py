"""JSON documents that show whether they are as they were made: a SHA-256 of what they say, and an Ed25519 signature where there is a key.

    {"sealed": {…}, "seal": hex, "signature": {"public_key": hex, "value": hex} | null, …}

The seal is over the canonical text of `sealed` (sorted keys, no white space, ASCII), the signature over the seal.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key, load_pem_public_key

from eventlog.errors import ConfigurationError, Corrupted, SchemaMismatch, StorageError

_CONTEXT = b"eventlog seal v1\n"  # a signature of ours is none of anything else
_HINT = "Take the original from a copy: somebody or something has changed this one."


class SealedDocument(NamedTuple):
    """A document whose seal, and signature where it has one, were checked."""

    content: dict[str, Any]
    seal: bytes
    signed_by: bytes | None  # the public key, 32 bytes; whether it is the right one is for the reader to say
    more: dict[str, Any]  # what stands beside the seal


def seal(content: dict[str, Any], *, key: Ed25519PrivateKey | None) -> dict[str, Any]:
    """The document of some content."""
    digest = seal_of(content)
    signature = None
    if key is not None:
        public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        signature = {"public_key": public.hex(), "value": key.sign(_CONTEXT + digest).hex()}
    return {"sealed": content, "seal": digest.hex(), "signature": signature}


def seal_of(content: dict[str, Any]) -> bytes:
    """SHA-256 over the canonical text."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(_CONTEXT + canonical.encode()).digest()


def open_sealed(text: bytes, place: str, *, format_version: int, trusted: bytes | None = None) -> SealedDocument:
    """The document that a text is.

    Arguments:
        place: names it in errors.
        format_version: that its content must say it has.
        trusted: the public key that must have signed it; None: a signature is checked by the key that it names, and may be absent.

    Raises `Corrupted` when it says something else than what was sealed, or is not signed by the trusted key; `SchemaMismatch` for
    another format.
    """
    try:
        document = json.loads(text)
        content, digest, signature = document["sealed"], bytes.fromhex(document["seal"]), document["signature"]
        actual = seal_of(content)
        public = None if signature is None else bytes.fromhex(signature["public_key"])
        value = b"" if signature is None else bytes.fromhex(signature["value"])
        checking = None if public is None else Ed25519PublicKey.from_public_bytes(public)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Corrupted(place, f"is no sealed document: {error!r}", hint=_HINT) from error
    if actual != digest:
        raise Corrupted(place, "does not say what was sealed", hint=_HINT)
    if trusted is not None and public != trusted:
        signer = "nobody" if public is None else f"the key {public.hex()}"
        raise Corrupted(place, f"is signed by {signer}, not by the key {trusted.hex()}", hint=_HINT)
    if checking is not None:
        try:
            checking.verify(value, _CONTEXT + digest)
        except InvalidSignature as error:
            raise Corrupted(place, "its signature is not one of the key that it names", hint=_HINT) from error
    if content.get("format_version") != format_version:
        raise SchemaMismatch(f"{place} has format {content.get('format_version')!r}; this version reads {format_version}")
    more = {name: each for name, each in document.items() if name not in ("sealed", "seal", "signature")}
    return SealedDocument(content, digest, public, more)


def signing_key(path: Path) -> Ed25519PrivateKey:
    """The Ed25519 key in a PEM file (PKCS #8, no passphrase). Raises `ConfigurationError` or `StorageError`."""
    hint = "Make one with: openssl genpkey -algorithm ed25519 -out KEY.pem"
    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it has a passphrase
        raise ConfigurationError(f"{path} is no private key in PEM without a passphrase", hint=hint) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(f"{path} is no Ed25519 key", hint=hint)
    return key


def public_key(path: Path) -> bytes:
    """The 32 bytes of the Ed25519 public key in a PEM file. Raises `ConfigurationError` or `StorageError`."""
    hint = "Get it with: openssl pkey -in KEY.pem -pubout -out PUBLIC.pem"
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(f"{path} is no public key in PEM", hint=hint) from error
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigurationError(f"{path} is no Ed25519 key", hint=hint)
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error
