"""A look at every byte of every file of a store: nothing of a payload, and nothing of a key, whatever was done with it.

The same look at a store in clear text finds everything that it looks for, which is what shows that it can see.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from kafka.record import MemoryRecords

from eventlog import CheckpointStore, create_store, open_store
from eventlog.privacy.data_keys import unwrapped
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.privacy.rotation import rotate
from tests.conftest import OwnBroker
from tests.privacy.conftest import keys_of
from tests.store.samples import initial, outcome

MARKERS = ("PLANTED-small-7f3a", "PLANTED-large-91bc", "PLANTED-name-55d0", "PLANTED-later-c2e8")
ZSTD, GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08"


def forms(secret: bytes) -> list[bytes]:
    """As it might stand in a file: itself, in hex, and in base64 at each of its three alignments."""
    found = [secret, secret.hex().encode(), secret.hex().upper().encode(), secret.decode("latin-1").encode("utf-16-le")]
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret)
        found.append(encoded[4 * (shift > 0) : -4])
    return found


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, and what is compressed in it where that can be told and opened."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        yield path.name, data
        if path.suffix == ".log":
            data = b"\x00".join(records_in(data))
            yield f"{path.name}, records", data
        for start in starts(data, ZSTD):
            try:
                yield f"{path.name}, zstd at {start}", zstandard.ZstdDecompressor().decompressobj().decompress(data[start:])
            except zstandard.ZstdError:
                continue
        for start in starts(data, GZIP):
            try:
                yield f"{path.name}, gzip at {start}", gzip.decompress(data[start:])
            except (OSError, EOFError, zlib.error):
                continue


def records_in(segment: bytes) -> Iterator[bytes]:
    batches = MemoryRecords(segment)
    while batches.has_next():
        for record in batches.next_batch():
            yield bytes(record.key or b"")
            yield bytes(record.value or b"")


def starts(data: bytes, magic: bytes) -> Iterator[int]:
    at = data.find(magic)
    while at >= 0:
        yield at
        at = data.find(magic, at + 1)


def found_in(folder: Path, secrets: dict[str, bytes]) -> dict[str, str]:
    """Each secret that some file shows, and which."""
    shown: dict[str, str] = {}
    wanted = {name: forms(secret) for name, secret in secrets.items()}
    for place, data in contents(folder):
        for name, each in wanted.items():
            if any(form in data for form in each):
                shown.setdefault(name, place)
    return shown


def use(store: CheckpointStore) -> list[str]:
    """Whatever writes a file: small and large payloads, superseded and deleted ones, a refused one, lists and snapshots."""
    ids = []
    for large in (False, True):
        first = initial({"text": MARKERS[large], "name": MARKERS[2], "more": "x" * (5000 if large else 10)})
        store.compare_and_swap(first, None)
        outcome(store, first.next({"text": MARKERS[3]}), 7)
        for step in range(6):
            first = first.next({"text": f"{step} {MARKERS[large]}", "name": MARKERS[2], "more": "y" * (9000 if large else 10)})
            store.compare_and_swap(first, first.revision - 1)
            store.load(first.id)
        ids.append(first.id)
    last = initial({"text": MARKERS[3]})
    store.compare_and_swap(last, None)
    store.delete(last.id, 0)
    store.list()
    store.catalog.rebuild()
    store.list()
    return [*ids, last.id]


def planted() -> dict[str, bytes]:
    return {marker: marker.encode() for marker in MARKERS}


def key_bytes(store: CheckpointStore, key_file: KeyFile) -> dict[str, bytes]:
    keys = keys_of(store)
    found = {f"data key {each.key_id}": unwrapped(keys.provider, each) for each in keys.table.all()}
    for version, text in json.loads(key_file.path.read_text())["keys"].items():
        found[f"master key {version}"] = base64.b64decode(text)
    return found


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFile:
    (tmp_path / "keys").mkdir()
    return KeyFile(path=tmp_path / "keys" / "key.json")


def test_no_file_of_a_directory_shows_a_payload_or_a_key(tmp_path: Path, key_file: KeyFile, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    create_store(tmp_path / "plain")
    with open_store(tmp_path / "plain") as store:
        use(store)
        assert set(found_in(tmp_path / "plain", planted())) == set(MARKERS)  # it can see
    create_store(tmp_path / "store", encryption=key_file)
    with open_store(tmp_path / "store") as store:
        use(store)
        secrets = planted() | key_bytes(store, key_file)
        assert found_in(tmp_path / "store", secrets) == {}  # journals and write-ahead log included
        rotate(keys_of(store).table, keys_of(store).provider)
        secrets |= key_bytes(store, key_file)
        assert sum(name.startswith("master") for name in secrets) == 2
    assert found_in(tmp_path / "store", secrets) == {}
    assert set(found_in(tmp_path / "keys", secrets)) == {name for name in secrets if name.startswith("master")}
    assert not [name for name, secret in secrets.items() for form in forms(secret) if form in caplog.text.encode()]


def test_what_a_destroyed_key_was_wrapped_into_is_in_no_file(tmp_path: Path, key_file: KeyFile) -> None:
    create_store(tmp_path / "store", encryption=key_file)
    with open_store(tmp_path / "store") as store:
        ids = use(store)
        wrapped = {each.key_id: each.wrapped for each in keys_of(store).table.all() if each.checkpoint_id in ids}
        assert set(found_in(tmp_path / "store", wrapped)) == set(wrapped)
        keys_of(store).table.destroy(*ids)
        assert found_in(tmp_path / "store", wrapped) == {}
    assert found_in(tmp_path / "store", wrapped) == {}


def test_no_file_of_the_broker_shows_a_payload_or_a_key(
    tmp_path: Path, key_file: KeyFile, own_broker: OwnBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    broker = own_broker()
    data = broker.status().data
    for name, encryption in (("plain", None), ("sealed", key_file)):
        address = f"kafka://{broker.bootstrap}/{name}?state={tmp_path / name}"
        caplog.clear()  # at this level the client shows the records that it sends
        create_store(address, partitions=1, replication=1, encryption=encryption)
        with open_store(address) as store:
            use(store)
            secrets = planted() | (key_bytes(store, key_file) if encryption is not None else {})
        places = [*data.rglob(f"{name}-0"), *data.rglob(f"{name}.keys-0"), tmp_path / name]
        assert len(places) == (3 if encryption is not None else 2)
        shown = {each: place for folder in places for each, place in found_in(folder, secrets).items()}
        assert set(shown) == (set() if encryption is not None else set(MARKERS))
    assert not [name for name, secret in secrets.items() for form in forms(secret) if form in caplog.text.encode()]
