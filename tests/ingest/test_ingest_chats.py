"""Conversations become streams as an agent runtime would have written them, once, whatever happens on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    Receipt,
    Unavailable,
    create_store,
    open_store,
)
from eventlog.ingest import ingest_chats
from eventlog.ingest.transcript import steps
from eventlog.verification import verify
from tests.ingest.conversations import content, conversation, revisions, write


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """An embedded store, where the log makes no difference."""
    create_store(tmp_path / "plain-store")
    return tmp_path / "plain-store"


def test_each_turn_has_an_in_flight_and_a_stable_revision_with_the_whole_transcript(address: str, tmp_path: Path) -> None:
    one = conversation(1, 3)
    file = write(tmp_path / "chats.jsonl", [one])
    with open_store(address, actor="ingest") as store:
        summary = ingest_chats(store, file)
        found = [revision.checkpoint for revision in revisions(store)]
    assert (summary.conversations, summary.committed, summary.already_there, summary.malformed) == (1, 7, 0, [])
    assert [checkpoint.revision for checkpoint in found] == list(range(7))
    assert [(checkpoint.phase, checkpoint.payload["phase"]["turn"], len(checkpoint.payload["messages"])) for checkpoint in found] == [
        ("ready_for_turn", 0, 2),
        ("turn_in_flight", 1, 2),
        ("ready_for_turn", 1, 3),
        ("turn_in_flight", 2, 4),
        ("ready_for_turn", 2, 5),
        ("turn_in_flight", 3, 6),
        ("completed", 3, 8),
    ]
    assert found[-1].payload["messages"] == one["messages"]
    assert all(checkpoint.payload["metadata"] == {"task_id": 1} for checkpoint in found)
    assert [checkpoint.usage for checkpoint in found][-2:] == [
        {"turns": 2, "tool_calls": 1, "messages": 6},
        {"turns": 3, "tool_calls": 1, "messages": 8},
    ]
    assert {checkpoint.kind for checkpoint in found} == {"chat.transcript"}


def test_a_second_run_adds_nothing_and_asks_once_a_conversation(address: str, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl.gz", [conversation(number, 2) for number in range(5)], packed=True)
    with open_store(address) as store:
        first = ingest_chats(store, file)
        end = store.position()
        second = ingest_chats(store, file)
        assert store.position() == end
    assert (first.committed, second.committed, second.already_there) == (25, 0, 25)


def test_a_file_that_has_grown_adds_only_what_is_new(address: str, tmp_path: Path) -> None:
    chats = [conversation(number, 2) for number in range(3)]
    with open_store(address) as store:
        ingest_chats(store, write(tmp_path / "a.jsonl", chats[:2]))
        summary = ingest_chats(store, write(tmp_path / "b.jsonl", [chats[2], *chats[:2]]))
    assert (summary.committed, summary.already_there) == (5, 10)


def test_two_equal_lines_are_two_conversations(address: str, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl", [conversation(1, 1)] * 3)
    with open_store(address) as store:
        assert ingest_chats(store, file).committed == 9
        assert ingest_chats(store, file).already_there == 9
        assert len(store.list().items) == 3


def test_plain_and_gzip_whatever_the_name_give_the_same_streams(tmp_path: Path) -> None:
    chats = [conversation(number, 2) for number in range(3)]
    seen = []
    for name, packed in (("a.gz", False), ("b.jsonl", True)):
        create_store(tmp_path / f"store-{name}")
        with open_store(tmp_path / f"store-{name}") as store:
            ingest_chats(store, write(tmp_path / name, chats, packed=packed))
            seen.append(content(store))
    assert seen[0] == seen[1]


def test_tenants_and_kinds_have_streams_of_their_own(store_path: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl", [conversation(1, 1)])
    with open_store(store_path, tenant="north") as north, open_store(store_path, tenant="south") as south:
        assert ingest_chats(north, file).committed == 3
        assert ingest_chats(south, file).committed == 3
        assert ingest_chats(south, file, kind="acme.chat").committed == 3
        assert len(north.list().items) == 1


MALFORMED = [
    ("{", "not JSON"),
    ("[]", "JSON object"),
    ('{"messages": []}', "messages"),
    ('{"messages": "hello"}', "messages"),
    ('{"other": 1}', "messages"),
    ('{"messages": [{"role": "alien", "content": ""}]}', "role"),
    ('{"messages": ["hello"]}', "role"),
    ('{"messages": [{"role": "user", "content": NaN}]}', "NaN"),
    ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "surrogate"),
    ('{"messages": [{"role": "user", "role": "user"}]}', "twice"),
    ('{"messages": [{"role": "assistant", "tool_calls": 7}]}', "tool_calls"),
    ('{"messages": [{"role": "user", "content": ' + "[" * 5000 + "]" * 5000 + "}]}", "deep"),
]


def test_malformed_lines_are_reported_by_number_and_do_not_stop_the_rest(address: str, tmp_path: Path) -> None:
    lines: list[Any] = [conversation(1, 1), *(line for line, _ in MALFORMED), "", conversation(2, 1)]
    with open_store(address) as store:
        summary = ingest_chats(store, write(tmp_path / "chats.jsonl", lines))
        assert len(store.list().items) == 2
    assert (summary.conversations, summary.committed) == (2, 6)
    assert [complaint.line for complaint in summary.malformed] == list(range(2, 2 + len(MALFORMED)))
    for complaint, (_, words) in zip(summary.malformed, MALFORMED, strict=True):
        assert words in complaint.reason


def test_bytes_that_are_not_text_are_a_malformed_line(store_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_bytes(b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}\n' + json.dumps(conversation(1, 1)).encode())
    with open_store(store_path) as store:
        summary = ingest_chats(store, file)
    assert ([complaint.line for complaint in summary.malformed], summary.committed) == ([1], 3)


def test_a_gzip_file_that_was_cut_off_gives_what_it_holds(store_path: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl.gz", [conversation(number, 3, words=500 + number) for number in range(50)], packed=True)
    file.write_bytes(file.read_bytes()[: -file.stat().st_size // 2])
    with open_store(store_path) as store:
        summary = ingest_chats(store, file)
    assert 0 < summary.conversations < 50
    assert summary.committed == 7 * summary.conversations
    assert "cannot be read any further" in summary.malformed[-1].reason


def test_a_conversation_that_is_too_large_is_given_up_and_the_others_go_on(store_path: Path, tmp_path: Path) -> None:
    large = conversation(1, 2, words=1)
    large["messages"][-1]["content"] = os.urandom(40_000).hex()  # does not get smaller than 40 KB
    with open_store(store_path, max_event_bytes=20_000) as store:
        summary = ingest_chats(store, write(tmp_path / "chats.jsonl", [large, conversation(2, 2)]))
    assert [complaint.line for complaint in summary.malformed] == [1]
    assert "bytes" in summary.malformed[0].reason
    assert summary.committed == 4 + 5


def test_a_conversation_that_somebody_continued_or_deleted_is_reported(store_path: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl", [conversation(1, 1), conversation(2, 1)])
    with open_store(store_path) as store:
        ingest_chats(store, file)
        first, second = (store.load(item.id) for item in store.list().items)
        store.compare_and_swap(first.next({"other": True}), first.revision)
        store.delete(second.id, second.revision)
        summary = ingest_chats(store, file)
    assert (summary.committed, len(summary.malformed)) == (0, 2)


def test_a_conversation_without_an_assistant_is_one_ready_revision(store_path: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl", [{"messages": [{"role": "user", "content": "Anybody there?"}]}])
    with open_store(store_path) as store:
        assert ingest_chats(store, file).committed == 1
        assert [revision.checkpoint.phase for revision in revisions(store)] == ["ready_for_turn"]


def test_a_missing_file_is_refused_and_named(store_path: Path, tmp_path: Path) -> None:
    with open_store(store_path) as store, pytest.raises(InvalidRequest, match=r"missing\.jsonl"):
        ingest_chats(store, tmp_path / "missing.jsonl")


def test_steps_are_pure_and_their_digests_follow_from_the_messages() -> None:
    messages = conversation(1, 4)["messages"]
    assert steps(messages) == steps(json.loads(json.dumps(messages)))
    other = json.loads(json.dumps(messages))
    other[2]["content"] = "No."
    assert [one.digest == two.digest for one, two in zip(steps(messages), steps(other), strict=True)] == [True, True] + [False] * 7


class _Unsteady:
    """A store whose log is overloaded, away, or silent about the outcome now and then: the answers are lost, the work is done or not."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._calls = 0
        self.tenant = store.tenant
        self.load_revision = store.load_revision

    def compare_and_swap_many(self, proposals: Iterable[tuple[Checkpoint, int | None]]) -> Sequence[Receipt | CheckpointError]:
        proposals = list(proposals)
        self._calls += 1
        if self._calls % 4 == 1:
            raise Overloaded(waiting=1, limit=1)
        if self._calls % 4 == 2:
            return [Unavailable("somewhere", "not now")] * len(proposals)
        outcomes = self._store.compare_and_swap_many(proposals)
        if self._calls % 4 == 3:
            unclear = (OutcomeUnknown(one.id, event_id=one.event_id, reason="lost") for one, _ in proposals)
            return [unknown if index % 2 else outcome for index, (outcome, unknown) in enumerate(zip(outcomes, unclear, strict=True))]
        return outcomes


