"""Both logs keep the contract that is shipped in the package. What goes beyond it is in the other files of this folder."""

from __future__ import annotations

import pytest

from eventlog import CheckpointStore
from eventlog.testing.suite import StoreContract
from tests.store.conftest import Shared


class TestEveryKind(StoreContract):
    turns = 30  # two processes' worth of stores take a Kafka partition from one another at each hand-over

    @pytest.fixture
    def store(self, shared: Shared) -> CheckpointStore:
        """Shared by all tests: opening takes seconds on Kafka."""
        return shared.store


@pytest.mark.broker
class TestEncryptedOnKafka(TestEveryKind):
    @pytest.fixture
    def kind(self) -> str:
        """Here only: what goes beyond the contract is tried encrypted on the embedded log, and the ways of the keys in tests/privacy."""
        return "kafka, encrypted"
