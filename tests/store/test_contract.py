"""Both logs keep the contract that is shipped in the package. What goes beyond it is in the other files of this folder."""

from __future__ import annotations

import pytest

from eventlog import CheckpointStore
from eventlog.testing.suite import StoreContract
from tests.store.conftest import Shared


class TestBothLogs(StoreContract):
    turns = 30  # two processes' worth of stores take a Kafka partition from one another at each hand-over

    @pytest.fixture
    def store(self, shared: Shared) -> CheckpointStore:
        """Shared by all tests: opening takes seconds on Kafka."""
        return shared.store
