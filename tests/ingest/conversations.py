"""Conversations to ingest, and what became of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eventlog import CheckpointStore, Revision


def conversation(number: int, turns: int, *, words: int = 20) -> dict[str, Any]:
    """A conversation with tool calls, which ends with a message of the user."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": f"Policy {number}."}, {"role": "user", "content": "Hello. " * words}]
    for turn in range(turns):
        call = {"id": f"call-{turn}", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"n": turn})}}
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]} if turn % 2 else {"role": "assistant", "content": "Yes?"}
        )
        messages.append(
            {"role": "tool", "content": f"result {turn}"} if turn % 2 else {"role": "user", "content": f"answer {turn} " * words}
        )
    return {"task_id": number, "messages": messages}


def write(path: Path, lines: list[Any], *, packed: bool = False) -> Path:
    """A file of JSON lines; a text stands for itself, so that it can be malformed."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def revisions(store: CheckpointStore) -> Iterator[Revision]:
    """Every revision in a store, checkpoint by checkpoint."""
    after = None
    while True:
        page = store.list(limit=500, after=after)
        for item in page.items:
            for revision in store.history(item.id):
                assert isinstance(revision, Revision)
                yield revision
        if page.next is None:
            return
        after = page.next


def content(store: CheckpointStore) -> dict[tuple[str, int], tuple[Any, ...]]:
    """All that a revision says, but for where and when it was recorded and what hangs on a random salt."""
    return {
        (one.checkpoint.id, one.checkpoint.revision): (one.checkpoint.model_dump(), one.type, one.actor, one.payload_size)
        for one in revisions(store)
    }
