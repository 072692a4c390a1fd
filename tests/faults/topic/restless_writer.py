"""A process that writes for as long as it is let: threads that meet on shared checkpoints, and make, write and delete ones of their own.

What each call was told goes to a journal that survives the process being killed.
"""

from __future__ import annotations

import random
import sys
import threading

from eventlog import Checkpoint, CheckpointError, CheckpointId, Conflict, OutcomeUnknown, Position, RunId, open_store
from eventlog.testing import FileJournal, Recorder

THREADS = 3
SHORT_LIFE = 4  # revisions of a checkpoint of one's own before it is deleted


class Writer:
    """One thread's work."""

    def __init__(self, recorder: Recorder, shared: list[str], seed: str, stop: threading.Event) -> None:
        self.recorder = recorder
        self.shared = shared
        self.random = random.Random(seed)
        self.stop = stop
        self.tried: Checkpoint | None = None

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                if self.random.random() < 0.75:
                    self.meet()
                else:
                    self.live_and_die()
            except OutcomeUnknown:
                self.settle()
            except CheckpointError:
                self.stop.wait(0.02)  # a conflict, or a broker that is busy: look again

    def meet(self) -> None:
        """Two revisions behind what was seen last; somebody else may have been faster."""
        current = self.load(self.random.choice(self.shared))
        for _ in range(2):
            following = current.next({"by": self.random.random()})
            self.commit(following, current.revision)
            current = following

    def load(self, checkpoint_id: str) -> Checkpoint:
        if self.random.random() < 0.3:
            return self.recorder.load(checkpoint_id)  # type: ignore[no-any-return]
        return self.recorder.load(checkpoint_id, at_least=Position())  # type: ignore[no-any-return]

    def live_and_die(self) -> None:
        own = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.short", 1, {})
        self.commit(own, None)
        for revision in range(SHORT_LIFE):
            own = own.next({"revision": revision})
            self.commit(own, revision)
        self.recorder.delete(own.id, own.revision)
        try:
            self.recorder.compare_and_swap(own.next({"after": "its deletion"}), own.revision)
        except Conflict:
            return

    def commit(self, checkpoint: Checkpoint, expected: int | None) -> None:
        self.tried = checkpoint
        self.recorder.compare_and_swap(checkpoint, expected)

    def settle(self) -> None:
        """By its place: where compaction is at work, an event id alone is not found."""
        try:
            self.recorder.resolve(self.tried, timeout=10)  # type: ignore[arg-type]
        except CheckpointError:
            return  # still unknown: the history says so


def main(address: str, journal: str, shared: list[str], seed: str) -> None:
    stop = threading.Event()
    with FileJournal.open(journal) as history, Recorder(open_store(address, timeout=10), history) as recorder:
        threads = [threading.Thread(target=Writer(recorder, shared, f"{seed}-{number}", stop).run) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        sys.stdout.write("writing\n")
        sys.stdout.flush()
        sys.stdin.readline()
        stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4])
