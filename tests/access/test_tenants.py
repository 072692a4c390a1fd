"""Another tenant's checkpoint does not exist: by no call, no error, no report, and by nothing that is read for an answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from eventlog import AccessDenied, CheckpointStore, InvalidRequest, NotFound, Position, Revision
from tests.access.samples import outcomes, somebody, trail
from tests.store.samples import initial, nothing_written, numbered, stream
from tests.store.test_tenants import CALLS, refusal


@pytest.fixture
def north(store: CheckpointStore) -> CheckpointStore:
    return store.for_principal(somebody(["writer", "auditor"], "north"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("deleted", [False, True], ids=["living", "deleted"])
def test_another_tenants_id_is_as_absent(store: CheckpointStore, north: CheckpointStore, call: str, deleted: bool) -> None:
    theirs = stream(store, 2, tenant="south")[-1]
    if deleted:
        store.delete(theirs.id, 1)
    absent = numbered(initial(tenant="north"), 1)
    disguised = theirs.model_copy(update={"tenant": "north"})
    with nothing_written(store):
        refused = refusal(lambda: CALLS[call](north, disguised), theirs.id)
        assert refused == refusal(lambda: CALLS[call](north, absent), absent.id)
    assert repr(NotFound) == refused[0]
    assert "south" not in str(refused)


READS: dict[str, Callable[[CheckpointStore, str], object]] = {
    "load": lambda store, known: store.load(known),
    "load a revision": lambda store, known: store.load(known, revision=1),
    "load at": lambda store, known: store.load(known, at=Position(((0, 0), (1, 0)))),
    "load at least": lambda store, known: store.load(known, at_least=Position()),
    "load_revision": lambda store, known: store.load_revision(known),
    "history": lambda store, known: list(store.history(known)),
    "delete": lambda store, known: store.delete(known, 1),
    "resolve": lambda store, known: store.resolve(numbered(initial(tenant="north"), 1).model_copy(update={"id": known})),
}


class Watched:
    """A log that remembers what it was asked."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._log, name)
        if not callable(found):
            return found

        def ask(*arguments: Any, **named: Any) -> Any:
            self.asked.append(name)
            return found(*arguments, **named)

        return ask


@pytest.mark.parametrize("call", READS)
def test_the_same_is_read_for_another_tenants_id_as_for_an_absent_one(store: CheckpointStore, north: CheckpointStore, call: str) -> None:
    theirs = stream(store, 2, tenant="south", payload={"blob": "x" * 100_000})[-1].id
    asked = []
    for each in (theirs, initial().id, theirs):
        watched = Watched(store.log)
        north._log = north._reader._log = watched
        with contextlib.suppress(NotFound):
            READS[call](north, each)
        asked.append(watched.asked)
    assert asked[0] == asked[1] == asked[2]
    assert not {"latest", "revision", "as_of", "history", "by_event_id"} & set(asked[0])


def test_what_is_another_tenants_is_in_no_list_no_stream_and_no_report(store: CheckpointStore, north: CheckpointStore) -> None:
    before = store.position()
    mine = stream(store, 1, tenant="north")[0]
    theirs = stream(store, 1, tenant="south", labels={"secret": "marker-of-south"}, kind="south.kind")[0]
    store.load(theirs.id)
    assert north.list(tenant="south").items == ()
    assert {each.tenant for each in north.list(limit=1000).items} == {"north"}
    assert north.list(kind="south.kind").items == ()
    assert [each.checkpoint.id for each in north.subscribe(before, idle_timeout=0)] == [mine.id]
    assert north.resolve(theirs) is None
    assert north.resolve(theirs.event_id) is None
    shown = ""
    for report in ("audit", "retention", "access"):
        table = north.catalog.report(report, {})
        assert {row[table.columns.index("tenant")] for row in table.rows} == {"north"}
        shown += str(table)
        with pytest.raises(InvalidRequest, match="tenant"):
            north.catalog.report(report, {"tenant": "south"})
    assert theirs.id not in shown
    assert "marker-of-south" not in shown
    assert north.catalog.report("audit", {"checkpoint": str(theirs.id)}).rows == []
    assert list(north.catalog.gaps(theirs.id)) == []
    page = north.catalog.list(at=None, limit=1000, after=None, run_id=None, tenant="south")
    assert {each.tenant for each in page.items} <= {"north"}
    with pytest.raises(AccessDenied, match="sql"):
        north.catalog.sql("SELECT * FROM checkpoint_heads")


def test_another_tenants_revision_is_not_written_and_the_attempt_is_on_record(store: CheckpointStore) -> None:
    who = somebody("writer", "north")
    theirs = initial(tenant="south")
    with nothing_written(store), pytest.raises(InvalidRequest, match="tenant"):
        store.for_principal(who).compare_and_swap(theirs, None)
    found = trail(store, subject=who.subject)
    assert [(row["outcome"], row["checkpoint_id"], row["detail"]) for row in found][-1] == (
        "failed",
        theirs.id.uuid,
        "INVALID_REQUEST tenant",
    )


def test_an_auditor_sees_the_trail_of_their_tenant_alone(store: CheckpointStore) -> None:
    mine, theirs = (stream(store, 1, tenant=tenant)[0] for tenant in ("north", "south"))
    store.load(mine.id)
    store.load(theirs.id)
    auditor = somebody("auditor", "north")
    table = store.for_principal(auditor).catalog.report("access", {})
    seen = {row[table.columns.index("checkpoint_id")] for row in table.rows}
    assert mine.id.uuid in seen
    assert theirs.id.uuid not in seen
    assert outcomes(store, subject=auditor.subject) == [("report_access", "allowed")]
    everything = store.for_principal(somebody("auditor")).catalog.report("access", {"checkpoint": str(theirs.id)})
    assert len(everything.rows) == 2  # written, loaded


def test_one_run_of_each_tenant_has_ids_and_effects_of_its_own(store: CheckpointStore) -> None:
    """Tenants are not told apart by a name that both may choose."""
    mine, theirs = initial(tenant="north"), initial(tenant="south")
    for tenant, checkpoint in (("north", mine), ("south", theirs)):
        store.for_principal(somebody("writer", tenant)).compare_and_swap(checkpoint.model_copy(update={"run_id": mine.run_id}), None)
    found = store.for_principal(somebody("reader", "north")).list(run_id=mine.run_id)
    assert [each.id for each in found.items] == [mine.id]
    assert all(isinstance(each, Revision) for each in store.history(theirs.id))
