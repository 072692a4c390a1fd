"""Which of all the points where a fault can be injected are tried: every one on request, otherwise a spread of them by a printed seed."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator

from tests.faults.embedded.injection import Ended

# EVENTLOG_EVERY_FAULT=1: every point, until the workload finishes undisturbed. EVENTLOG_SEED: the choice otherwise.
EVERY = os.environ.get("EVENTLOG_EVERY_FAULT") == "1"
SEED = int(os.environ.get("EVENTLOG_SEED") or random.SystemRandom().randrange(1 << 32))
_LINE = re.compile(r"^(\d+) +(\w+)\(")


def counted(undisturbed: Ended) -> dict[str, int]:
    """How often the busiest thread of a traced run made each call: strace counts a fault's N by thread."""
    by_thread = Counter(match.groups() for line in undisturbed.trace if (match := _LINE.match(line)))
    most: dict[str, int] = {}
    for (_, call), count in by_thread.items():
        most[call] = max(count, most.get(call, 0))
    return most


def chosen(calls: dict[str, int], *, least: int) -> Iterator[tuple[str, int]]:
    """The first and the last of each call, and others up to `least` in all."""
    edges = {(call, number) for call, count in calls.items() for number in (1, count)}
    others = sorted({(call, number) for call, count in calls.items() for number in range(2, count)})
    more = random.Random(SEED).sample(others, min(len(others), max(0, least - len(edges))))
    yield from sorted(edges | set(more))
