"""Empty stores for what is taken over from elsewhere, on both logs."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog import KeyFile, create_store

_NO_KAFKA = importlib.util.find_spec("eventlog.kafka.log") is None

NewStore = Callable[[str], str]


@pytest.fixture(
    params=[
        "embedded",
        "embedded, encrypted",
        pytest.param("kafka", marks=[pytest.mark.broker, pytest.mark.skipif(_NO_KAFKA, reason="eventlog/kafka/log.py is not written yet")]),
    ]
)
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Makes an empty store by a name of the test's and returns its address."""

    def make(name: str) -> str:
        if request.param.startswith("embedded"):
            address = str(tmp_path / name)
        else:
            broker: str = request.getfixturevalue("broker")
            address = f"kafka://{broker}/ingest-{name}-{uuid.uuid4().hex[:12]}?state={tmp_path / f'{name}-state'}"
        encryption = KeyFile(path=tmp_path / "key.json") if request.param.endswith("encrypted") else None
        create_store(address, partitions=2, replication=1, encryption=encryption)
        return address

    return make


@pytest.fixture
def address(new_store: NewStore) -> str:
    return new_store("store")
