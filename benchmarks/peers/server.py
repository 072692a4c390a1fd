"""A server of somebody else's for a benchmark: on loopback, in a directory of its own, ended with the benchmark."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_START_SECONDS = 120.0  # a machine may be busy with the round before
_STOP_SECONDS = 20.0


def free_port() -> int:
    """A port that nothing uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def serving(command: Sequence[str], port: int, output: Path, *, user: str | None = None) -> Iterator[None]:
    """Runs a server until the block ends.

    Arguments:
        port: it is up when somebody listens there.
        output: where its output goes; in the message, if it does not come up.
        user: whom it runs as; None: as this process.

    Raises `RuntimeError` if it does not come up within 120 s.
    """
    with output.open("wb") as written:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, user=user, cwd=output.parent)
    try:
        _await(server, port, output)
        yield
    finally:
        server.terminate()
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _await(server: subprocess.Popen[bytes], port: int, output: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < ends:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"{server.args!r} did not come up:\n{output.read_text(errors='replace')[-2000:]}")


def given_to(user: str | None, directory: Path) -> None:
    """Makes a directory another user's, with everything above it open to pass through; nothing when `user` is None."""
    if user is None:
        return
    import pwd

    found = pwd.getpwnam(user)
    os.chown(directory, found.pw_uid, found.pw_gid)
    for parent in directory.parents:
        if parent.stat().st_uid == os.geteuid() and parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
