"""A LangGraph saver used as its own runtime does: a new id a step, the state in the channels. It does not compare: the last writer wins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from benchmarks.peers.peer import Session, State


class SaverSession(Session):
    """Steps of any number of threads of one saver.

    Arguments:
        saver: a `BaseCheckpointSaver`.
    """

    def __init__(self, saver: Any) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        self._saver = saver
        self._template: dict[str, Any] = dict(empty_checkpoint())
        self._configs: dict[str, Any] = {}

    def commit(self, stream: str, expected: int | None, state: State) -> None:
        from langgraph.checkpoint.base.id import uuid6

        step = 1 if expected is None else expected + 2
        checkpoint: dict[str, Any] = {
            **self._template,
            "id": str(uuid6(clock_seq=step)),
            "ts": datetime.now(UTC).isoformat(),
            "channel_values": state,
            "channel_versions": {"messages": step},
        }
        metadata = {"source": "loop", "step": step, "parents": {}}
        before = self._configs.get(stream) or _thread(stream)
        self._configs[stream] = self._saver.put(before, checkpoint, metadata, {"messages": step})

    def load(self, stream: str) -> object:
        return self._saver.get_tuple(_thread(stream))

    def history(self, stream: str) -> int:
        return len(list(self._saver.list(_thread(stream))))


def _thread(stream: str) -> Any:
    return {"configurable": {"thread_id": stream, "checkpoint_ns": ""}}
