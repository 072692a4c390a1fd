"""Payloads of a wanted size, cut from real conversations between a person and an agent."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

REPOSITORY = Path(__file__).resolve().parents[1]
TRANSCRIPTS = "tau-airline-trajectories.jsonl.gz"
KILOBYTE = 1024
SIZES = (1, 20, 200)

_SYNTHETIC = (
    "I would like to change my reservation {number} to the flight on the {day}th, please, and keep my two checked bags.",
    "The change from {number} costs {day} dollars more. Shall I charge it to the card that ends in {day}? Please answer yes or no.",
    "Yes, go on. And could you tell me whether the insurance for {number} covers a cancellation on the {day}th for a medical reason?",
)


def transcripts_file() -> Path:
    """Where the real conversations are: `data/` of EVENTLOG_SHARED, or of `shared` beside the checkout."""
    return Path(os.environ.get("EVENTLOG_SHARED") or REPOSITORY.parent / "shared") / "data" / TRANSCRIPTS


class Payloads:
    """Agent states `{"phase": ..., "messages": [...]}` whose JSON has the wanted size to the byte, or one less."""

    @property
    def real(self) -> bool:
        return transcripts_file().is_file()

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        """Messages of many conversations one after the other, without the system prompts, which are all the same."""
        return list(self._real_messages() if self.real else _synthetic_messages())

    def of(self, kilobytes: int, *, variant: int = 0) -> dict[str, Any]:
        """A state of a size. Variants start at different conversations."""
        return self._grown(kilobytes * KILOBYTE, start=variant * 7 % len(self.messages))

    def growing(self, steps: int, *, kilobytes: int = 1) -> list[dict[str, Any]]:
        """The states of a transcript that grows by so many kilobytes a step, each with all before it."""
        step = kilobytes * KILOBYTE
        largest = self._grown(steps * step, start=0, step=step)["messages"]
        states: list[dict[str, Any]] = []
        taken: list[dict[str, Any]] = []
        for message in largest:
            taken.append(message)
            if _size(taken) >= (len(states) + 1) * step - 1:
                states.append(_state(list(taken)))
        return states

    def _grown(self, size: int, *, start: int, step: int | None = None) -> dict[str, Any]:
        """Adds whole messages up to `size`; the last one before a multiple of `step`, and before the end, is cut to fit."""
        taken: list[dict[str, Any]] = []
        reached = _size(taken)
        source = self._from(start)
        rest: dict[str, Any] | None = None
        while reached < size - 1:
            message = next(source) if rest is None else rest
            border = size if step is None else min(size, (reached // step + 1) * step)
            message, rest = _cut(message, border - reached - (1 if taken else 0))
            taken.append(message)
            reached = _size(taken)
        return _state(taken)

    def _from(self, start: int) -> Iterator[dict[str, Any]]:
        while True:
            yield from self.messages[start:]
            start = 0

    def _real_messages(self) -> Iterator[dict[str, Any]]:
        with gzip.open(transcripts_file(), "rt", encoding="utf-8") as lines:
            for line in lines:
                yield from (message for message in json.loads(line)["messages"] if message["role"] != "system")


def _synthetic_messages() -> Iterator[dict[str, Any]]:
    for number in range(2_000):
        text = _SYNTHETIC[number % len(_SYNTHETIC)].format(number=f"R{number * 7919 % 100_003:06d}", day=number * 31 % 28 + 1)
        yield {"role": ("user", "assistant")[number % 2], "content": text}


def _state(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"phase": {"state": "ready_for_turn", "turn": 1}, "messages": messages}


def _size(messages: list[dict[str, Any]]) -> int:
    return len(orjson.dumps(_state(messages)))


def _cut(message: dict[str, Any], room: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A message that takes at most `room` bytes of JSON, and what is left of it."""
    if len(orjson.dumps(message)) <= room:
        return message, None
    role, content = message["role"], str(message.get("content") or "").encode("ascii", "replace").decode()
    bare = len(orjson.dumps({"role": role, "content": ""}))
    if room <= bare:  # no room for a message: one of exactly this size, as far as there can be one
        return {"r": "-" * max(0, room - len('{"r":""}'))}, message
    kept = content[: room - bare]
    while len(orjson.dumps({"role": role, "content": kept})) > room:
        kept = kept[:-1]
    kept += "." * (room - len(orjson.dumps({"role": role, "content": kept})))
    rest = content[len(kept) :]
    return {"role": role, "content": kept}, {"role": role, "content": rest} if rest else None
