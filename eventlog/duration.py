"""Durations as people write them: `30d`, `12h`."""

from __future__ import annotations

import re

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,9})([smhdw])").fullmatch


def seconds(text: str) -> int | None:
    """Seconds of a duration (s, m, h, d, w); None: it is none."""
    found = _DURATION(text)
    return None if found is None else int(found[1]) * UNITS[found[2]]
