"""Identifiers: UUIDs as canonical lower-case text.

One form everywhere (log, key, SQL, JSON, API), so that nothing has to be converted and no two spellings of one id differ.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from typing import Any, Self
from uuid import UUID

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from eventlog.errors import InvalidRequest

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
# The spellings that RFC 9562 and its readers know: hyphens or none, braces, a URN prefix, any case. `uuid.UUID` alone takes more.
_SPELLING = re.compile(
    r"(urn:uuid:)?(\{)?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})(?(2)\})", re.I | re.A
).fullmatch


class _UuidText(str):
    """A UUID as text. Accepts a `UUID` or any usual spelling of one; anything else is an `InvalidRequest`."""

    __slots__ = ()
    field = "id"

    def __new__(cls, value: str | UUID) -> Self:
        if type(value) is cls:
            return value
        text = value if isinstance(value, str) else str(value)
        if _CANONICAL(text) is None:
            spelt = _SPELLING(text)
            if spelt is None:
                raise InvalidRequest(cls.field, f"not a UUID: {text[:60]!r}")
            text = "-".join(spelt.groups()[2:]).lower()
        return str.__new__(cls, text)

    @classmethod
    def new(cls) -> Self:
        """A fresh version 7 UUID (RFC 9562): 48 bits of milliseconds, then 74 random bits."""
        value = time.time_ns() // 1_000_000
        digits = f"{value:012x}{os.urandom(10).hex()}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return str.__new__(cls, f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}")

    @classmethod
    def trusted(cls, text: str) -> Self:
        """The id of an event that was validated when it was written."""
        return str.__new__(cls, text)

    @property
    def uuid(self) -> UUID:
        """The same id as a `uuid.UUID`."""
        return UUID(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls, serialization=core_schema.to_string_ser_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"type": "string", "format": "uuid"}


class CheckpointId(_UuidText):
    """Names a checkpoint for ever; on Kafka also the record's key."""

    __slots__ = ()
    field = "id"


class RunId(_UuidText):
    """Names the run that a checkpoint belongs to."""

    __slots__ = ()
    field = "run_id"


class EventId(_UuidText):
    """Names one committed revision; a retry carries the same one."""

    __slots__ = ()
    field = "event_id"


def content_id(*parts: str | bytes) -> UUID:
    """A UUID (version 8: by our own recipe) that follows from content alone: SHA-256 of the parts with their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    value = int.from_bytes(digest.digest()[:16], "big")
    return UUID(int=value & ~(0xF000 << 64) & ~(0xC000 << 48) | 0x8000 << 64 | 0x8000 << 48)
