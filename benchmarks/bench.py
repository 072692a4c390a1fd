"""What a benchmark is given: how much to do, where, with which payloads, and how rounds are interleaved."""

from __future__ import annotations

import gc
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from benchmarks.kafka_broker import KafkaAccess
from benchmarks.payloads import Payloads
from benchmarks.row import Latency, Sample, Side

Contestant = Callable[[], Sample]
Caller = Callable[[], AbstractContextManager[Callable[[], object]]]
Item = TypeVar("Item")

_SLICES = 10  # of a round, in which contestants take turns


class Bench:
    """Passed to every benchmark's `run`.

    Arguments:
        rounds: how often each contestant is measured.
        quick: a smoke run: little work, one round, figures that mean nothing.
        directory: on the disk that is to be measured.
    """

    def __init__(self, *, rounds: int, quick: bool, directory: Path, kafka: KafkaAccess, say: Callable[[str], None]) -> None:
        self.rounds = rounds
        self.quick = quick
        self.directory = directory
        self.kafka = kafka
        self.say = say
        self.payloads = Payloads()
        self.notes: list[str] = []

    def count(self, full: int, quick: int) -> int:
        """How much to do."""
        return quick if self.quick else full

    def note(self, text: str) -> None:
        """Something that whoever reads the figures must know. Said at once, kept with the results."""
        if text not in self.notes:
            self.notes.append(text)
            self.say(f"NOTE: {text}")

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty directory on the measured disk, removed afterwards."""
        path = Path(tempfile.mkdtemp(dir=self.directory))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def interleave(self, contestants: Mapping[str, Contestant], *, warm_up: int = 1) -> dict[str, Side]:
        """Measures A B C, A B C, ...; the first `warm_up` rounds are thrown away (none in a quick run).

        A contestant prepares, does its work, times only that, and cleans up behind itself.
        """
        return self._rounds(list(contestants), lambda: [contestant() for contestant in _collected(contestants.values())], warm_up)

    def interleave_calls(
        self, callers: Mapping[str, Caller], calls: int, *, measure: Measure | None = None, warm_up: int = 1
    ) -> dict[str, Side]:
        """The same for contestants that are one call repeated `calls` times a round. Within a round they take turns too, a slice of calls
        each, so that what else the machine does meets all of them.

        Arguments:
            callers: opened anew for each round; gives the call.
            measure: what a round's figure is; calls a second when None.
        """

        def one_round() -> list[Sample]:
            with ExitStack() as stack:
                opened = [stack.enter_context(caller()) for caller in callers.values()]
                watches = [Stopwatch() for _ in opened]
                for share in _shares(calls):
                    for call, watch in _collected(list(zip(opened, watches, strict=True))):
                        watch.repeat(call, share)
                return [(measure or Stopwatch.per_second)(watch) for watch in watches]

        return self._rounds(list(callers), one_round, warm_up)

    def _rounds(self, names: Sequence[str], one_round: Callable[[], Sequence[Sample]], warm_up: int) -> dict[str, Side]:
        gc.collect()
        gc.freeze()  # the payloads are many objects; whoever's turn it is would have to look through them at every full collection
        try:
            for _ in range(0 if self.quick else warm_up):
                one_round()
            rounds = [one_round() for _ in range(self.rounds)]
        finally:
            gc.unfreeze()
        return {name: Side(name, tuple(samples)) for name, samples in zip(names, zip(*rounds, strict=True), strict=True)}


def standing(call: Callable[[], object]) -> Caller:
    """A caller whose call needs no preparation."""
    return lambda: nullcontext(call)


def _collected(contestants: Iterable[Item]) -> Iterator[Item]:
    """Nobody starts with the garbage of whoever came before."""
    for contestant in contestants:
        gc.collect()
        yield contestant


def _shares(calls: int) -> list[int]:
    count = min(_SLICES, calls)
    return [calls * (number + 1) // count - calls * number // count for number in range(count)]


class Stopwatch:
    """Times calls one by one."""

    __slots__ = ("_elapsed", "_seconds")

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._elapsed = 0.0

    def repeat(self, call: Callable[[], object], times: int) -> None:
        """Makes a call again and again."""
        append, clock = self._seconds.append, time.perf_counter
        started = before = clock()
        for _ in range(times):
            call()
            now = clock()
            append(now - before)
            before = now
        self._elapsed += time.perf_counter() - started

    def at_once(self, calls: Sequence[Callable[[], object]], times: int) -> None:
        """Makes each call again and again in a thread of its own, all together. Raises what the first of them to fail raised."""
        ready = threading.Barrier(len(calls) + 1)
        failures: list[BaseException] = []

        def caller(call: Callable[[], object]) -> None:
            ready.wait()
            try:
                now = time.perf_counter()
                for _ in range(times):
                    call()
                    now = self.lap(now)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=caller, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        ready.wait()
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self.ran(time.perf_counter() - started)

    def lap(self, since: float) -> float:
        """Ends a call that began at `since`, one of several at a time; returns now, which is when the caller's next one begins."""
        now = time.perf_counter()
        self._seconds.append(now - since)
        return now

    def ran(self, seconds: float) -> None:
        """How long all laps took together."""
        self._elapsed += seconds

    def per_second(self) -> Sample:
        """Calls a second, with their latencies."""
        return Sample(len(self._seconds) / self._elapsed, Latency.of(self._seconds))

    def p50(self) -> Sample:
        """The median call in milliseconds."""
        latency = Latency.of(self._seconds)
        return Sample(latency.p50, latency)


Measure = Callable[[Stopwatch], Sample]
