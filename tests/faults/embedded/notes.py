"""What a workload says of itself: each attempt before it is made, each answer once it is there.

They go over a socket, by `sendto`: no write that a fault could be counted at, and what was sent is there however the sender dies.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eventlog import Checkpoint, CheckpointError, Receipt

DONE = "done"


def digest_of(payload: Any) -> str:
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


class Attempt(NamedTuple):
    """A revision that somebody tries to commit."""

    number: str  # of the process and in it
    checkpoint_id: str
    revision: int
    event_id: str
    digest: str


class Answer(NamedTuple):
    """What the store said: of an attempt `committed` and the position, or the class of the error."""

    number: str
    outcome: str
    offset: int | None = None


class Step(NamedTuple):
    """A call that commits nothing: begun (no outcome yet), then `done` or the class of the error."""

    name: str
    outcome: str | None = None


@dataclass
class Heard:
    """Everything that a workload has said until it ended."""

    attempts: dict[str, Attempt] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    resolved: list[tuple[str, bool]] = field(default_factory=list)  # of an unknown outcome: whether `resolve` found the event
    steps: list[Step] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        kind, *fields = json.loads(message)
        if kind == "attempt":
            attempt = Attempt(*fields)
            self.attempts[attempt.number] = attempt
        elif kind == "answer":
            answer = Answer(*fields)
            self.answers[answer.number] = answer
        elif kind == "resolved":
            self.resolved.append((fields[0], fields[1]))
        elif kind == "step":
            self.steps.append(Step(*fields))
        elif kind == "counted":
            self.counted[fields[0]] = fields[1]
        else:
            self.violations.append(fields[0])

    def done(self, name: str) -> bool:
        """Whether a step has been answered with success."""
        return Step(name, DONE) in self.steps


class Notes:
    """The workload's end of the socket."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._numbers = itertools.count()

    def attempt(self, checkpoint: Checkpoint) -> str:
        number = f"{os.getpid()}/{next(self._numbers)}"
        fields = (number, checkpoint.id, checkpoint.revision, checkpoint.event_id, digest_of(checkpoint.payload))
        self._send("attempt", *fields)
        return number

    def answer(self, number: str, outcome: Receipt | CheckpointError) -> None:
        if isinstance(outcome, Receipt):
            self._send("answer", number, "committed", outcome.position.next_offset(0) - 1)
        else:
            self._send("answer", number, type(outcome).__name__)

    def resolved(self, number: str, found: bool) -> None:
        self._send("resolved", number, found)

    def step(self, name: str, outcome: str | None = None) -> None:
        self._send("step", name, outcome)

    def counted(self, what: str, number: int) -> None:
        self._send("counted", what, number)

    def violation(self, text: str) -> None:
        self._send("violation", text[-8000:])

    def _send(self, *fields: Any) -> None:
        self._channel.send(json.dumps(fields).encode())


def told(messages: Sequence[str]) -> Heard:
    heard = Heard()
    for message in messages:
        heard.add(message)
    return heard
