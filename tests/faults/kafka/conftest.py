"""A broker that cleans without delay and notices transactions that are too old within a quarter of a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.kafka.local import LocalBroker

_IMPATIENT = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "250",
}


@pytest.fixture(scope="session")
def cleaning_broker(run_folder: Path) -> LocalBroker:
    """One for the run, as `broker`: the first worker that asks starts it."""
    shared = LocalBroker(directory=run_folder / "cleaning", config=_IMPATIENT, fast_start=True)
    shared.up()
    return shared