def test_lost_answers_and_overload_are_met_with_the_same_events_again(store_path: Path, tmp_path: Path) -> None:
    chats = [conversation(number, 2) for number in range(4)]
    create_store(tmp_path / "steady")
    with open_store(store_path) as store, open_store(tmp_path / "steady") as steady:
        summary = ingest_chats(_Unsteady(store), write(tmp_path / "chats.jsonl", chats))  # type: ignore[arg-type]
        ingest_chats(steady, tmp_path / "chats.jsonl")
        assert summary.committed + summary.already_there == 20
        assert content(store) == content(steady)
        assert verify(store).is_clean


def test_patience_ends(store_path: Path, tmp_path: Path) -> None:
    class Away(_Unsteady):
        def compare_and_swap_many(self, proposals: Iterable[tuple[Checkpoint, int | None]]) -> Sequence[Receipt | CheckpointError]:
            raise Unavailable("somewhere", f"{len(list(proposals))} revisions have to wait")

    with open_store(store_path) as store, pytest.raises(Unavailable):
        ingest_chats(Away(store), write(tmp_path / "chats.jsonl", [conversation(1, 1)]), patience=0.1)  # type: ignore[arg-type]


def test_two_at_once_on_the_same_file_write_every_revision_once(address: str, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl", [conversation(number, 3) for number in range(20)])
    with open_store(address) as store:
        with ThreadPoolExecutor(2) as pool:
            summaries = list(pool.map(lambda _: ingest_chats(store, file), range(2)))
        assert sum(summary.committed for summary in summaries) == 140
        assert all(not summary.malformed for summary in summaries)
        assert len(list(revisions(store))) == 140
