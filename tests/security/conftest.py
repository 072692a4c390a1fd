"""A broker that lets in only whom it knows, and lets them do only what they may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.secured import SecuredBroker


@pytest.fixture(scope="session")
def secured(run_folder: Path) -> Iterator[SecuredBroker]:
    """One for the run, ended by its watchdog. Shared: make users and topics of your own."""
    broker = SecuredBroker(run_folder)
    broker.up()
    yield broker
    broker.close()
