"""Encrypted stores on both logs, and a place in a token for each test that asks for one: a real SoftHSM2."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, create_store, open_store
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.privacy.providers.pkcs11 import PIN_VARIABLE
from tests.conftest import softhsm_module

OpenStore = Callable[..., CheckpointStore]

PIN = "4711-0815"


@pytest.fixture(scope="session")
def softhsm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A token of this run, and its module: SoftHSM reads its settings and finds its tokens once, when a process loads it."""
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder / 'tokens'}\nobjectstore.backend = file\nlog.level = ERROR\n")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
        environment.setenv(PIN_VARIABLE, PIN)
        making = ["softhsm2-util", "--init-token", "--free", "--label", "tests", "--pin", PIN, "--so-pin", PIN]
        subprocess.run(making, check=True, capture_output=True)
        yield f"?module-path={softhsm_module()}"


@pytest.fixture
def token(softhsm: str) -> str:
    """A URI under which nobody has made keys."""
    return f"pkcs11:token=tests;object={uuid.uuid4().hex}{softhsm}"


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.broker)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFile:
    return KeyFile(path=tmp_path / "keys" / "orders.json")


@pytest.fixture
def address(kind: str, key_file: KeyFile, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new encrypted store, not open."""
    key_file.path.parent.mkdir()
    made = str(tmp_path / "store")
    if kind == "kafka":
        made = f"kafka://{request.getfixturevalue('broker')}/{request.getfixturevalue('topic')}"
    create_store(made, partitions=1, replication=1, encryption=key_file)
    key_file.close()
    return made


@pytest.fixture
def opening(address: str, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the store, each time as another process would. Closed at the end of the test."""
    opened: list[CheckpointStore] = []

    def once_more(**arguments: Any) -> CheckpointStore:
        place = f"{address}?state={tmp_path / f'state-{len(opened)}'}" if address.startswith("kafka://") else address
        opened.append(open_store(place, **{"actor": "tester", **arguments}))
        return opened[-1]

    yield once_more
    for store in opened:
        store.close()


@pytest.fixture
def store(opening: OpenStore) -> CheckpointStore:
    return opening()


def keys_of(store: CheckpointStore) -> DataKeys:
    assert store.keys is not None
    return store.keys
