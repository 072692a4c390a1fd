"""Stores of each kind, and places to back them up and restore them to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eventlog import CheckpointStore, KeyFile, create_store, open_store

KINDS = ["embedded", pytest.param("kafka", marks=pytest.mark.broker)]


class Grounds(NamedTuple):
    """Where a test's stores are."""

    kind: str
    folder: Path
    broker: str | None

    def address(self, name: str) -> str:
        """A place for a store; the same one for the same name."""
        if self.broker is None:
            return str(self.folder / name)
        return f"kafka://{self.broker}/{self.folder.name}-{name}?state={self.folder / f'state-{name}'}"

    def create(self, name: str = "live", *, encrypted: bool = False, access: str = "off") -> str:
        """A new store."""
        encryption = KeyFile(path=self.folder / "key.json") if encrypted else None
        create_store(self.address(name), partitions=2, replication=1, encryption=encryption, access=access)
        return self.address(name)


@pytest.fixture(params=KINDS)
def grounds(request: pytest.FixtureRequest, tmp_path: Path) -> Grounds:
    broker = request.getfixturevalue("broker") if request.param == "kafka" else None
    folder = tmp_path / f"backup-{uuid.uuid4().hex[:12]}"
    folder.mkdir()
    return Grounds(request.param, folder, broker)


Opening = Callable[..., CheckpointStore]


@pytest.fixture
def opening() -> Iterator[Opening]:
    """Opens a store until the test ends."""
    opened: list[CheckpointStore] = []

    def open_it(address: str, **arguments: Any) -> CheckpointStore:
        opened.append(open_store(address, **{"actor": "tester", **arguments}))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()
