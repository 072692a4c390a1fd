"""A load in a process of its own: `python -m tests.faults.cluster.load_process ADDRESS JOURNAL SHARED`; it ends when its input does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from eventlog.testing import FileJournal
from tests.faults.cluster.load import Load

_END_SECONDS = 90.0


class LoadProcess:
    """The other process, as its parent sees it. A context manager; the history is in the file `journal` afterwards."""

    def __init__(self, address: str, shared: Sequence[str], journal: Path) -> None:
        self.journal = journal
        self._arguments = [sys.executable, "-m", "tests.faults.cluster.load_process", address, str(journal), ",".join(shared)]

    def __enter__(self) -> LoadProcess:
        self._process = subprocess.Popen(
            self._arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "writing\n":
            self._process.communicate()
            raise AssertionError("the other process does not write")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        assert kind is not None or self._process.returncode == 0


def main(address: str, journal: str, shared: str) -> None:
    with FileJournal.open(journal) as file:
        load = Load(address, shared=shared.split(","), journal=file, writers=2)
        sys.stdout.write("writing\n")
        sys.stdout.flush()
        sys.stdin.read()
        load.end()
        for error in load.unexpected:
            raise error


if __name__ == "__main__":
    main(*sys.argv[1:])
