"""One process of the operating system, told apart from any later one that gets the same number."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "stat").exists()
_ENDED = frozenset("ZX")  # a zombie has ended; nobody has asked for its exit status yet


@dataclass(frozen=True)
class ProcessIdentity:
    """A process id together with when the process started: the pair is never used twice."""

    pid: int
    started: str  # opaque: the kernel's start time, and which boot it counts from

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this id now, or None."""
        seen = _look(pid)
        return None if seen is None or seen[1] in _ENDED else cls(pid, seen[0])

    def is_alive(self) -> bool:
        """Whether this very process still runs. Reaps it if it was a child of the caller and has ended."""
        seen = _look(self.pid)
        if seen is None or seen[0] != self.started:
            return False
        if seen[1] in _ENDED:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            return False
        return True

    def send(self, signal_number: signal.Signals) -> bool:
        """Send a signal to this very process; False when it has ended, whoever has its id by now."""
        try:
            handle = os.pidfd_open(self.pid) if _HAS_PROC else None
        except ProcessLookupError:
            return False
        try:
            # The handle keeps pointing at one process, so the identity that is checked here is the one that is signalled.
            if not self.is_alive():
                return False
            if handle is None:
                os.kill(self.pid, signal_number)
            else:
                signal.pidfd_send_signal(handle, signal_number)
        except ProcessLookupError:
            return False
        finally:
            if handle is not None:
                os.close(handle)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until the process has ended; False when it still runs after so many seconds."""
        deadline = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True


def _look(pid: int) -> tuple[str, str] | None:
    """Start time and state letter of a process, or None when there is no such process."""
    if _HAS_PROC:
        try:
            stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The second field is the command in parentheses and may hold anything; state is the first field behind it, start time the 20th.
        fields = stat.rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{fields[19]}", fields[0]
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    ).stdout.split(maxsplit=1)
    return (answer[1].strip(), answer[0][0]) if len(answer) == 2 else None
