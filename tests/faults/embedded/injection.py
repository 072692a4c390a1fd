"""Runs tasks in processes of their own, under strace where it is to inject a fault, and hears what they say until they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.faults.embedded.notes import Heard, told

REPOSITORY = Path(__file__).resolve().parents[3]
_SECONDS = 120.0  # for a task that takes half a second: it hangs

# Every call by which Linux lets a file, a name or its durability change. A `?` skips what a machine does not have. Stores into mapped
# memory (SQLite's -shm) are no calls; that file is rebuilt from the journal by whoever opens the store first.
CHANGING = (
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "fallocate", "ftruncate"),
    *("fdatasync", "fsync", "sync_file_range"),
    *("?rename", "renameat", "renameat2", "?link", "linkat", "?symlink", "symlinkat", "?unlink", "unlinkat", "?mkdir", "mkdirat", "?rmdir"),
)


class Ended(NamedTuple):
    """How a task has ended: what it said, its exit code (negative: a signal), and strace's lines."""

    said: list[str]
    code: int
    trace: list[str]

    @property
    def heard(self) -> Heard:
        return told(self.said)

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def injected(self) -> int:
        """How many calls were made to fail."""
        return sum("(INJECTED)" in line for line in self.trace)


class WarmProcess:
    """The process that others are forked from, as a context manager. One task at a time."""

    def __enter__(self) -> Self:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.faults.embedded.warm_process"]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        self._process = subprocess.Popen(command, stdin=theirs.fileno(), env=environment, cwd=REPOSITORY)
        theirs.close()
        self._control.settimeout(_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._control.close()
        if self._process.wait(30) != 0 and error is None:
            raise AssertionError(f"the warm process has ended with {self._process.returncode}")

    def run(self, task: str, *arguments: Any, strace: Sequence[str] = (), trace: Path | None = None) -> Ended:
        """Runs a task to its end, under strace with the options given; `trace` is where its lines go."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            ours.settimeout(_SECONDS)
            with theirs:
                socket.send_fds(self._control, [json.dumps([task, arguments], default=str).encode()], [theirs.fileno()])
            pid = int(self._control.recv(64))
            tracer = self._attach(pid, [*strace, "-o", str(trace or os.devnull)]) if strace else None
            try:
                ours.send(b"go")
                messages = list(iter(lambda: ours.recv(1 << 17), b""))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
            finally:
                code = int(self._control.recv(64))
                if tracer is not None:
                    tracer.communicate(timeout=_SECONDS)
        return Ended([message.decode() for message in messages], code, trace.read_text().splitlines() if trace else [])

    def _attach(self, pid: int, options: list[str]) -> subprocess.Popen[str]:
        tracer = subprocess.Popen(["strace", "-f", "-p", str(pid), *options], stderr=subprocess.PIPE, text=True)
        assert tracer.stderr is not None
        line = tracer.stderr.readline()
        if "attached" not in line:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"strace did not attach: {line}{tracer.communicate()[1]}")
        return tracer
