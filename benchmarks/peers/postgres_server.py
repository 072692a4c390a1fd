"""A PostgreSQL server, made anew. It refuses to run as root: then it runs as `postgres`, or `nobody`."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.server import free_port, given_to, serving

_DEBIAN = Path("/usr/lib/postgresql")


def missing() -> str | None:
    """What has to be installed; None: nothing."""
    if _program("initdb") is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    return None if find_spec("psycopg") is not None else "psycopg is not installed: pip install '.[bench]'"


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """A new, empty server with its own settings for durability (fsync, synchronous_commit: on); its connection string."""
    user = _user()
    data = directory / "data"
    data.mkdir()
    given_to(user, data)
    made = subprocess.run(
        [str(_program("initdb")), "-D", str(data), "-A", "trust", "-U", "bench", "-E", "UTF8", "--locale", "C"],
        user=user,
        cwd=data,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")
    port = free_port()
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "150", "shared_buffers": "256MB"}
    command = [str(_program("postgres")), "-D", str(data), "-p", str(port)]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    conninfo = f"host=127.0.0.1 port={port} user=bench dbname=postgres"
    with serving(command, port, directory / "output", user=user):
        _await_start(conninfo)
        yield conninfo


def bytes_of_tables(conninfo: str) -> int:
    """What tables hold on disk, with their indexes and large values; the server's own catalogue and journal are left out, in its favour."""
    import psycopg

    query = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    with psycopg.connect(conninfo) as connection:
        found = connection.execute(query).fetchone()
    return int(found[0]) if found is not None and found[0] is not None else 0


def _await_start(conninfo: str) -> None:
    """It listens before it lets anybody in."""
    import psycopg

    for _ in range(6_000):
        try:
            psycopg.connect(conninfo).close()
        except psycopg.OperationalError as error:
            if "starting up" not in str(error):
                raise
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("PostgreSQL did not finish its start within 120 s")


def _program(name: str) -> Path | None:
    found = [*sorted(_DEBIAN.glob(f"*/bin/{name}"), reverse=True)]
    on_path = shutil.which(name)
    return found[0] if found else Path(on_path) if on_path else None


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
