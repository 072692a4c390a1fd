"""Victims as processes: started by a fork of one that has imported everything, watched through /proc."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.faults.kafka.workload import Errand, run
from tests.waiting import eventually

# Importing the store takes a second of processor time, a fork of a process that has done it 10 ms: there are a hundred victims.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([run.__module__, "eventlog.kafka.log"])  # the latter is imported only when a topic is opened
_SECONDS = 90.0


class Victim:
    """A process on an errand."""

    def __init__(self, errand: Errand) -> None:
        self.errand = errand
        self._process: ForkServerProcess = _CONTEXT.Process(target=run, args=(errand,), daemon=True)
        self._process.start()

    def await_death(self) -> None:
        self._process.join(_SECONDS)
        assert self._process.exitcode == -signal.SIGKILL, f"it ended by itself ({self._process.exitcode}): the point was never reached"

    def await_stop(self) -> None:
        eventually(lambda: self._state() == "T" or self._process.exitcode is not None, seconds=_SECONDS)
        assert self._process.exitcode is None, f"it ended by itself ({self._process.exitcode}): the point was never reached"

    def resume(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def await_end(self) -> None:
        self._process.join(_SECONDS)
        assert self._process.exitcode == 0

    def end(self) -> None:
        """Whatever state it is in."""
        self._process.kill()
        self._process.join(_SECONDS)
        self._process.close()

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _state(self) -> str:
        try:
            return Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "gone"
