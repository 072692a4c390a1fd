"""Encrypted stores that record every access, of each kind: shared by the tests of a run, which use fresh ids and never close them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from eventlog import CheckpointStore, KeyFile, create_store, open_store

KINDS = ["embedded", pytest.param("kafka", marks=pytest.mark.broker)]


class Recorded(NamedTuple):
    address: str
    store: CheckpointStore  # the local user's, who is an admin
    folder: Path


def made(kind: str, request: pytest.FixtureRequest, folder: Path, *, access: str = "strict", encrypted: bool = False) -> str:
    """The address of a new store that records accesses. An encrypted one has its key file beside it, which it remembers."""
    if kind == "embedded":
        address = str(folder / "store")
    else:
        broker: str = request.getfixturevalue("broker")
        address = f"kafka://{broker}/privacy-{uuid.uuid4().hex[:12]}?state={folder / 'state'}"
    encryption = KeyFile(path=folder / "key.json") if encrypted else None
    create_store(address, partitions=2, replication=1, encryption=encryption, access=access)
    return address


@pytest.fixture(scope="session")
def recorded_stores() -> Iterator[dict[str, Recorded]]:
    stores: dict[str, Recorded] = {}
    yield stores
    for each in stores.values():
        each.store.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorded(
    kind: str, request: pytest.FixtureRequest, recorded_stores: dict[str, Recorded], tmp_path_factory: pytest.TempPathFactory
) -> Recorded:
    if kind not in recorded_stores:
        folder = tmp_path_factory.mktemp(f"recorded-{kind}")
        address = made(kind, request, folder, encrypted=True)
        recorded_stores[kind] = Recorded(address, open_store(address, actor="root"), folder)
    return recorded_stores[kind]


@pytest.fixture
def store(recorded: Recorded) -> CheckpointStore:
    return recorded.store


@pytest.fixture
def fresh_address(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of its own, not open."""
    return made(kind, request, tmp_path)
