"""From text on the command line to the values that the store takes. Each raises `InvalidRequest` naming the option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from eventlog.duration import seconds
from eventlog.errors import InvalidRequest
from eventlog.position import Position

_WHOLE = re.compile(r"\d{1,19}").fullmatch
_TIMES = "Times look like 2026-01-31T08:00:00Z, ages like 30d, 12h, 15m (s, m, h, d, w)."


def moment(field: str, text: str) -> datetime:
    """A time with its zone, or an age (`12h`: twelve hours before now)."""
    age = seconds(text)
    if age is not None:
        try:
            return datetime.now(UTC) - timedelta(seconds=age)
        except OverflowError as error:
            raise InvalidRequest(field, f"{text!r} is before the year 1", hint=_TIMES) from error
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(field, f"{text[:80]!r} is neither a time nor an age", hint=_TIMES) from error
    if parsed.tzinfo is None:
        raise InvalidRequest(field, f"{text!r} has no time zone", hint=f"Append Z for UTC. {_TIMES}")
    return parsed


def position_or_moment(field: str, text: str | None) -> Position | datetime | None:
    """A position (`17`, `0:17,1:4`), or a time as `moment` reads it."""
    if text is None:
        return None
    return Position.parse(text) if re.fullmatch(r"[\d:,]+", text) else moment(field, text)


def labels(pairs: Sequence[str]) -> dict[str, str]:
    """`--label k=v`, any number of times."""
    return _pairs("--label", pairs)


def usage(pairs: Sequence[str]) -> dict[str, int]:
    """`--usage name=number`, any number of times."""
    numbers = {}
    for name, value in _pairs("--usage", pairs).items():
        if not _WHOLE(value):
            raise InvalidRequest("--usage", f"{name}={value[:40]} is not name=whole number")
        numbers[name] = int(value)
    return numbers


def _pairs(option: str, pairs: Sequence[str]) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InvalidRequest(option, f"{pair[:80]!r} is not name=value")
        if name in parsed:
            raise InvalidRequest(option, f"{name!r} is given twice")
        parsed[name] = value
    return parsed
