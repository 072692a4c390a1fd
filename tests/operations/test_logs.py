"""What is logged: each notice when its thing happens, and never anything that a user has stored or typed as a secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaError

from eventlog import (
    AuthenticationFailed,
    Checkpoint,
    CheckpointId,
    CheckpointStore,
    Conflict,
    OutcomeUnknown,
    RunId,
    create_store,
    open_store,
)
from eventlog.address import KafkaAddress
from eventlog.diagnostics import FIELDS, JsonLines, Notice, tell
from eventlog.kafka.rights import KafkaRole, rights_of
from eventlog.kafka.tail import Tail
from tests.cli.command_line import eventlog, new_store, put
from tests.embedded.test_newer_schema import add_foreign_event
from tests.operations.listening import listening
from tests.security.secured import SecuredBroker
from tests.store.samples import initial, stream

PAYLOAD, LABEL, PASSWORD, ACTOR = (f"planted-{name}-7d1c" for name in ("payload", "label", "password", "actor"))


def _worked(address: str) -> None:
    """A bit of everything that a store does."""
    with open_store(address, actor=ACTOR) as store:
        first = Checkpoint.initial(CheckpointId.new(), RunId.new(), "acme.order", 1, {"secret": PAYLOAD}, labels={"customer": LABEL})
        store.compare_and_swap(first, None)
        store.compare_and_swap(first.next({"secret": PAYLOAD * 500}), 0)
        with pytest.raises(Conflict):
            store.compare_and_swap(first.next({"secret": PAYLOAD}), 0)
        assert store.load(first.id).payload["secret"] == PAYLOAD * 500
        store.list(labels={"customer": LABEL})
        store.catalog.rebuild()
        list(store.history(first.id))
        store.resolve(first)
        store.delete(first.id, 1)


def test_nothing_that_was_stored_is_logged_whatever_the_level(fresh_address: str, kind: str) -> None:
    with listening() as heard:
        _worked(fresh_address)
    assert heard.told(Notice.STORE_CLOSED)
    if kind == "kafka":
        assert any(each.name.startswith("kafka.") for each in heard.records), "its client is heard"
        assert heard.told(Notice.PARTITION_TAKEN_OVER)
    _nothing_planted(heard.texts)


@pytest.mark.broker
def test_a_password_is_logged_neither_when_it_lets_in_nor_when_it_is_refused(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    create_store(secured.plain_address(topic, door="INSIDE"), partitions=1)
    password = secured.user(topic)
    secured.grant(topic, rights_of(KafkaRole.WRITER, topic))
    with listening() as heard:
        _worked(secured.address(topic, password, topic, state=str(tmp_path / "let-in")))
    assert heard.told(Notice.PARTITION_TAKEN_OVER)
    _nothing_planted(heard.texts, password)
    with listening() as heard, pytest.raises(AuthenticationFailed) as refused:
        open_store(secured.address(topic, PASSWORD, topic, state=str(tmp_path / "refused")))
    assert [each for each in heard.records if each.name.startswith("kafka.") and each.levelno > logging.INFO]
    _nothing_planted([*heard.texts, str(refused.value)])


def _nothing_planted(texts: list[str], *besides: str) -> None:
    for secret in (PAYLOAD, LABEL, PASSWORD, ACTOR, *besides):
        assert not [text for text in texts if secret in text], secret


def test_what_is_opened_and_closed_is_told_once(fresh_address: str, kind: str) -> None:
    with listening() as heard:
        store = open_store(fresh_address)
        identity = store.log.identity.store_id
        store.close()
        store.close()
    for notice in (Notice.STORE_OPENED, Notice.STORE_CLOSED):
        (told,) = heard.told(notice)
        assert (vars(told)["store"], vars(told)["store_id"]) == (kind.split(",")[0], identity)


def test_an_unknown_outcome_is_told_with_what_resolve_needs(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = initial()
    unknown = OutcomeUnknown(lost.id, event_id=lost.event_id, reason="no answer")
    monkeypatch.setattr(store.log, "append", lambda proposals, *, timeout: [unknown for _ in proposals])  # noqa: ARG005
    with listening() as heard, pytest.raises(OutcomeUnknown):
        store.compare_and_swap(lost, None)
    (told,) = heard.told(Notice.OUTCOME_UNKNOWN)
    assert (told.levelno, vars(told)["checkpoint_id"], vars(told)["event_id"]) == (logging.WARNING, lost.id, lost.event_id)


@pytest.mark.parametrize("kind", [pytest.param("kafka", marks=pytest.mark.broker)], indirect=True)
def test_a_partition_that_is_taken_away_is_told_by_both(opening: Callable[..., CheckpointStore]) -> None:
    one, other = opening(), opening()
    first = initial()
    one.compare_and_swap(first, None)
    with listening() as heard:
        other.compare_and_swap(first.next({}), 0)
        one.compare_and_swap(first.next({}).next({}), 1)
    assert len({vars(each)["partition"] for each in heard.told(Notice.PARTITION_TAKEN_OVER)}) == 1
    assert heard.told(Notice.PARTITION_LOST)


def _ignore(_: object) -> None:
    """What the tail tells is heard as notices."""


class ClientThatStops:
    """Reads nothing, and ends the tail that reads."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._cluster = self

    def topic_id(self, name: str) -> None:
        """Not known."""

    def assignment(self) -> set[Any]:
        return set()

    def poll(self, **_: Any) -> dict[Any, Any]:
        self._tail._stop.set()
        return {}

    def close(self) -> None:
        """Nothing is open."""


