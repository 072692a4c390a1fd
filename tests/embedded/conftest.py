"""A store in a directory of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import CheckpointStore, create_store, open_store


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An empty store, not open."""
    create_store(tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def store(directory: Path) -> Iterator[CheckpointStore]:
    with open_store(directory, actor="tester") as opened:
        yield opened
