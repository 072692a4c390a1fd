"""One payload in its envelope: AES-256-GCM, bound to the place that it was sealed for. Pure, but for the nonce that is passed in.

A payload is compressed first and sealed then. The event's digest is made of the sealed bytes, so that the chain verifies without keys.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from eventlog.errors import Corrupted

KEY_BYTES = 32
NONCE_BYTES = 12  # random: with one key a checkpoint, 2^32 revisions stay far below where two of them meet
TAG_BYTES = 16

_DOMAIN = b"eventlog payload 1"
_LENGTH = Struct(">I").pack
_NUMBERS = Struct(">QQQ").pack


class Place(NamedTuple):
    """What an envelope is bound to: whose payload it is, of which revision of what, and in which form it was sealed."""

    tenant: str
    checkpoint_id: str
    revision: int
    kind: str
    schema_version: int
    event_id: str
    encoding: str
    payload_size: int
    key_id: str


def associated_data(place: Place) -> bytes:
    """The bytes of a place. No two places have the same: every text comes behind its length, every number has eight bytes."""
    texts = (place.tenant, place.checkpoint_id, place.kind, place.event_id, place.encoding, place.key_id)
    encoded = [text.encode() for text in texts]
    return b"".join(
        (_DOMAIN, _NUMBERS(place.revision, place.schema_version, place.payload_size), *(_LENGTH(len(each)) + each for each in encoded))
    )


def seal(cipher: AESGCM, nonce: bytes, place: Place, stored: bytes) -> bytes:
    """The sealed form of a stored payload, 16 bytes longer. A nonce is used once a key."""
    return cipher.encrypt(nonce, stored, associated_data(place))


def unseal(cipher: AESGCM, nonce: bytes, place: Place, sealed: bytes) -> bytes:
    """The stored payload that was sealed for this place. Raises `Corrupted` when it was not, or not with this key."""
    try:
        return cipher.decrypt(nonce, sealed, associated_data(place))
    except (InvalidTag, ValueError) as error:  # ValueError: a nonce of no possible length
        raise Corrupted(
            f"checkpoint {place.checkpoint_id} revision {place.revision}",
            f"its payload does not open with key {place.key_id}: it was altered, or sealed for another place",
        ) from error
