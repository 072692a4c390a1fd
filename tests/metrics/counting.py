"""What a block of a test has added to the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eventlog.metrics import registry


def value(name: str, log: str, **labels: str) -> float | None:
    """A sample's value now; None: there is no such series."""
    return registry().get_sample_value(name, {"log": log.split(",")[0], **labels})  # an encrypted store counts with the others


@contextmanager
def adds(count: float, name: str, log: str, **labels: str) -> Iterator[None]:
    """The block adds exactly so much to a series that was there before."""
    before = value(name, log, **labels)
    assert before is not None, f"{name} {labels} was not there from the start"
    yield
    after = value(name, log, **labels)
    assert after is not None
    assert after - before == count, name
