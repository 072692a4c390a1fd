"""The two logs as chaos meets them: where the store is, what can happen to it besides its writers' fate, and how it is judged."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import ClassVar

from eventlog import CheckpointStore, create_store, open_store
from eventlog.kafka.local import LocalBroker

Disturbance = Callable[[random.Random], None]

# A cleaner that is always at it, and transactions that the broker gives up soon: hours of a cluster in minutes.
_RESTLESS = {
    "log.cleaner.backoff.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "5000",
}


class Ground(ABC):
    """A store that outlives the episodes."""

    NAME: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.happened: Counter[str] = Counter()

    @abstractmethod
    def standing(self) -> AbstractContextManager[None]:
        """The store exists within."""

    @abstractmethod
    def addresses(self, workers: int) -> list[str]:
        """One for each worker's place."""

    @abstractmethod
    def disturbances(self) -> dict[str, tuple[float, Disturbance]]:
        """By name: how often beside the others, and what happens. Each ends what it began."""

    @abstractmethod
    def opened(self) -> CheckpointStore:
        """Afresh, when nobody else has it open: the yardstick."""

    @abstractmethod
    def rebuilt(self) -> CheckpointStore:
        """With a projection that is made from the log alone."""


class EmbeddedGround(Ground):
    """A directory that all workers share."""

    NAME = "embedded"

    @contextmanager
    def standing(self) -> Iterator[None]:
        create_store(self.folder / "store")
        yield

    def addresses(self, workers: int) -> list[str]:
        return [str(self.folder / "store")] * workers

    def disturbances(self) -> dict[str, tuple[float, Disturbance]]:
        return {"the log locked by somebody else": (1.0, self._lock), "a reader that keeps the journal from being reset": (1.0, self._read)}

    def opened(self) -> CheckpointStore:
        return open_store(self.folder / "store", timeout=60)

    def rebuilt(self) -> CheckpointStore:
        for path in (self.folder / "store").glob("projection*"):
            path.unlink()
        return self.opened()

    def _lock(self, rng: random.Random) -> None:
        with closing(sqlite3.connect(self._log, isolation_level=None, timeout=10)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:  # the workers were quicker for ten seconds
                return
            time.sleep(rng.uniform(0.05, 3.0))
            connection.execute("ROLLBACK")

    def _read(self, rng: random.Random) -> None:
        with closing(sqlite3.connect(self._log, isolation_level=None, timeout=10)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            time.sleep(rng.uniform(0.05, 3.0))
            connection.execute("ROLLBACK")

    @property
    def _log(self) -> Path:
        return self.folder / "store" / "log.sqlite3"


class KafkaGround(Ground):
    """A topic on a broker of its own; each worker's place has a projection of its own, which the next worker there finds as it was left."""

    NAME = "kafka"
    PARTITIONS = 2

    @contextmanager
    def standing(self) -> Iterator[None]:
        self._broker = LocalBroker(directory=self.folder / "broker", fast_start=True, config=_RESTLESS)
        try:
            self._broker.up(timeout=120)
            self._address = f"kafka://{self._broker.bootstrap}/chaos"
            create_store(self._address, partitions=self.PARTITIONS)
            yield
        finally:
            self._broker.kill()

    def addresses(self, workers: int) -> list[str]:
        return [f"{self._address}?state={self.folder / f'state-{place}'}" for place in range(workers)]

    def disturbances(self) -> dict[str, tuple[float, Disturbance]]:
        return {"broker killed and started again": (0.5, self._kill), "broker stopped for a while": (1.0, self._pause)}

    def opened(self) -> CheckpointStore:
        return open_store(self.addresses(1)[0], timeout=60)

    def rebuilt(self) -> CheckpointStore:
        state = self.folder / "state-rebuilt"
        shutil.rmtree(state, ignore_errors=True)
        return open_store(f"{self._address}?state={state}", timeout=60)

    def _kill(self, rng: random.Random) -> None:
        self._broker.kill()
        time.sleep(rng.uniform(0.0, 2.0))
        self._broker.up(timeout=120)

    def _pause(self, rng: random.Random) -> None:
        self._broker.pause()
        time.sleep(rng.choice((0.2, 1.0, 3.0, 8.0)))
        self._broker.resume()


GROUNDS: tuple[type[Ground], ...] = (EmbeddedGround, KafkaGround)
