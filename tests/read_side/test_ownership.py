"""One owner per file, of the right log, readable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from projections.errors import ProjectionDamaged, ProjectionError, ProjectionForeign, ProjectionLocked
from projections.identity import FORMAT_VERSION
from tests.read_side.samples import batch_of, everything, log, opened, row

OPEN_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from projections.engine import Projection
from projections.errors import ProjectionLocked
try:
    Projection(path=Path(sys.argv[1]), store_id="store-1", partitions=4, keep_events=True).open()
except ProjectionLocked as error:
    sys.stdout.write(error.owner)
"""


def in_another_process(code: str, *arguments: str) -> str:
    root = Path(__file__).parents[2]
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(root)}
    )
    return finished.stdout


def test_a_second_process_is_told_who_owns_the_file(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb"):
        assert in_another_process(OPEN_IN_ANOTHER_PROCESS, str(tmp_path / "p.duckdb")) == str(os.getpid())
    assert in_another_process(OPEN_IN_ANOTHER_PROCESS, str(tmp_path / "p.duckdb")) == ""


def test_a_second_projection_of_the_same_process_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as first:
        with pytest.raises(ProjectionLocked) as caught:
            opened(tmp_path / "p.duckdb").open()
        assert caught.value.owner == str(os.getpid())
        first.apply(batch_of([row(1)]))
    opened(tmp_path / "p.duckdb").open().close()


def test_a_file_that_plain_duckdb_holds_in_another_process_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "p.duckdb"
    opened(path).open().close()
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(ProjectionLocked) as caught:
            opened(path).open()
        assert caught.value.owner == str(holder.pid)
    finally:
        holder.communicate()
    opened(path).open().close()


@pytest.mark.parametrize(
    ("other", "named"),
    [({"store_id": "store-2"}, "store-1"), ({"partitions": 5}, "partitions 4"), ({"keep_events": False}, "keep_events True")],
)
def test_a_file_of_another_log_is_refused(tmp_path: Path, other: dict[str, object], named: str) -> None:
    opened(tmp_path / "p.duckdb").open().close()
    with pytest.raises(ProjectionForeign, match=named):
        opened(tmp_path / "p.duckdb", **other).open()  # type: ignore[arg-type]
    opened(tmp_path / "p.duckdb").open().close()


def test_a_newer_format_is_refused_by_its_version(tmp_path: Path) -> None:
    opened(tmp_path / "p.duckdb").open().close()
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.execute("UPDATE meta SET format_version = 99")
    with pytest.raises(ProjectionForeign) as caught:
        opened(tmp_path / "p.duckdb").open()
    assert (caught.value.expected, caught.value.found) == (f"format version {FORMAT_VERSION}", "format version 99")


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.execute("CREATE TABLE accounts AS SELECT 1 AS id")
    with pytest.raises(ProjectionForeign, match="another kind"):
        opened(tmp_path / "p.duckdb").open()
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("accounts",)]


@pytest.mark.parametrize("damage", ["garbage", "empty", "header only", "half", "all but the end", "overwritten headers"])
def test_a_damaged_file_is_named_as_damaged(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "p.duckdb"
    with opened(path) as projection:
        projection.apply(batch_of(log(200, 5, event_size=1000)))
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(
        {
            "garbage": b"this is no database" * 1000,
            "empty": b"",
            "header only": content[:12288],
            "half": content[:half],
            "all but the end": content[: -len(content) // 10],
            "overwritten headers": content[:4096] + os.urandom(8192) + content[12288:],
        }[damage]
    )
    with pytest.raises(ProjectionDamaged, match=r"p\.duckdb"), opened(path) as projection:
        everything(projection)
    path.unlink()
    opened(path).open().close()  # the lock was given up: a rebuild can start at once


def test_a_block_that_rots_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.duckdb"
    with opened(path) as projection:
        projection.apply(batch_of(log(400, 5, event_size=1000)))
    content = bytearray(path.read_bytes())
    for start in range(200_000, len(content), 60_000):
        content[start : start + 100] = os.urandom(100)
    path.write_bytes(content)
    with pytest.raises(ProjectionDamaged), opened(path) as projection:
        everything(projection)


def test_a_missing_directory_is_not_called_damage(tmp_path: Path) -> None:
    with pytest.raises((ProjectionError, FileNotFoundError)) as caught:
        opened(tmp_path / "nowhere" / "p.duckdb").open()
    assert not isinstance(caught.value, ProjectionDamaged)


def test_a_forked_child_may_not_use_it(tmp_path: Path) -> None:
    code = """
import os, sys, warnings
from pathlib import Path
from projections.engine import Projection
from projections.errors import ProjectionError
warnings.simplefilter("ignore")
projection = Projection(path=Path(sys.argv[1]), store_id="s", partitions=1, keep_events=True).open()
projection.positions()
child = os.fork()
if child == 0:
    try:
        projection.positions()
    except ProjectionError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
projection.close()
"""
    assert "forked" in in_another_process(code, str(tmp_path / "p.duckdb"))


def test_settings_are_explicit_and_locked(tmp_path: Path) -> None:
    with opened(tmp_path / "it's here.duckdb") as projection:
        names = "('memory_limit', 'threads', 'TimeZone', 'enable_external_access', 'lock_configuration', 'autoload_known_extensions')"
        settings: dict[str, str] = dict(projection.query(f"SELECT name, value FROM duckdb_settings() WHERE name IN {names}"))
        assert settings == {
            "memory_limit": "244.1 MiB",
            "threads": "2",
            "TimeZone": "UTC",
            "enable_external_access": "false",
            "lock_configuration": "true",
            "autoload_known_extensions": "false",
        }
        with projection.cursor() as cursor, pytest.raises(ProjectionError, match="locked"):
            cursor.fetch("SET threads = 1")
