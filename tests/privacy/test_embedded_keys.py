"""The embedded table of wrapped keys: what is destroyed is in no file any more, and what others put there is found."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eventlog import CheckpointId, ConfigurationError, Corrupted, SchemaMismatch, create_store, open_store
from eventlog.embedded_files import KEYS_FILE
from eventlog.privacy.embedded_keys import EmbeddedKeys, create_keys
from eventlog.privacy.keys import WrappedKey, new_key_id
from eventlog.privacy.providers.key_file import KeyFile
from tests.store.other_process import REPOSITORY


@pytest.fixture
def table(tmp_path: Path) -> Iterator[EmbeddedKeys]:
    create_keys(tmp_path / KEYS_FILE, "a store")
    opened = EmbeddedKeys(directory=tmp_path, store_id="a store")
    opened.open()
    yield opened
    opened.close()


def key(wrapped: bytes | None = None) -> WrappedKey:
    checkpoint_id = CheckpointId.new()
    return WrappedKey(checkpoint_id, new_key_id(checkpoint_id), "default", "1", wrapped or os.urandom(60), 0)


def on_disk(folder: Path) -> bytes:
    return b"\x00".join(each.read_bytes() for each in folder.iterdir() if each.is_file())


def test_what_is_put_is_found_by_all(table: EmbeddedKeys, tmp_path: Path) -> None:
    other = EmbeddedKeys(directory=tmp_path, store_id="a store")
    other.open()
    one = key()
    second = one._replace(key_id=new_key_id(one.checkpoint_id), made_at=1)
    table.put(one)
    other.put(second)
    assert other.get(one.checkpoint_id, one.key_id) == table.get(one.checkpoint_id, one.key_id) == one
    assert list(table.of(one.checkpoint_id)) == [one, second]
    assert set(table.all()) == {one, second}
    assert table.get(one.checkpoint_id, "none") is None
    other.close()


def test_those_who_put_at_once_are_all_served(table: EmbeddedKeys) -> None:
    keys = [key() for _ in range(300)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(table.put, keys))
    assert set(table.all()) == set(keys)


@pytest.mark.parametrize("seed", range(3))
def test_no_file_has_the_bytes_of_what_was_destroyed_or_replaced(table: EmbeddedKeys, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    alive: dict[str, WrappedKey] = {}
    gone: list[bytes] = []
    for _ in range(3000):
        what = chance.random()
        if what < 0.55 or not alive:
            made = key(chance.randbytes(60))
            table.put(made)
            alive[made.checkpoint_id] = made
        elif what < 0.75:
            old = chance.choice(list(alive.values()))
            new = old._replace(version=str(chance.randrange(10**6)), wrapped=chance.randbytes(chance.choice((60, 61, 90))))
            assert table.replace([(old, new)]) == 1
            alive[old.checkpoint_id] = new
            gone.append(old.wrapped)
        else:
            several = chance.sample(list(alive), min(len(alive), chance.choice((1, 1, 40))))
            assert table.destroy(*several) == len(several)
            gone += [alive.pop(each).wrapped for each in several]
    found = on_disk(tmp_path)
    assert all(each.wrapped in found for each in alive.values())  # so that the look at the files tells anything
    assert not [each for each in gone if each[12:44] in found]


def test_a_destroyed_key_is_gone_from_the_files_at_once(table: EmbeddedKeys, tmp_path: Path) -> None:
    keys = [key() for _ in range(50)]
    for each in keys:
        table.put(each)
    for each in keys:
        assert each.wrapped in on_disk(tmp_path)
        table.destroy(each.checkpoint_id)
        assert each.wrapped not in on_disk(tmp_path)


def test_a_key_that_was_destroyed_meanwhile_is_not_replaced(table: EmbeddedKeys) -> None:
    one, other = key(), key()
    table.put(one)
    table.put(other)
    table.destroy(one.checkpoint_id)
    assert table.replace([(each, each._replace(version="2")) for each in (one, other)]) == 1
    assert set(table.all()) == {other._replace(version="2")}


def test_a_key_that_another_rotation_has_replaced_is_left_as_it_is(table: EmbeddedKeys) -> None:
    one = key()
    table.put(one)
    assert table.replace([(one, one._replace(version="2", wrapped=b"2" * 60))]) == 1
    assert table.replace([(one, one._replace(version="3", wrapped=b"3" * 60))]) == 0
    assert [each.version for each in table.all()] == ["2"]


def test_a_store_without_its_keys_does_not_open(tmp_path: Path) -> None:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    keys = tmp_path / "store" / KEYS_FILE
    create_store(tmp_path / "another", encryption=KeyFile(path=tmp_path / "key.json"))

    def other_database() -> None:
        keys.unlink()
        connection = sqlite3.connect(keys)
        connection.execute("CREATE TABLE x (y)")
        connection.close()

    changes: list[tuple[Callable[[], object], str]] = [
        (lambda: keys.rename(tmp_path / "aside"), "is missing"),
        (lambda: keys.write_bytes((tmp_path / "another" / KEYS_FILE).read_bytes()), "of another store"),
        (lambda: keys.write_bytes(b"no database at all" * 100), "damaged"),
        (other_database, "not a file of wrapped"),
    ]
    for change, problem in changes:
        change()
        with pytest.raises(Corrupted, match=problem):
            open_store(tmp_path / "store")


def test_keys_of_a_newer_format_are_refused(tmp_path: Path) -> None:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    connection = sqlite3.connect(tmp_path / "store" / KEYS_FILE)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(SchemaMismatch, match="format 2"):
        open_store(tmp_path / "store")


def test_what_a_process_left_that_died_making_a_store_is_made_anew(tmp_path: Path) -> None:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    (tmp_path / "store" / "log.sqlite3").unlink()  # which appears last
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    open_store(tmp_path / "store").close()


def test_keys_of_a_store_whose_log_is_gone_are_kept(tmp_path: Path) -> None:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    with open_store(tmp_path / "store") as store:
        from tests.store.samples import stream

        stream(store, 1)
    for each in (tmp_path / "store").glob("[!k]*"):
        each.unlink()
    before = (tmp_path / "store" / KEYS_FILE).read_bytes()
    with pytest.raises(ConfigurationError, match="holds 1 wrapped data keys"):
        create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    with pytest.raises(ConfigurationError, match="not empty"):
        create_store(tmp_path / "store")
    assert (tmp_path / "store" / KEYS_FILE).read_bytes() == before


CREATOR = """
import sys
sys.path.insert(0, sys.argv[2])
from eventlog import *
with open_store(sys.argv[1]) as store:
    while True:
        first = Checkpoint.initial(CheckpointId.new(), RunId.new(), "acme.order", 1, {"text": "secret"})
        store.compare_and_swap(first, None)
        print(first.id, flush=True)
"""


def test_whatever_a_killed_process_has_committed_can_be_read(tmp_path: Path) -> None:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    for count in (1, 7, 30):
        process = subprocess.Popen([sys.executable, "-c", CREATOR, tmp_path / "store", REPOSITORY], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(count)]
        process.kill()
        process.wait()
        process.stdout.close()
        with open_store(tmp_path / "store") as store:
            ids = [item.id for item in store.list(limit=1000).items]
            assert set(told) <= set(ids)
            assert all(store.load(each).payload == {"text": "secret"} for each in ids)
