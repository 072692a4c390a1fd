"""A worker: a process with a store of its own and several writers. Its history is a file that outlives it.

`python -m tests.chaos.worker ADDRESS HISTORY NAME SEED THREADS TIMEOUTS CHECKPOINTS`; it says "ready", and ends when its input does.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
import threading

from eventlog import CheckpointError, open_store
from eventlog.testing import FileJournal, Recorder
from tests.chaos.workload import Writer


def main(address: str, history: str, name: str, seed: str, threads: int, timeouts: tuple[float, ...], checkpoints: list[str]) -> int:
    faulthandler.enable()
    stop = threading.Event()
    failures: list[BaseException] = []
    try:
        store = open_store(address, actor=name)
    except CheckpointError as error:  # the log is out of reach, or another process has the projection: somebody will start another worker
        sys.stderr.write(f"{name} could not open the store: {type(error).__name__}: {error}\n")
        return 3
    with FileJournal.open(history, session=name) as journal, Recorder(store, journal) as recorder:

        def write(number: int) -> None:
            rng = random.Random(f"{seed}/{name}/{number}")
            writer = Writer(store=recorder, checkpoints=checkpoints, rng=rng, name=f"{name}/{number}", hurried=timeouts)
            try:
                writer.run(stop.is_set)
            except BaseException as error:
                failures.append(error)
                stop.set()
                raise

        running = [threading.Thread(target=write, args=(number,), name=f"writer-{number}") for number in range(threads)]
        for thread in running:
            thread.start()
        os.write(1, b"ready\n")
        threading.Thread(target=_until_told, args=(stop,), daemon=True).start()
        for thread in running:
            thread.join()
    return 1 if failures else 0


def _until_told(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


if __name__ == "__main__":
    where, file, who, drawn, count, seconds, ids = sys.argv[1:]
    sys.exit(main(where, file, who, drawn, int(count), tuple(float(each) for each in seconds.split(",")), ids.split(",")))
