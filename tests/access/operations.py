"""How each operation is done: by one call with a principal's store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eventlog import Checkpoint, CheckpointError, CheckpointId, CheckpointStore, InvalidRequest, Position, Principal, Revision
from eventlog.archive.anchors import take_anchor
from eventlog.archive.compacting import compact
from eventlog.archive.directory import Archive
from eventlog.archive.running import run_archive
from eventlog.backup.drill import drill
from eventlog.backup.making import backup
from eventlog.erasure.applying import require_register
from eventlog.erasure.erasing import erase
from eventlog.erasure.erasing import plan as plan_erasure
from eventlog.erasure.finishing import finish
from eventlog.erasure.selection import Selection as Subjects
from eventlog.privacy.access_retention import prune_accesses
from eventlog.privacy.key_care import keys_status, rotate_keys
from eventlog.privacy.principals import Operation
from eventlog.recovery import Decision, Decisions, EffectClass, EffectStore, Selection, Settlement, plan_migration, runifold_migrations
from eventlog.retention import Holds, HoldTarget, Policy, applications, apply_plan, plan_retention
from eventlog.verification import verify
from tests.access.conftest import Recorded
from tests.cli.command_line import inside
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import Outside
from tests.store.samples import initial, numbered


class Scene(NamedTuple):
    """What an operation is done with."""

    store: CheckpointStore  # the principal's
    principal: Principal
    last: Checkpoint  # revision 1 of a checkpoint, made for this
    before: Position  # the log's end before it
    folder: Path
    recorded: Recorded
    runs: list[LeftRun]  # one, where an operation is about a run
    holds: list[CheckpointId]  # one, where it is about a legal hold

    @property
    def embedded(self) -> bool:
        return not self.recorded.address.startswith("kafka://")

    @property
    def archive(self) -> Path:
        """The one archive of the store: what a compact has moved is read from there."""
        return self.recorded.folder / "archive"

    @property
    def left(self) -> LeftRun:
        return self.runs[0]


def _command(scene: Scene, *arguments: str | Path) -> Any:
    """A command, whose exit code for a denial is 21."""
    who = ["--as", scene.principal.subject, "--role", ",".join(scene.principal.roles)]
    if scene.principal.tenant is not None:
        who += ["--tenant", scene.principal.tenant]
    run = inside(*arguments, *who)
    if run.code == 21:
        raise Denied(run.err)
    assert run.code == 0, run
    return run


class Denied(CheckpointError):
    """A command was."""


def _doctor(scene: Scene) -> None:
    from eventlog.privacy.guard import Access

    with scene.store.entrusted(Operation.DOCTOR, Access(Operation.DOCTOR)) as whole:
        assert whole.position() is not None


def run_left(store: CheckpointStore, folder: Path) -> LeftRun:
    """A run in flight whose effect was started and has no answer."""
    return LeftRun(store, Outside(folder / "outside.log"), "turn", how=EffectClass.NON_IDEMPOTENT_WRITE, answered=False)


def _settle(scene: Scene) -> None:
    EffectStore(scene.store).settle("charge", scene.left.key, Settlement.not_executed(), reason="not in the outbox", actor="ann")


def _decide(scene: Scene) -> None:
    Decisions(scene.store).resolve(scene.left.id, Decision.MARK_FAILED, actor="ann", reason="cancelled")


def _migrate(scene: Scene) -> None:
    following = scene.last.next({"step": 2}).model_copy(update={"kind": "acme.invoice", "schema_version": 2})
    scene.store.migrate_revision(following, 1)


def _archive(scene: Scene) -> Archive:
    """An archive of the store, made by whoever has all of it."""
    archive = Archive(directory=scene.archive)
    run_archive(scene.recorded.store, archive)
    return archive


_POLICY = Policy.parse(b'[[rule]]\nname = "none"\nkind = "no.such"\nolder_than = "1d"\n')


def _admin(scene: Scene) -> CheckpointStore:
    """Another store of the same tenant, for what has to be there before."""
    return scene.recorded.store.for_principal(Principal("an-admin", scene.principal.tenant, ["admin"]))


def held(store: CheckpointStore, last: Checkpoint) -> CheckpointId:
    return Holds(store).place(HoldTarget.of_checkpoint(last.id), reason="case 4711").hold.id


def _anchor(scene: Scene) -> None:
    with scene.store.entrusted(Operation.ANCHOR) as whole:
        take_anchor(whole.log)


def _compact(scene: Scene) -> None:
    archive = _archive(scene)
    with contextlib.nullcontext() if scene.embedded else pytest.raises(InvalidRequest, match="on Kafka"):
        compact(scene.store, archive, hold_ms=0)


def _backup(scene: Scene) -> Path:
    """A backup of the whole store, made by whoever may do so."""
    backup(scene.recorded.store, scene.folder / "backup", keys_to=scene.folder / "keys")
    return scene.folder / "backup"


def _drill(scene: Scene) -> None:
    made = _backup(scene)
    found = drill(made, scene.store, scene.recorded.address, keys_from=scene.folder / "keys")
    assert found.is_clean, found.differences


def _restore(scene: Scene) -> None:
    server, _, _ = scene.recorded.address.partition("?")
    place = scene.folder / "restored"
    address = place if scene.embedded else f"{server}-{scene.last.id}?state={place}"
    options = ("--keys-from", scene.folder / "keys", "--without-erasure-register", "a test")
    _command(scene, "restore", _backup(scene), "--store", address, *options)


ABOUT_RUNS = {Operation.RUNS_SHOW, Operation.RUNS_LIST, Operation.RUNS_DECIDE, Operation.EFFECTS_SETTLE}

PERFORMED: dict[Operation, Callable[[Scene], Any]] = {
    Operation.LOAD: lambda scene: scene.store.load(scene.last.id),
    Operation.LOAD_REVISION: lambda scene: scene.store.load_revision(scene.last.id),
    Operation.HISTORY: lambda scene: [each for each in scene.store.history(scene.last.id) if isinstance(each, Revision)],
    Operation.LIST: lambda scene: scene.store.list(kind=scene.last.kind),
    Operation.SUBSCRIBE: lambda scene: [
        each for each in scene.store.subscribe(scene.before, idle_timeout=0) if each.checkpoint.id == scene.last.id
    ],
    Operation.POSITION: lambda scene: scene.store.position(),
    Operation.COMPARE_AND_SWAP: lambda scene: scene.store.compare_and_swap(scene.last.next({"step": 2}), 1),
    Operation.IMPORT: lambda scene: scene.store.import_revision(numbered(initial(), 7)),
    Operation.MIGRATE: _migrate,
    Operation.MIGRATE_PLAN: lambda scene: plan_migration(scene.store, runifold_migrations(), Selection(ids=[scene.last.id])),
    Operation.DELETE: lambda scene: scene.store.delete(scene.last.id, 1),
    Operation.RESOLVE: lambda scene: scene.store.resolve(scene.last),
    Operation.RUNS_LIST: lambda scene: Decisions(scene.store).list(),
    Operation.RUNS_SHOW: lambda scene: Decisions(scene.store).show(scene.left.id),
    Operation.RUNS_DECIDE: _decide,
    Operation.EFFECTS_SETTLE: _settle,
    Operation.REPORT: lambda scene: scene.store.catalog.report("audit", {"checkpoint": str(scene.last.id)}),
    Operation.REPORT_ACCESS: lambda scene: scene.store.catalog.report("access", {"checkpoint": str(scene.last.id)}),
    Operation.SQL: lambda scene: scene.store.catalog.sql("SELECT count(*) FROM checkpoint_heads"),
    Operation.VERIFY: lambda scene: verify(scene.store),
    Operation.DOCTOR: _doctor,
    Operation.REBUILD: lambda scene: scene.store.catalog.rebuild(),
    Operation.ARCHIVE_RUN: lambda scene: run_archive(scene.store, Archive(directory=scene.archive)),
    Operation.ARCHIVE_LIST: lambda scene: _command(scene, "archive", "list", "--archive", _archive(scene).directory),
    Operation.ARCHIVE_VERIFY: lambda scene: _command(scene, "archive", "verify", "--archive", _archive(scene).directory),
    Operation.ANCHOR: _anchor,
    Operation.COMPACT: _compact,
    Operation.BACKUP: lambda scene: backup(scene.store, scene.folder / "backup", without=["keys"]),
    Operation.BACKUP_DRILL: _drill,
    Operation.RESTORE: _restore,
    Operation.RETENTION_PLAN: lambda scene: plan_retention(scene.store, _POLICY),
    Operation.RETENTION_APPLY: lambda scene: apply_plan(scene.store, plan_retention(_admin(scene), _POLICY), reason="old"),
    Operation.RETENTION_LOG: lambda scene: list(applications(scene.store)),
    Operation.HOLD_PLACE: lambda scene: Holds(scene.store).place(HoldTarget.of_checkpoint(scene.last.id), reason="case 4711"),
    Operation.HOLD_RELEASE: lambda scene: Holds(scene.store).release(scene.holds[0], reason="closed"),
    Operation.HOLD_LIST: lambda scene: Holds(scene.store).list(),
    Operation.ERASE: lambda scene: erase(scene.store, Subjects.of_checkpoints(scene.last.id), actor="an-officer", reason="request 4711"),
    Operation.ERASE_PLAN: lambda scene: plan_erasure(scene.store, Subjects.of_checkpoints(scene.last.id)),
    Operation.ERASE_FINISH: lambda scene: finish(scene.store),
    Operation.ERASE_STATUS: lambda scene: require_register(scene.store),
    Operation.KEYS: lambda scene: scene.store.keys,
    Operation.KEYS_STATUS: lambda scene: keys_status(scene.store),
    Operation.KEYS_ROTATE: lambda scene: rotate_keys(scene.store),
    Operation.INTERNALS: lambda scene: (scene.store.log, scene.store.catalog.projection()),
    Operation.ACT_FOR: lambda scene: scene.store.for_principal(Principal("another", None, ["reader"])),
    Operation.ACCESS_PRUNE: lambda scene: prune_accesses(scene.store, datetime(2020, 1, 1, tzinfo=UTC)),
    Operation.CREATE: lambda scene: _command(scene, "init", scene.folder / "new"),
}
