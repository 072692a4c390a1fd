"""The same contract for every log: a store of each kind.

`store` is shared by the tests of a run (of a worker): its tests use fresh ids and kinds of their own, and never close it. A test that
needs an empty store, or closes one, asks for `fresh_address`. The Kafka half runs as soon as that log exists.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from eventlog import CheckpointStore, create_store, open_store
from eventlog.privacy.providers.key_file import KeyFile

KINDS = ["embedded", "embedded, encrypted", pytest.param("kafka", marks=pytest.mark.broker)]

Opened = dict[str, "Shared"]


class Shared(NamedTuple):
    address: str
    store: CheckpointStore


def made(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """The address of a new store. An encrypted one has its key file beside it, which it remembers."""
    if kind.startswith("embedded"):
        address = str(folder / "store")
    else:
        broker: str = request.getfixturevalue("broker")
        address = f"kafka://{broker}/store-contract-{uuid.uuid4().hex[:12]}?state={folder / 'state'}"
    encryption = KeyFile(path=folder / "key.json") if kind.endswith("encrypted") else None
    create_store(address, partitions=2, replication=1, encryption=encryption)
    return address


def shared_with_state(address: str, state: Path) -> str:
    """The address for a second reader at the same time: on Kafka each needs a projection directory of its own."""
    return address if not address.startswith("kafka://") else address.split("?")[0] + f"?state={state}"


@pytest.fixture(scope="session")
def opened() -> Iterator[Opened]:
    stores: Opened = {}
    yield stores
    for shared in stores.values():
        shared.store.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(kind: str, request: pytest.FixtureRequest, opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    if kind not in opened:
        address = made(kind, request, tmp_path_factory.mktemp(f"shared-{kind}"))
        opened[kind] = Shared(address, open_store(address, actor="tester"))
    return opened[kind]


@pytest.fixture
def store(shared: Shared) -> CheckpointStore:
    return shared.store


@pytest.fixture
def address(shared: Shared) -> str:
    """The address of `store`."""
    return shared.address


@pytest.fixture
def fresh_address(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nothing was written to, not open."""
    return made(kind, request, tmp_path)


@pytest.fixture
def second_address(address: str, tmp_path: Path) -> str:
    """`store` once more, for another store object or process."""
    return shared_with_state(address, tmp_path / "second-state")


@pytest.fixture
def opening(second_address: str) -> Iterator[Callable[..., CheckpointStore]]:
    """Opens `store` once more: `opening(tenant="north")`. Closed at the end of the test."""
    stores: list[CheckpointStore] = []

    def once_more(**arguments: str | int | None) -> CheckpointStore:
        place = (
            second_address if not stores or not second_address.startswith("kafka://") else f"{second_address}-{len(stores)}"
        )  # on Kafka: its own state
        stores.append(open_store(place, **arguments))  # type: ignore[arg-type]
        return stores[-1]

    yield once_more
    for each in stores:
        each.close()
