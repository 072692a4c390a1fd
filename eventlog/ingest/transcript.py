"""A file of conversations as the revisions that an agent runtime would have written. Reads the file, knows no store."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from eventlog import payload
from eventlog.checkpoint import Checkpoint, from_millis
from eventlog.errors import CheckpointError, InvalidRequest
from eventlog.ids import CheckpointId, EventId, RunId, content_id
from eventlog.importing import parse_json

SCHEMA_VERSION = 1
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
LONGEST_LINE = 64 << 20


class Malformed(NamedTuple):
    """A line that is no conversation, or whose conversation the store refused."""

    line: int
    reason: str


class Step(NamedTuple):
    """One revision of a conversation: how much of the transcript it holds, and where the agent stood."""

    state: str
    turn: int
    messages: int
    tool_calls: int
    digest: bytes  # of the messages
    size: int  # bytes of their JSON


@dataclass
class Conversation:
    """A line of the file, its revisions, and the next one to send."""

    line: int
    size: int
    checkpoint_id: CheckpointId
    run_id: RunId
    tenant: str
    kind: str
    messages: list[dict[str, Any]]
    metadata: dict[str, Any]
    steps: list[Step]
    next: int = 0

    def event_id(self, revision: int) -> EventId:
        """Follows from the checkpoint, the revision and all that it holds (the metadata is in the checkpoint's id)."""
        step = self.steps[revision]
        return EventId(content_id("event", self.checkpoint_id, str(revision), step.state, step.digest))

    def revision(self, number: int) -> Checkpoint:
        """A revision, built anew and always alike. The file has no times: the clock shows 1970, one millisecond a revision."""
        step = self.steps[number]
        finished = step.turn - 1 if step.state == "turn_in_flight" else step.turn
        return Checkpoint(
            id=self.checkpoint_id,
            run_id=self.run_id,
            revision=number,
            kind=self.kind,
            schema_version=SCHEMA_VERSION,
            payload={
                "phase": {"state": step.state, "turn": step.turn},
                "messages": self.messages[: step.messages],
                "metadata": self.metadata,
            },
            updated_at=from_millis(number),
            event_id=self.event_id(number),
            tenant=self.tenant,
            usage={"turns": finished, "tool_calls": step.tool_calls, "messages": step.messages},
            phase=step.state,
        )


def conversations(
    path: Path, kind: str, tenant: str, *, complain: Callable[[Malformed], None], read: Callable[[int], None]
) -> Iterator[Conversation]:
    """The conversations of a file, in order. Two equal lines are two conversations, told apart by their count.

    Arguments:
        complain: gets each line that is none.
        read: gets the bytes of the file that were read so far.
    """
    seen: Counter[bytes] = Counter()
    for number, line in _lines(path, complain, read):
        if not line.strip():
            continue
        try:
            record = _parsed(line)
            digest = hashlib.sha256(_canonical(record)).digest()
            conversation = _conversation(record, digest, seen[digest], number, len(line), kind, tenant)
        except CheckpointError as error:
            complain(Malformed(number, str(error)))
            continue
        seen[digest] += 1
        yield conversation


def _conversation(record: dict[str, Any], digest: bytes, ordinal: int, line: int, size: int, kind: str, tenant: str) -> Conversation:
    checkpoint_id = CheckpointId(content_id("conversation", tenant, kind, digest, str(ordinal)))
    messages = record["messages"]
    return Conversation(
        line=line,
        size=size,
        checkpoint_id=checkpoint_id,
        run_id=RunId(content_id("run", checkpoint_id)),
        tenant=tenant,
        kind=kind,
        messages=messages,
        metadata={name: value for name, value in record.items() if name != "messages"},
        steps=steps(messages),
    )


def steps(messages: list[dict[str, Any]]) -> list[Step]:
    """The revisions of a transcript, in order. Pure."""
    digests, sizes = [hashlib.sha256(b"transcript").digest()], [2]
    for message in messages:
        digests.append(hashlib.sha256(digests[-1] + _canonical(message)).digest())
        sizes.append(sizes[-1] + len(payload.dump_json(message)) + 1)

    def step(state: str, turn: int, count: int, calls: int) -> Step:
        return Step(state, turn, count, calls, digests[count], sizes[count])

    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    first = turns[0] if turns else len(messages)
    found = [step("ready_for_turn", 0, first, 0)]
    calls = 0
    for turn, index in enumerate(turns, 1):
        found.append(step("turn_in_flight", turn, index, calls))
        calls += len(messages[index].get("tool_calls") or ())
        last = turn == len(turns)
        after = len(messages) if last else index + 1  # what follows the last turn has no later revision to come with
        found.append(step("completed" if last else "ready_for_turn", turn, after, calls))
    return found


def _parsed(line: bytes) -> dict[str, Any]:
    record = parse_json(line)
    if not isinstance(record, dict):
        raise InvalidRequest("line", "is not a JSON object")
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages", "is not a list of messages")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            raise InvalidRequest(f"messages[{index}]", f"is not an object with a role ({', '.join(sorted(ROLES))})")
        if not isinstance(message.get("tool_calls") or [], list):
            raise InvalidRequest(f"messages[{index}].tool_calls", "is not a list")
    payload.dump_json(record)  # what the store would refuse is refused here, before anything of the line is written
    return record


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _lines(path: Path, complain: Callable[[Malformed], None], read: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a plain or gzip file. One that is too long, or unreadable, is reported; the latter ends the file."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise InvalidRequest("file", f"{path} cannot be read: {error.strerror}") from error
    with raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        source = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
        number = 0
        while True:
            number += 1
            try:
                line = source.readline(LONGEST_LINE + 1)
                long = len(line) > LONGEST_LINE
                while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                    line = source.readline(LONGEST_LINE + 1)
            except (OSError, EOFError, zlib.error) as error:
                complain(Malformed(number, f"the file cannot be read any further: {error}"))
                return
            read(raw.tell())
            if long:
                complain(Malformed(number, f"is longer than {LONGEST_LINE} bytes"))
            elif not line:
                return
            else:
                yield number, line
