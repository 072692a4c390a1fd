"""A principal's store is a store: the shipped contract holds for a writer's, over an encrypted log that records every access."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog import CheckpointStore, KeyFile, Principal, create_store, open_store
from eventlog.testing.suite import StoreContract


class TestAWritersStore(StoreContract):
    turns = 30

    @pytest.fixture
    def opening(self, tmp_path: Path) -> Callable[[], CheckpointStore]:
        address = tmp_path / "store"
        create_store(address, encryption=KeyFile(path=tmp_path / "key.json"), access="buffered")
        return lambda: open_store(address, principal=Principal("ann", None, ["writer"]))
