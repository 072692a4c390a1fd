"""The records of a topic of keys: `<checkpoint id>/<key id>` and the wrapped key as JSON, plain data that any language reads."""

from __future__ import annotations

import base64
import json
from typing import Any

from eventlog.errors import Corrupted, SchemaMismatch
from eventlog.privacy.keys import WrappedKey

FORMAT = 1
SETTINGS = b"store/settings"


def key_of(key: WrappedKey) -> bytes:
    """A record's key."""
    return f"{key.checkpoint_id}/{key.key_id}".encode()


def parse_key(key: bytes | None) -> tuple[str, str]:
    """Checkpoint and key id of a record's key. Raises `Corrupted`."""
    checkpoint_id, slash, key_id = (key or b"").decode("utf-8", "replace").partition("/")
    if not slash or not checkpoint_id or not key_id:
        raise Corrupted(
            "the topic of keys", f"holds a record under {(key or b'nothing')[:80]!r}", hint="Restrict write access to it by ACLs."
        )
    return checkpoint_id, key_id


def encode(key: WrappedKey) -> bytes:
    """A record's value."""
    fields = {"format": FORMAT, **key._asdict(), "wrapped": base64.b64encode(key.wrapped).decode()}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def decode(value: bytes) -> WrappedKey:
    """The wrapped key of a record's value. Raises `SchemaMismatch` or `Corrupted`."""
    fields = _fields(value)
    try:
        wrapped = base64.b64decode(fields.pop("wrapped"), validate=True)
        return WrappedKey(wrapped=wrapped, **fields)
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupted(
            "the topic of keys", "holds a record that is no wrapped key", hint="Restrict write access to it by ACLs."
        ) from error


def encode_settings(source: str) -> bytes:
    """The value of the settings' record."""
    return json.dumps({"format": FORMAT, "key_source": source}).encode()


def decode_settings(value: bytes) -> str:
    """Where the store's keys are. Raises `SchemaMismatch` or `Corrupted`."""
    source = _fields(value).get("key_source")
    if not isinstance(source, str):
        raise Corrupted("the topic of keys", "does not say where the store's keys are", hint="Restore it from the backup of the keys.")
    return source


def _fields(value: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise Corrupted("the topic of keys", "holds a record that is not JSON", hint="Restrict write access to it by ACLs.")
    if fields.pop("format", None) != FORMAT:
        raise SchemaMismatch("the topic of keys holds a record of a format that this version does not read")
    return fields
