"""How each operation is done: by one call with a principal's store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from eventlog import Checkpoint, CheckpointError, CheckpointStore, Position, Principal, Revision
from eventlog.privacy.access_retention import prune_accesses
from eventlog.privacy.principals import Operation
from eventlog.verification import verify
from tests.cli.command_line import inside
from tests.store.samples import initial, numbered


class Scene(NamedTuple):
    """What an operation is done with."""

    store: CheckpointStore  # the principal's
    principal: Principal
    last: Checkpoint  # revision 1 of a checkpoint, made for this
    before: Position  # the log's end before it
    folder: Path


def _command(scene: Scene, *arguments: str | Path) -> Any:
    """A command, whose exit code for a denial is 19."""
    who = ("--as", scene.principal.subject, "--role", ",".join(scene.principal.roles))
    run = inside(*arguments, *who)
    if run.code == 19:
        raise Denied(run.err)
    assert run.code == 0, run
    return run


class Denied(CheckpointError):
    """A command was."""


def _doctor(scene: Scene) -> None:
    from eventlog.privacy.guard import Access

    with scene.store.entrusted(Operation.DOCTOR, Access(Operation.DOCTOR)) as whole:
        assert whole.position() is not None


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
    Operation.DELETE: lambda scene: scene.store.delete(scene.last.id, 1),
    Operation.RESOLVE: lambda scene: scene.store.resolve(scene.last),
    Operation.REPORT: lambda scene: scene.store.catalog.report("audit", {"checkpoint": str(scene.last.id)}),
    Operation.REPORT_ACCESS: lambda scene: scene.store.catalog.report("access", {"checkpoint": str(scene.last.id)}),
    Operation.SQL: lambda scene: scene.store.catalog.sql("SELECT count(*) FROM checkpoint_heads"),
    Operation.VERIFY: lambda scene: verify(scene.store),
    Operation.DOCTOR: _doctor,
    Operation.REBUILD: lambda scene: scene.store.catalog.rebuild(),
    Operation.INTERNALS: lambda scene: (scene.store.log, scene.store.catalog.projection()),
    Operation.ACT_FOR: lambda scene: scene.store.for_principal(Principal("another", None, ["reader"])),
    Operation.ACCESS_PRUNE: lambda scene: prune_accesses(scene.store, datetime(2020, 1, 1, tzinfo=UTC)),
    Operation.CREATE: lambda scene: _command(scene, "init", scene.folder / "new"),
}
