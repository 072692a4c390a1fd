"""Who did what is on record, and one question finds who read a revision."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlog import AccessDenied, CheckpointError, CheckpointStore, Conflict, InvalidRequest, Revision, create_store, open_store
from eventlog.checkpoint import to_millis
from eventlog.recovery import AgentRun, Model
from eventlog.verification import verify
from tests.access.samples import outcomes, somebody, trail
from tests.store.samples import initial, numbered, stream


def test_reads_are_recorded_with_who_when_what_and_why(store: CheckpointStore) -> None:
    last = stream(store, 3, tenant="north")[-1]
    who = somebody(["reader", "auditor"])
    started = datetime.now(UTC) - timedelta(seconds=1)
    mine = store.for_principal(who, reason="ticket 4711")
    mine.load(last.id, revision=1)
    (row,) = trail(store, subject=who.subject)
    assert started < row["at"] <= datetime.now(UTC)
    assert (row["roles"], row["tenant"], row["action"], row["outcome"]) == ("auditor,reader", "north", "load", "allowed")
    assert (row["checkpoint_id"], row["revision"], row["last_revision"], row["reason"]) == (last.id.uuid, 1, None, "ticket 4711")


def test_every_way_of_reading_a_revision_is_found_by_one_question(store: CheckpointStore) -> None:
    before = store.position()
    last = stream(store, 5)[-1]
    readers = {name: somebody("reader") for name in ("load", "load_revision", "history", "subscribe", "later", "other")}
    opened = {name: store.for_principal(who) for name, who in readers.items()}
    opened["load"].load(last.id, revision=2)
    opened["load_revision"].load_revision(last.id, revision=2)
    assert len(list(opened["history"].history(last.id, after=0))) == 4
    assert len(list(opened["later"].history(last.id, after=2))) == 2
    list(opened["subscribe"].subscribe(before, idle_timeout=0))
    opened["other"].load(last.id)
    found = {row["subject"]: row["action"] for row in trail(store, checkpoint=str(last.id), revision=2) if row["subject"] != "root"}
    assert found == {readers[name].subject: name for name in ("load", "load_revision", "history", "subscribe")}


def test_of_a_history_only_what_was_handed_out_is_on_record(store: CheckpointStore) -> None:
    last = stream(store, 250)[-1]
    who = somebody("reader")
    found = store.for_principal(who).history(last.id)
    next(found)
    taken = [(row["revision"], row["last_revision"]) for row in trail(store, subject=who.subject)]
    assert taken == [(None, None), (0, 99)]  # a stretch is recorded before its first revision is handed out
    assert len(list(found)) == 249
    assert trail(store, subject=who.subject)[-1]["last_revision"] == 249


def test_writes_are_on_record_with_the_event_that_shows_what_became_of_them(store: CheckpointStore) -> None:
    who = somebody("writer")
    mine = store.for_principal(who)
    first = initial()
    mine.compare_and_swap(first, None)
    lost = first.next({"step": "lost"})
    mine.compare_and_swap(first.next({"step": 1}), 0)
    with pytest.raises(Conflict):
        mine.compare_and_swap(lost, 0)
    many = [initial(), numbered(initial(), 3)]
    mine.compare_and_swap_many([(each, None) for each in many])
    mine.import_revision(numbered(initial(), 9))
    mine.delete(first.id, 1)
    rows = trail(store, subject=who.subject)
    assert [(row["action"], row["outcome"], row["detail"]) for row in rows] == [
        ("compare_and_swap", "allowed", None),
        ("compare_and_swap", "allowed", None),
        ("compare_and_swap", "allowed", None),
        ("compare_and_swap", "failed", "CONFLICT"),
        ("compare_and_swap", "allowed", None),
        ("compare_and_swap", "allowed", None),
        ("compare_and_swap", "failed", "CONFLICT"),
        ("import", "allowed", None),
        ("delete", "allowed", None),
    ]
    assert rows[0]["event_id"] == first.event_id.uuid
    assert [row["event_id"] for row in rows[2:4]] == [lost.event_id.uuid] * 2
    assert (rows[-1]["checkpoint_id"], rows[-1]["revision"]) == (first.id.uuid, 2)


def test_what_is_absent_or_asked_wrongly_is_on_record_too(store: CheckpointStore) -> None:
    who = somebody("reader")
    mine = store.for_principal(who)
    missing = initial().id
    with contextlib.suppress(CheckpointError):
        mine.load(missing)
    with contextlib.suppress(CheckpointError):
        mine.load(missing, revision=-5)
    with contextlib.suppress(CheckpointError):
        mine.list(limit=0)
    assert [(row["action"], row["outcome"], row["detail"]) for row in trail(store, subject=who.subject)] == [
        ("load", "absent", None),
        ("load", "failed", "INVALID_REQUEST revision"),
        ("list", "failed", "INVALID_REQUEST limit"),
    ]


def test_whatever_a_caller_passes_the_record_can_be_read(store: CheckpointStore) -> None:
    who = somebody("admin")
    mine: Any = store.for_principal(who)
    calls: tuple[Callable[[], object], ...] = (
        lambda: mine.catalog.report("audit", {"checkpoint": "no uuid", "tenant": 5}),
        lambda: mine.catalog.sql("SELECT '\ud800'"),
        lambda: mine.list(tenant=5),
        lambda: mine.compare_and_swap("no checkpoint", None),
        lambda: mine.compare_and_swap(initial().model_copy(update={"id": "x", "tenant": 7, "revision": 2**70, "event_id": None}), None),
        lambda: mine.delete(initial().id, "two"),
    )
    for call in calls:
        with contextlib.suppress(CheckpointError, TypeError):  # DuckDB takes no lone surrogate
            call()
    assert len(trail(store, subject=who.subject)) >= len(calls)
    assert verify(store).is_clean


def test_a_foreign_record_in_the_access_log_is_shown_and_stops_nobody(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="strict")
    with open_store(tmp_path / "store") as store:
        last = stream(store, 1)[-1]
        other = sqlite3.connect(tmp_path / "store" / "access.sqlite3")
        other.execute("INSERT INTO accesses SELECT max(position) + 1, max(recorded_at), x'00' FROM accesses")
        other.commit()
        other.close()
        store.load(last.id)
        assert [row["action"] for row in trail(store)][:3] == ["compare_and_swap", "unreadable", "load"]
        assert [fault.position for fault in verify(store).faults] == ["0:1"]


def test_lists_reports_and_sql_are_recorded_with_how_much_they_gave(store: CheckpointStore) -> None:
    last = stream(store, 2, kind="trail.listed")[-1]
    who = somebody("admin")
    mine = store.for_principal(who)
    page = mine.list(kind=last.kind)
    mine.catalog.report("audit", {"checkpoint": str(last.id)})
    mine.catalog.sql("SELECT 1 UNION ALL SELECT 2")
    rows = trail(store, subject=who.subject)
    assert [(row["action"], row["target"], row["items"]) for row in rows] == [
        ("list", None, len(page.items)),
        ("report", "audit", 2),
        ("sql", "SELECT 1 UNION ALL SELECT 2", 2),
    ]
    assert rows[0]["position"] == str(page.position)
    assert rows[1]["checkpoint_id"] == last.id.uuid


def test_the_trail_is_asked_by_subject_tenant_action_outcome_and_time(store: CheckpointStore) -> None:
    who, other = somebody("reader", "north"), somebody("auditor", "north")
    last = stream(store, 1, tenant="north")[-1]
    for each in (who, other):
        with contextlib.suppress(CheckpointError):
            store.for_principal(each).load(last.id)
    now = to_millis(datetime.now(UTC))
    assert outcomes(store, subject=who.subject) == [("load", "allowed")]
    assert outcomes(store, checkpoint=str(last.id), outcome="refused") == [("load", "refused")]
    assert outcomes(store, checkpoint=str(last.id), action="compare_and_swap") == [("compare_and_swap", "allowed")]
    assert len(outcomes(store, checkpoint=str(last.id), tenant="north")) == 3
    assert outcomes(store, checkpoint=str(last.id), tenant="south") == []
    assert outcomes(store, checkpoint=str(last.id), since=now + 10_000) == []
    assert len(outcomes(store, checkpoint=str(last.id), until=now + 10_000, limit=2)) == 2


def test_the_view_shows_the_same(store: CheckpointStore) -> None:
    last = stream(store, 1)[-1]
    table = store.catalog.sql(f"SELECT action, outcome FROM access_trail WHERE checkpoint_id = '{last.id}'")
    assert table.rows == [("compare_and_swap", "allowed")]


def test_a_run_of_an_agent_needs_nothing_new(store: CheckpointStore) -> None:
    who = somebody("writer", "north")
    run = AgentRun.start(
        store.for_principal(who), agent="acme.desk", model=Model("acme", "m-1"), definition_version=1, state={"messages": []}
    )
    with run.turn() as turn:
        turn.commit(state={"messages": ["hello"]})
    run.complete({"done": True})
    actors = {each.actor for each in store.history(run.checkpoint_id) if isinstance(each, Revision)}
    assert actors == {who.subject}
    assert set(outcomes(store, subject=who.subject)) == {("compare_and_swap", "allowed")}


def test_a_store_that_records_nothing_has_roles_all_the_same(tmp_path: Path) -> None:
    place = tmp_path / "store"
    create_store(place)
    with open_store(place) as store:
        last = stream(store, 1)[-1]
        with pytest.raises(AccessDenied):
            store.for_principal(somebody("auditor")).load(last.id)
        with pytest.raises(InvalidRequest, match="records no accesses"):
            store.catalog.report("access", {})
    assert not list(place.glob("access*"))


def test_the_log_its_projection_and_its_accesses_are_verified_together(store: CheckpointStore) -> None:
    store.load(stream(store, 1)[-1].id)
    found = verify(store)
    assert found.is_clean, found.faults
    assert found.accesses > 2
