"""Which frames meet which fate on their way through a proxy."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Api(IntEnum):
    """Api keys of Kafka's protocol, those that tests name."""

    PRODUCE = 0
    FETCH = 1
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26


class Way(Enum):
    """A direction."""

    REQUESTS = "to the broker"
    ANSWERS = "to the client"


class Fate(Enum):
    """What becomes of a frame."""

    PASS = "passes"
    CUT = "is lost, and its connection reset"
    STALL = "waits, with all behind it on its connection, for release()"
    LATE = "waits for release(), but its client is reset at once and so may send it again by another connection"


@dataclass
class Rule:
    """Which frames meet which fate. `hits` counts them.

    Attributes:
        api: the api key of the request, or of the request that is answered; None: any.
        skip: so many matching frames pass first.
        times: so many then meet the fate; None: all.
        chance: of each of them.
        then: awaited before the fate, with the frame in hand.
    """

    way: Way
    api: int | None
    fate: Fate
    skip: int = 0
    times: int | None = 1
    chance: float = 1.0
    random: random.Random = field(default_factory=lambda: random.Random(0))
    then: Callable[[], Awaitable[None]] | None = None
    hits: int = 0

    def strikes(self, way: Way, api: int) -> bool:
        """Whether this frame is one of them; counts it."""
        if way is not self.way or self.api not in (None, api) or (self.times is not None and self.hits >= self.times):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.chance < 1.0 and self.random.random() >= self.chance:
            return False
        self.hits += 1
        return True
