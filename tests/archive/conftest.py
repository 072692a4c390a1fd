"""Embedded stores with an archive beside them; for those on Kafka see test_kafka_archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import CheckpointStore, create_store, open_store
from eventlog.archive.directory import Archive


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An empty store, not open."""
    create_store(tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def store(directory: Path) -> Iterator[CheckpointStore]:
    with open_store(directory, actor="tester") as opened:
        yield opened


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """In a directory whose name DuckDB would take for a pattern, were it let."""
    return Archive(directory=tmp_path / "arch[iv]e's *")
