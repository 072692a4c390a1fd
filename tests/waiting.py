"""Waiting for a condition, bounded."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object], *, seconds: float = 30.0) -> None:
    """Returns as soon as the condition holds; fails when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)
