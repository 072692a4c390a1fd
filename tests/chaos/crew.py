"""The workers of an episode: started, killed, stopped for a while, replaced; and what they left behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import eventually

REPOSITORY = Path(__file__).parents[2]
COULD_NOT_OPEN = 3
_AT_WORK_BYTES = 20_000  # of history: about a hundred operations
_LAST_SECONDS = 120.0  # for a worker to finish what it is at, its longest time-out included, on a busy machine


@dataclass
class Worker:
    """One process."""

    name: str
    history: Path
    process: subprocess.Popen[bytes]
    stopped: bool = False

    @property
    def is_at_work(self) -> bool:
        return self.history.exists() and self.history.stat().st_size > _AT_WORK_BYTES


@dataclass
class Crew:
    """Keeps a number of workers at work.

    Arguments:
        address: of the store, by the number of a worker's place: processes that share a place never live at the same time.
        timeouts: of the writes, in seconds.
    """

    addresses: list[str]
    folder: Path
    checkpoints: list[str]
    rng: random.Random
    threads: int = 3
    timeouts: tuple[float, ...] = (1.0, 5.0, 20.0)
    happened: Counter[str] = field(default_factory=Counter)
    histories: list[Path] = field(default_factory=list)
    ended: dict[str | Path, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _places: dict[int, Worker] = field(default_factory=dict)
    _started: int = 0

    def staff(self) -> None:
        """Fills every empty place."""
        for place in range(len(self.addresses)):
            worker = self._places.get(place)
            if worker is not None and worker.process.poll() is not None:
                self._buried(place)
                worker = None
            if worker is None:
                self._start(place)

    def kill_one(self) -> None:
        """SIGKILL, whatever it is at."""
        place = self._anybody()
        if place is not None:
            self._places[place].process.send_signal(signal.SIGKILL)
            self._places[place].process.wait()
            self.happened["workers killed"] += 1
            self._buried(place)

    def stop_one(self) -> Worker | None:
        """SIGSTOP; `go_on` ends it."""
        place = self._anybody()
        if place is None:
            return None
        worker = self._places[place]
        worker.process.send_signal(signal.SIGSTOP)
        worker.stopped = True
        self.happened["workers stopped for a while"] += 1
        return worker

    def go_on(self, worker: Worker) -> None:
        """SIGCONT, if it still lives."""
        if worker.stopped and worker.process.poll() is None:
            worker.process.send_signal(signal.SIGCONT)
        worker.stopped = False

    def finish(self) -> None:
        """Lets everybody finish. Whoever does not in time is a failure of the store: every call is bounded."""
        for worker in self._places.values():
            self.go_on(worker)
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        ends = time.monotonic() + _LAST_SECONDS
        for place, worker in list(self._places.items()):
            try:
                worker.process.wait(max(0.1, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.send_signal(signal.SIGABRT)  # faulthandler prints where every thread is
                worker.process.wait()
                self.failed.append(f"{worker.name} did not end within {_LAST_SECONDS:.0f} s of being told to")
            self._buried(place)

    def kill_all(self) -> None:
        """Whatever happens, nobody is left behind."""
        for worker in self._places.values():
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()

    def _anybody(self) -> int | None:
        """One in four times also somebody who has not begun yet: opening a store must survive it too, but proves little else."""
        living = [place for place, each in self._places.items() if each.process.poll() is None and not each.stopped]
        if self.rng.random() < 0.75:
            living = [place for place in living if self._places[place].is_at_work]
        return self.rng.choice(living) if living else None

    def _start(self, place: int) -> None:
        self._started += 1
        name = f"worker-{self._started}"
        history = self.folder / f"{name}.jsonl"
        arguments = [self.addresses[place], str(history), name, str(self.rng.getrandbits(32)), str(self.threads)]
        arguments += [",".join(map(str, self.timeouts)), ",".join(self.checkpoints)]
        with (self.folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.worker", *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
            )
        self._places[place] = Worker(name, history, process)
        self.happened["workers started"] += 1

    def _buried(self, place: int) -> None:
        """The history of whoever has ended counts; how it ended is judged."""
        worker = self._places.pop(place)
        if worker.process.stdin is not None:
            worker.process.stdin.close()
        if worker.history.exists():
            self.histories.append(worker.history)
            self.ended[worker.history] = time.monotonic_ns()
        code = worker.process.returncode
        if code == COULD_NOT_OPEN:
            self.happened["workers that could not open the store"] += 1
        elif code not in (0, -signal.SIGKILL):
            output = (self.folder / f"{worker.name}.log").read_text(errors="replace")[-4000:]
            self.failed.append(f"{worker.name} ended with {code}:\n{output}")

    def await_work(self) -> None:
        """Returns when somebody is at work."""
        eventually(lambda: any(each.history.exists() for each in self._places.values()), seconds=120)
