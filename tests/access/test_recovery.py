"""Migrations and decisions as principals have them: refused before anything is looked at, on record, and within a tenant."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import AccessDenied, CheckpointStore
from eventlog.recovery import Decision, Decisions, Selection, plan_migration, run_migration, runifold_migrations
from tests.access.operations import run_left
from tests.access.samples import outcomes, somebody, trail
from tests.recovery.migration_samples import sample

pytestmark = pytest.mark.parametrize("kind", ["embedded"], indirect=True)


def test_whoever_may_see_metadata_only_is_shown_runs_without_what_payloads_say(store: CheckpointStore, tmp_path: Path) -> None:
    left = run_left(store, tmp_path)
    auditor = store.for_principal(somebody("auditor"))
    (seen,) = [each for each in Decisions(auditor).list().runs if each.checkpoint_id == left.id]
    assert (seen.what, seen.owner, seen.decision) == (None, None, None)
    assert (seen.phase, seen.problem) == ("turn_in_flight", "payload at $: is withheld from this principal")
    (known,) = [each for each in Decisions(store).list().runs if each.checkpoint_id == left.id]
    assert (known.what, known.problem) == ("turn 1", None)


def test_a_decision_stands_in_the_trail_with_what_was_decided(store: CheckpointStore, tmp_path: Path) -> None:
    left, who = run_left(store, tmp_path), somebody("writer")
    Decisions(store.for_principal(who)).resolve(left.id, Decision.MARK_FAILED, actor="ann", reason="cancelled")
    rows = trail(store, subject=who.subject)
    assert [(row["action"], row["target"]) for row in rows if row["action"] == "runs_decide"] == [("runs_decide", "mark_failed")]
    assert [row["action"] for row in rows][-1] == "compare_and_swap"
    assert all(str(row["checkpoint_id"]) == left.id for row in rows)


def test_what_may_not_be_done_is_refused_before_anything_is_read(store: CheckpointStore, tmp_path: Path) -> None:
    left = run_left(store, tmp_path)
    for role in ("auditor", "operator"):
        who = somebody(role)
        with pytest.raises(AccessDenied):
            Decisions(store.for_principal(who)).show(left.id)
        assert outcomes(store, subject=who.subject) == [("runs_show", "refused")]
    who = somebody("reader")
    mine = store.for_principal(who)
    with pytest.raises(AccessDenied):
        Decisions(mine).resolve(left.id, Decision.RETRY, actor="ann", reason="again")
    with pytest.raises(AccessDenied):
        run_migration(mine, runifold_migrations(), Selection(kind="runifold.agent"))
    assert outcomes(store, subject=who.subject) == [("runs_decide", "refused"), ("migrate", "refused")]


def test_a_migration_stays_within_the_principals_tenant(store: CheckpointStore) -> None:
    made = {tenant: sample("runifold.agent", 1, "completed", tenant=tenant) for tenant in ("north", "south")}
    for each in made.values():
        store.compare_and_swap(each, None)
    who = somebody("writer", "north")
    mine = store.for_principal(who)
    ids = [each.id for each in made.values()]
    planned = plan_migration(mine, runifold_migrations(), Selection(ids=ids))
    done = run_migration(mine, runifold_migrations(), Selection(ids=ids))
    assert (planned.moves.total(), done.moves.total()) == (1, 1)
    assert [each.checkpoint_id for each in done.refused] == [made["south"].id]
    assert store.load(made["north"].id).kind == "eventlog.agent"
    assert store.load(made["south"].id) == made["south"]
    actions = [action for action, _ in outcomes(store, subject=who.subject)]
    assert {"migrate_plan", "migrate"} <= set(actions)
