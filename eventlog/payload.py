"""Payloads: JSON values to the bytes that are stored, and back.

orjson is fast and forgiving: it writes NaN as null and accepts UUIDs and enums. What is not JSON is therefore refused here
before it, with the path within the payload. Integers beyond 64 bits, which orjson would read back as floats, go the slower way
through the standard library; their text starts with one blank, which is JSON's own white space and tells the reader.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import orjson
import zstandard

from eventlog.errors import Corrupted, InvalidPayload, SchemaMismatch
from eventlog.ids import CheckpointId, EventId, RunId

JSON = "json"
JSON_ZSTD = "json+zstd"

# Below this, compressing costs more time in commits and loads than it saves (docs/benchmarks.md, "compression threshold").
COMPRESS_FROM = 2048
# zstd 1 leaves 0.15 of a real 200 KB transcript and is faster than writing it plain; level -5 leaves 0.22.
_LEVEL = 1
_DEEPEST = 200  # orjson stops at 254 when writing
_MOST_EXPANDED = 1 << 30  # a stored payload never expands to more; guards against a forged frame

_WIDEST = 1_000_000  # containers on one level; a list that contains itself twice doubles with each
_MOST_VALUES = 5_000_000  # looked at one by one before a payload is refused as too large to judge
_LEAVES = frozenset({str, int, bool, type(None), CheckpointId, RunId, EventId})  # ids are text
_EXACT = b" "
# A compressor shared between threads crashes the process (zstandard 0.25): one a thread.
_zstd = threading.local()


class Written(dict[str, Any]):
    """A payload whose JSON text is known before it is committed. Nobody may change it."""

    __slots__ = ("text",)
    text: bytes


def with_texts(fields: dict[str, Any], texts: Mapping[str, bytes]) -> dict[str, Any]:
    """The same payload, `Written` where that is possible.

    Arguments:
        texts: of some of the fields, as `dump_json` made them: these are not looked at again.
    """
    rest = {name: value for name, value in fields.items() if name not in texts}
    if not texts or any(text[:1] == _EXACT for text in texts.values()) or not _is_plain(rest):
        return fields
    written = Written(fields)
    try:
        written.text = orjson.dumps({**fields, **{name: orjson.Fragment(text) for name, text in texts.items()}})
    except (TypeError, ValueError):  # `dump_json` says what it is
        return fields
    return written


def dump_json(payload: Any) -> bytes:
    """The JSON text of a payload, UTF-8. Raises `InvalidPayload` naming the path of what is not JSON."""
    if type(payload) is Written:
        return payload.text
    if not _is_plain(payload):
        _refuse(payload, "$", 0, count())
    try:
        return orjson.dumps(payload)
    except (TypeError, ValueError) as error:  # orjson.JSONEncodeError is a TypeError
        _refuse(payload, "$", 0, count())
        try:  # what is left are integers beyond 64 bits
            return _EXACT + json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError):
            raise InvalidPayload("$", str(error)) from error


def load_json(text: bytes) -> Any:
    """The JSON value of a payload's text as `dump_json` wrote it."""
    try:
        return orjson.loads(text) if text[:1] != _EXACT else json.loads(text)
    except ValueError as error:
        raise Corrupted("payload", f"is not the JSON that was written: {error}") from error


def store_form(text: bytes, compress_from: int = COMPRESS_FROM) -> tuple[str, bytes]:
    """The encoding and the bytes to store for a JSON text, which is compressed if it has `compress_from` bytes or more."""
    if len(text) < compress_from:
        return JSON, text
    try:
        compressor = _zstd.compressor
    except AttributeError:
        compressor = _zstd.compressor = zstandard.ZstdCompressor(level=_LEVEL)
    return JSON_ZSTD, compressor.compress(text)


def json_text(encoding: str, stored: bytes, size: int) -> bytes:
    """The JSON text of a stored payload. `size` is what the header says it has. Raises `SchemaMismatch` or `Corrupted`."""
    if encoding == JSON:
        text = stored
    elif encoding == JSON_ZSTD:
        try:
            decompressor = _zstd.decompressor
        except AttributeError:
            decompressor = _zstd.decompressor = zstandard.ZstdDecompressor()
        if size > _MOST_EXPANDED:
            raise Corrupted("payload", f"claims to expand to {size} bytes")
        try:
            text = decompressor.decompress(stored, max_output_size=size)
        except zstandard.ZstdError as error:
            raise Corrupted("payload", f"cannot be decompressed: {error}") from error
    else:
        raise SchemaMismatch(f"unknown payload encoding {encoding!r}; this version reads {JSON} and {JSON_ZSTD}")
    if len(text) != size:
        raise Corrupted("payload", f"has {len(text)} bytes where its header says {size}")
    return text


def same_json(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts hold the same value, whatever the order of their keys."""
    return one == other or _canonical(load_json(one)) == _canonical(load_json(other))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_plain(value: Any) -> bool:
    """Whether nothing in here needs a closer look. Level by level, the commonest kind first (0.7 of the time of other ways, measured)."""
    level: list[Any] = [[value]]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for container in level:
            for each in container.values() if type(container) is dict else container:
                kind = type(each)
                if kind is str:
                    continue
                if kind is dict or kind is list:
                    below.append(each)
                elif kind not in _LEAVES and not (kind is float and math.isfinite(each)):
                    return False
        if not below:
            return True
        if len(below) > _WIDEST:
            return False
        level = below
    return False


def _refuse(value: Any, path: str, depth: int, seen: Iterator[int]) -> None:
    """Raises `InvalidPayload` for the first thing that is not JSON; returns when all is."""
    kind = type(value)
    if next(seen) > _MOST_VALUES:
        raise InvalidPayload("$", f"holds more than {_MOST_VALUES} values, or the same ones again and again")
    if depth > _DEEPEST:
        raise InvalidPayload(path[:80] + "...", f"is nested deeper than {_DEEPEST} levels, or contains itself")
    if kind is dict:
        for key, each in value.items():
            if type(key) is not str:
                raise InvalidPayload(path, f"the key {key!r:.40} is {_named(key)}, not text")
            _refuse_surrogates(key, path)
            _refuse(each, f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]", depth + 1, seen)
    elif kind is list:
        for index, each in enumerate(value):
            _refuse(each, f"{path}[{index}]", depth + 1, seen)
    elif kind in _LEAVES and isinstance(value, str):
        _refuse_surrogates(value, path)
    elif kind is float and not math.isfinite(value):
        raise InvalidPayload(path, f"{value} is not a JSON number")
    elif kind is not float and kind not in _LEAVES:
        raise InvalidPayload(path, f"{_named(value)} is not JSON" + (": use a list" if isinstance(value, tuple) else ""))


def _refuse_surrogates(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidPayload(path, f"a lone surrogate at character {error.start} is not text") from None


def _named(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace(" builtins.", " ")
