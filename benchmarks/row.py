"""One line of the table: our figure, the other one's, and what their ratio ought to be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, NamedTuple

Bound = Literal["at least", "at most"]


class Latency(NamedTuple):
    """Milliseconds a call."""

    p50: float
    p99: float
    p999: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Latency:
        """Nearest rank. With fewer than 1000 calls p99.9 is the slowest one."""
        ordered = sorted(seconds)
        return cls(*(1000 * ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] for share in (0.5, 0.99, 0.999)))


class Sample(NamedTuple):
    """What one side did in one round."""

    value: float
    latency: Latency | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison, and its rounds in the order in which they were run."""

    name: str
    samples: tuple[Sample, ...] = ()

    @property
    def value(self) -> float:
        return median(sample.value for sample in self.samples)

    @property
    def spread(self) -> float:
        """How far apart the rounds lie: highest minus lowest, as a share of the median."""
        values = [sample.value for sample in self.samples]
        return (max(values) - min(values)) / self.value if self.value else 0.0

    @property
    def latency(self) -> Latency | None:
        """Median over the rounds of each percentile."""
        found = [sample.latency for sample in self.samples if sample.latency is not None]
        return Latency(*(median(each) for each in zip(*found, strict=True))) if found else None


@dataclass(frozen=True, slots=True)
class Target:
    """What the ratio ought to be. `aim` is what would be better still."""

    bound: Bound
    ratio: float
    aim: float | None = None

    def met_by(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.bound == "at least" else ratio <= self.ratio

    def __str__(self) -> str:
        return f"{self.bound} {self.ratio:g}" + (f" (aim {self.aim:g})" if self.aim is not None else "")


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison. The ratio is the median of the rounds' own ratios, so that noise which hits a whole round cancels."""

    key: str
    what: str
    unit: str
    ours: Side
    against: Side
    target: Target | None = None
    missing: str | None = None  # why it was not measured
    note: str = field(default="")

    @property
    def ratios(self) -> tuple[float, ...]:
        pairs = zip(self.ours.samples, self.against.samples, strict=False)
        return tuple(ours.value / against.value for ours, against in pairs if against.value)

    @property
    def ratio(self) -> float | None:
        return median(self.ratios) if self.ratios else None

    @property
    def met(self) -> bool | None:
        """None: there is no target, or it was not measured."""
        if self.target is None or self.ratio is None:
            return None
        return self.target.met_by(self.ratio)


class NotMeasured(Exception):
    """A benchmark cannot run here; the message says what is missing."""
