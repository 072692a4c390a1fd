"""The reference store keeps the contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventlog.testing.memory import MemoryStore
from eventlog.testing.suite import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def opening(self) -> Callable[[], MemoryStore]:
        store = MemoryStore()
        return lambda: store
