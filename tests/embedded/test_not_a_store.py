"""A directory that is not a store is refused by name, and never changed."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eventlog import CheckpointError, ConfigurationError, NotAStore, SchemaMismatch, StorageError, create_store, open_store
from tests.store.samples import stream


def refused(directory: Path) -> NotAStore:
    with pytest.raises(NotAStore) as caught:
        open_store(directory)
    assert str(directory) in str(caught.value)
    return caught.value


def test_an_empty_directory(tmp_path: Path) -> None:
    refused(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory(tmp_path: Path) -> None:
    refused(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    assert "not a directory" in str(refused(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "hello"


def test_a_foreign_database(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "log.sqlite3")
    connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    connection.execute("INSERT INTO meta VALUES ('store_id', 'x')")
    connection.commit()
    connection.close()
    before = (tmp_path / "log.sqlite3").read_bytes()
    assert "another application" in str(refused(tmp_path))
    assert (tmp_path / "log.sqlite3").read_bytes() == before


def test_an_empty_file_in_the_logs_place(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite3").touch()
    refused(tmp_path)
    assert (tmp_path / "log.sqlite3").read_bytes() == b""


def test_a_text_in_the_logs_place(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite3").write_text("this is no database, but long enough to be one" * 100)
    with pytest.raises(CheckpointError, match=r"log\.sqlite3"):
        open_store(tmp_path)


def test_a_directory_in_the_logs_place(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite3").mkdir()
    with pytest.raises(CheckpointError, match=r"log\.sqlite3"):
        open_store(tmp_path)


def test_a_log_without_its_tables(directory: Path) -> None:
    connection = sqlite3.connect(directory / "log.sqlite3")
    connection.execute("DROP TABLE meta")
    connection.close()
    with pytest.raises(CheckpointError):
        open_store(directory)


def test_a_log_without_its_id(directory: Path) -> None:
    connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None)
    connection.execute("DELETE FROM meta")
    connection.close()
    refused(directory)


def test_a_newer_format_is_refused_with_both_numbers(directory: Path) -> None:
    connection = sqlite3.connect(directory / "log.sqlite3")
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(SchemaMismatch, match="format 7") as caught:
        open_store(directory)
    assert "reads 1" in str(caught.value)


# -- making one ------------------------------------------------------------------------------------------------


def test_making_one_twice_is_refused_and_keeps_the_first(directory: Path) -> None:
    with open_store(directory) as store:
        first = stream(store, 1)[0]
    with pytest.raises(ConfigurationError, match="already holds a store"):
        create_store(directory)
    with open_store(directory) as store:
        assert store.load(first.id) == first


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(ConfigurationError, match=r"thesis\.txt"):
        create_store(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_directorys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises((ConfigurationError, StorageError)):
            create_store(place)
    assert (tmp_path / "file").read_text() == "x"


def test_missing_parents_are_made(tmp_path: Path) -> None:
    create_store(tmp_path / "a" / "b" / "store")
    open_store(tmp_path / "a" / "b" / "store").close()


def test_nothing_is_left_beside_a_new_store(directory: Path) -> None:
    assert [each.name for each in directory.iterdir()] == ["log.sqlite3"]


def test_what_a_killed_init_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite3.99999.new").write_bytes(b"half")
    create_store(tmp_path)
    open_store(tmp_path).close()


@pytest.mark.parametrize("round_", range(10))
def test_of_concurrent_makers_one_wins_and_the_store_is_whole(tmp_path: Path, round_: int) -> None:
    # Once: threads of one process share the draft's name, which has the process id alone: one removes or links what another is writing.
    directory = tmp_path / f"store-{round_}"

    def make(_: int) -> str:
        try:
            create_store(directory)
        except ConfigurationError:
            return "refused"
        return "made"

    with ThreadPoolExecutor(8) as pool:
        results = sorted(pool.map(make, range(8)))
    with open_store(directory) as store:
        stream(store, 2)
    assert results == ["made"] + ["refused"] * 7
