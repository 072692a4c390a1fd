"""Stores on topics of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eventlog import CheckpointStore, create_store, open_store
from tests.kafka_log.samples import PARTITIONS

OpenStore = Callable[..., CheckpointStore]


@pytest.fixture
def address(broker: str, topic: str) -> str:
    """A new topic, properly made; without a state directory."""
    made = f"kafka://{broker}/{topic}"
    create_store(made, partitions=PARTITIONS)
    return made


@pytest.fixture
def opening(address: str, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the topic once more, with a projection of its own unless `state` names one."""
    stores: list[CheckpointStore] = []

    def open_once_more(state: str | None = None, **arguments: float | int) -> CheckpointStore:
        directory = tmp_path / (state or f"state-{len(stores)}")
        stores.append(open_store(f"{address}?state={directory}", **arguments))  # type: ignore[arg-type]
        return stores[-1]

    yield open_once_more
    for store in stores:
        store.close()


@pytest.fixture
def store(opening: OpenStore) -> CheckpointStore:
    return opening()
