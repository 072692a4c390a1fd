"""Reads the fields of a payload of ours, as whatever wrote them left them. Pure; what does not fit is refused with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventlog import payload
from eventlog.checkpoint import LAST_REVISION
from eventlog.errors import InvalidPayload


def an_object(value: Any, path: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise InvalidPayload(path, f"is {_named(value)}, not an object")
    return value


def a_list(fields: Mapping[str, Any], name: str, path: str) -> list[Any]:
    """A field that is a JSON array."""
    value = _field(fields, name, path)
    if not isinstance(value, list):
        raise InvalidPayload(f"{path}.{name}", f"is {_named(value)}, not an array")
    return value


def a_text(fields: Mapping[str, Any], name: str, path: str) -> str:
    """A field that is a text which is not empty."""
    value = _field(fields, name, path)
    if not isinstance(value, str) or not value:
        raise InvalidPayload(f"{path}.{name}", f"is {_named(value)}, not a text that says something")
    return value


def a_count(fields: Mapping[str, Any], name: str, path: str, least: int = 0) -> int:
    """A field that is a whole number from `least` on."""
    value = _field(fields, name, path)
    if type(value) is not int or not least <= value <= LAST_REVISION:
        raise InvalidPayload(f"{path}.{name}", f"is {value!r:.40}, not a whole number from {least} on")
    return value


def anything(fields: Mapping[str, Any], name: str, path: str) -> Any:
    """A field that may be any JSON value, but not missing."""
    return _field(fields, name, path)


def others(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The fields that this version does not know: they are written back as they were."""
    return {name: value for name, value in fields.items() if name not in known}


def json_copy(value: Any) -> Any:
    """A JSON value that nobody else holds. Raises `InvalidPayload` for what is not JSON."""
    return payload.load_json(payload.dump_json(value))


def own_copy(value: Any) -> Any:
    """The same for what is checked when it is committed: containers are copied, and what is in them, which nobody can change, is shared.

    0.6 of the time of a copy by marshal and 0.5 of one by JSON (measured at 200 KB, where a turn's copy is its largest cost).
    """
    try:
        return _copied(value)
    except RecursionError:  # it contains itself, or is nested too deep
        return json_copy(value)


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        made = value.copy()
        for name, each in value.items():
            if type(each) is dict or type(each) is list:
                made[name] = _copied(each)
        return made
    if kind is list:
        return [_copied(each) if type(each) is dict or type(each) is list else each for each in value]
    return value


def _field(fields: Mapping[str, Any], name: str, path: str) -> Any:
    if name not in fields:
        raise InvalidPayload(f"{path}.{name}", "is missing")
    return fields[name]


def _named(value: Any) -> str:
    return "null" if value is None else f"{value!r:.40}"
