"""A scripted client and view for one partition's writer: they say what a test wants them to, lies included."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from kafka.errors import KafkaError

from eventlog import Checkpoint, CheckpointError, CheckpointId, RunId
from eventlog.address import KafkaAddress
from eventlog.kafka import ownership
from eventlog.kafka.partition import PartitionWriter, State
from eventlog.kafka.refusals import refusal
from eventlog.kafka.rights import Operation
from eventlog.kafka.waiting import Call
from eventlog.log import Outcome
from eventlog.proposing import propose
from eventlog.rules import Head, Proposal


class ScriptedSend:
    """What `send` returns: acknowledged, failed, or not answered yet."""

    def __init__(self, offset: int) -> None:
        self.value = SimpleNamespace(offset=offset)
        self.is_done = False
        self.exception: Exception | None = None

    def failed(self) -> bool:
        return self.exception is not None

    def add_both(self, callback: Callable[..., None]) -> None:
        self.callback = callback

    def acknowledge(self) -> None:
        self.is_done = True

    def fail(self, error: Exception) -> None:
        self.is_done, self.exception = True, error


class ScriptedCommit:
    def __init__(self) -> None:
        self.failed = False
        self.exception: Exception | None = None
        self.answered = False

    def done(self, error: Exception | None = None) -> None:
        self.answered, self.failed, self.exception = True, error is not None, error

    @property
    def succeeded(self) -> bool:
        return self.answered and not self.failed

    def wait(self, timeout_ms: int) -> bool:  # noqa: ARG002
        if self.exception is not None:
            raise self.exception  # as the real one does
        return self.answered


class ScriptedProducer:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.sends: list[ScriptedSend] = []
        self.values: list[bytes] = []
        self.commit = ScriptedCommit()
        self._transaction_manager = SimpleNamespace(begin_commit=self._begin_commit)
        self._sender = SimpleNamespace(wakeup=lambda: None)

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def send(self, topic: str, *, value: bytes, key: bytes, partition: int) -> ScriptedSend:  # noqa: ARG002
        self.calls.append("send")
        self.values.append(value)
        self.sends.append(ScriptedSend(len(self.sends)))
        return self.sends[-1]

    def _begin_commit(self) -> ScriptedCommit:
        self.calls.append("commit")
        return self.commit


class ScriptedView:
    """What the tail has shown."""

    def __init__(self) -> None:
        self.known: dict[str, Head] = {}
        self.events: dict[str, tuple[int, int, int]] = {}
        self.read_up_to = 0

    def heads(self, ids: Sequence[str]) -> dict[str, Head]:
        return {each: self.known[each] for each in ids if each in self.known}

    def next_offset(self, partition: int) -> int:  # noqa: ARG002
        return self.read_up_to

    def seen(self, event_id: str) -> tuple[int, int, int] | None:
        return self.events.get(event_id)

    def seen_at(self, checkpoint_id: str, revision: int) -> str | None:  # noqa: ARG002
        return None

    def blocked(self, checkpoint_id: str) -> str | None:  # noqa: ARG002
        return None

    def show(self, proposal: Proposal, offset: int) -> None:
        self.events[proposal.event_id] = (0, offset, 1_000)
        self.known[proposal.checkpoint_id] = proposal.head(b"h" * 32, 0, offset, 1_000)
        self.read_up_to = max(self.read_up_to, offset + 1)


class Bench:
    """A writer, its scripted surroundings, and what the callers were told."""

    def __init__(self) -> None:
        self.view = ScriptedView()
        self.producers: list[ScriptedProducer] = []
        self.discarded: list[object] = []
        self.refuses: CheckpointError | None = None  # whoever wants to take the partition over
        self.pool = ThreadPoolExecutor(1)
        self.now = time.monotonic()
        self.writer = PartitionWriter(
            topic="orders",
            partition=0,
            view=self.view,  # type: ignore[arg-type]
            ownership=SimpleNamespace(take=self._take, refusal=self._refusal),  # type: ignore[arg-type]
            hold=ownership.Hold(),
            pool=AtOnce(),  # type: ignore[arg-type]
            wake=lambda: None,
        )

    def _take(self, partition: int) -> ScriptedProducer:  # noqa: ARG002
        if self.refuses is not None:
            raise self.refuses
        self.producers.append(ScriptedProducer())
        return self.producers[-1]

    def _refusal(self, error: KafkaError, partition: int) -> CheckpointError | None:  # noqa: ARG002
        return refusal(KafkaAddress(("127.0.0.1:9092",), "orders"), error, operation=Operation.WRITE)

    @property
    def producer(self) -> ScriptedProducer:
        return self.producers[-1]

    def propose(self, count: int = 1, timeout: float = 30.0) -> tuple[list[Proposal], list[Outcome | None]]:
        proposals = [
            propose(Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.order", 1, {}), None, actor=None, max_event_bytes=1 << 20)
            for _ in range(count)
        ]
        told: list[Outcome | None] = []
        call = Call(proposals, timeout=timeout, done=told.extend)
        self.writer.queue.extend(call.items)
        return proposals, told

    def state(self) -> State:
        return self.writer.state

    def run(self, *, seconds: float = 0.0) -> None:
        self.now += seconds
        while self.writer.advance(self.now):
            pass
        self.writer.expire(self.now)


class AtOnce:
    """A pool that runs what it is given in the caller's thread."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except CheckpointError as error:
            future.set_exception(error)
        return future
