"""A broker for the benchmarks: one of their own, started when the first benchmark asks for it, or a given one."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.row import NotMeasured
from eventlog import create_store
from eventlog.errors import CheckpointError
from eventlog.kafka.local import LocalBroker, missing_tools

GIVEN = "EVENTLOG_BENCH_KAFKA"


class KafkaAccess:
    """Where Kafka is. EVENTLOG_BENCH_KAFKA=host:port uses a running broker; its JVM should have its optimising compiler."""

    def __init__(self, *, directory: Path) -> None:
        self._directory = directory / "broker"
        self._broker: LocalBroker | None = None
        self._servers = os.environ.get(GIVEN)

    @property
    def servers(self) -> str:
        """host:port. Raises `NotMeasured` where there is no broker and none can be started."""
        if self._servers is None:
            missing = missing_tools()
            if missing:
                raise NotMeasured(f"{' and '.join(missing)} not found: install Java 17 and Maven, or set {GIVEN}=host:port")
            self._broker = LocalBroker(directory=self._directory, fast_start=False)
            try:
                self._broker.up()
            except CheckpointError as error:
                raise NotMeasured(f"no broker: {error}") from error
            self._servers = self._broker.bootstrap
        return self._servers

    def topic(self, name: str) -> str:
        """An unused topic name."""
        return f"bench-{name}-{uuid.uuid4().hex[:12]}"

    def store(self, topic: str, state: Path, *, partitions: int = 1) -> str:
        """Makes a store on a new topic; its address. `state` is where this process keeps its projection."""
        create_store(self.address(topic, state), partitions=partitions)
        return self.address(topic, state)

    def address(self, topic: str, state: Path) -> str:
        """A store's address."""
        return f"kafka://{self.servers}/{topic}?state={state}"

    def close(self) -> None:
        """Ends the broker, if it is ours. Its files go with the directory."""
        if self._broker is not None:
            self._broker.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