def test_a_topic_that_cannot_be_read_is_told_once_and_again_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the client waits or raises when a broker goes away is its own affair; here it raises twice, and reads."""
    tail = Tail(
        address=KafkaAddress(("nowhere:1",), "orders"), topic_id="", starts={}, sink=lambda *_: None, failed=_ignore, refused=_ignore
    )
    attempts: Iterator[KafkaError | ClientThatStops] = iter([KafkaError(PAYLOAD), KafkaError(PAYLOAD), ClientThatStops(tail)])

    def read_partitions(*_: Any) -> ClientThatStops:
        attempt = next(attempts)
        if isinstance(attempt, ClientThatStops):
            return attempt
        raise attempt

    monkeypatch.setattr("eventlog.kafka.tail.read_partitions", read_partitions)
    with listening() as heard:
        tail._run()
        assert [vars(each)["event"] for each in heard.notices] == ["tail_interrupted", "tail_resumed"]
        tail._stop.clear()
        tail._run()  # there is nothing to read from any more
        assert vars(heard.notices[-1])["event"] == "tail_stopped"
    _nothing_planted(heard.texts)


def test_records_that_are_set_aside_are_told_once(tmp_path: Path) -> None:
    create_store(tmp_path)
    with open_store(tmp_path) as store, listening() as heard:
        last = stream(store, 2)[-1]
        add_foreign_event(tmp_path, last, b"\xc3\x01nonsense")
        store.list()
        store.list()
        (told,) = heard.told(Notice.QUARANTINED)
        assert (vars(told)["partition"], vars(told)["offset"], vars(told)["events"]) == (0, 2, 1)
        store.catalog.rebuild()
        assert len(heard.told(Notice.REBUILD_ENDED)) == len(heard.told(Notice.REBUILD_BEGUN)) == 1


def test_a_notice_has_its_fields_and_no_others() -> None:
    with listening() as heard:
        tell(Notice.PARTITION_LOST, store="kafka", topic="orders", partition=3, reason=ValueError(PAYLOAD))
    (told,) = heard.told(Notice.PARTITION_LOST)
    line = json.loads(JsonLines().format(told))
    assert line.keys() - {"time", "level", "logger", "message"} <= {"event", *FIELDS}
    assert (line["event"], line["partition"], line["reason"]) == ("partition_lost", 3, "ValueError")
    _nothing_planted(heard.texts)


def test_the_command_line_logs_when_it_is_asked_to(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    put(store, {"secret": PAYLOAD}, "--kind", "acme.order")
    quiet = eventlog("list", "--store", store)
    assert (quiet.code, quiet.err) == (0, "")
    run = eventlog("--log-format", "json", "list", "--store", store)
    assert [json.loads(line)["event"] for line in run.err.splitlines()] == ["store_opened", "store_closed"]
    text = eventlog("list", "--store", store, env={"EVENTLOG_LOG_FORMAT": "text"})
    assert "INFO eventlog.store a store was opened: store=embedded" in text.err
    warned = eventlog("--log-format", "json", "--log-level", "warning", "list", "--store", store)
    assert (warned.out, warned.err) == (quiet.out, "")
    wrong = eventlog("list", "--store", store, env={"EVENTLOG_LOG_FORMAT": "xml"})
    assert wrong.code == 15
    assert "EVENTLOG_LOG_FORMAT" in wrong.err
