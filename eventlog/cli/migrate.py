"""`migrate`: the payloads of checkpoints into another version, and back."""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli.command import command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import Output, OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlog.recovery import MigrationReport, Migrations, Refused, Selection
    from eventlog.store import CheckpointStore

BUILT_IN = "eventlog.recovery.runifold:migrations"
_SHOWN = 20  # refused checkpoints in a table; JSON and CSV have all
_REPORT = ("from", "to", "checkpoints", "refused", "checkpoint_id", "revision", "phase", "detail")

MigrationsOption = Annotated[
    str,
    typer.Option("--migrations", metavar="MODULE:ATTRIBUTE", help="The steps: an eventlog.recovery.Migrations that can be imported."),
]
KindOption = Annotated[str | None, typer.Option(help="Only checkpoints that are of this kind now.", show_default=False)]
IdOption = Annotated[list[str] | None, typer.Option("--id", help="Only this checkpoint; repeated: only these.", show_default=False)]
LimitOption = Annotated[int | None, typer.Option(help="End after so many.", min=1, show_default=False)]
ToOption = Annotated[
    str | None,
    typer.Option(metavar="KIND/VERSION", help="How far; without it to where the steps end.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    group = typer.Typer(no_args_is_help=True, help="Migrate payloads to another version, or undo it.", rich_markup_mode="rich")
    steps = "--migrations acme.migrations:orders"
    command(group, "plan", examples=("migrate plan", f"migrate plan {steps} --kind acme.order", f"migrate plan {steps} --undo"))(plan)
    command(group, "run", examples=("migrate run", f"migrate run {steps} --limit 10", f"migrate run {steps} --to acme.order/2"))(run)
    command(group, "undo", examples=("migrate undo --id ID", f"migrate undo {steps} --kind acme.order"))(undo)
    app.add_typer(group, name="migrate", rich_help_panel="Care")


def plan(
    session: Session,
    migrations: MigrationsOption = BUILT_IN,
    kind: KindOption = None,
    checkpoint: IdOption = None,
    limit: LimitOption = None,
    to: ToOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="What `migrate undo` would do.")] = False,
) -> None:
    """Say what `migrate run` would do now, and write nothing.

    Every payload is taken over every step. Counts by what a checkpoint is and what it would become, and what is refused, with its reason.
    Ends with exit code 1 when anything but a deleted checkpoint is refused.
    """
    from eventlog.recovery import plan_migration, plan_undo

    if undo and to is not None:
        raise InvalidRequest("--to", "an undo leads back to where each checkpoint came from", hint="Leave --to out.")
    target = None if to is None else _schema(to)

    def look(store: CheckpointStore, steps: Migrations, selection: Selection, progress: Any) -> MigrationReport:
        if undo:
            return plan_undo(store, steps, selection, progress=progress)
        return plan_migration(store, steps, selection, to=target, progress=progress)

    _perform(session, "planning", look, migrations, kind, checkpoint, limit)


def run(
    session: Session,
    migrations: MigrationsOption = BUILT_IN,
    kind: KindOption = None,
    checkpoint: IdOption = None,
    limit: LimitOption = None,
    to: ToOption = None,
) -> None:
    """Migrate checkpoints, each by one revision that follows its latest.

    By compare-and-swap: it may run beside live writers, and be killed and started again. What it would do, `migrate plan` says. Without
    --migrations: what `import runifold` has brought in becomes runs of eventlog.recovery.
    """
    from eventlog.recovery import run_migration

    target = None if to is None else _schema(to)

    def migrate(store: CheckpointStore, steps: Migrations, selection: Selection, progress: Any) -> MigrationReport:
        return run_migration(store, steps, selection, to=target, progress=progress)

    _perform(session, "migrating", migrate, migrations, kind, checkpoint, limit)


def undo(
    session: Session,
    migrations: MigrationsOption = BUILT_IN,
    kind: KindOption = None,
    checkpoint: IdOption = None,
    limit: LimitOption = None,
) -> None:
    """Take back what each checkpoint was migrated by last, by one more revision.

    It holds the present payload in the earlier version. Refused are checkpoints that have come to something which that cannot hold, and
    steps that have no way back.
    """
    from eventlog.recovery import undo_migration

    def back(store: CheckpointStore, steps: Migrations, selection: Selection, progress: Any) -> MigrationReport:
        return undo_migration(store, steps, selection, progress=progress)

    _perform(session, "undoing", back, migrations, kind, checkpoint, limit)


def _perform(
    session: Session,
    what: str,
    work: Callable[[CheckpointStore, Migrations, Selection, Any], MigrationReport],
    named: str,
    kind: str | None,
    ids: list[str] | None,
    limit: int | None,
) -> None:
    from eventlog.recovery import Refusal, Selection

    steps = _imported(named)
    selection = Selection(kind=kind, ids=ids or None, limit=limit)
    with session.store() as store, session.progress(what) as progress:

        def advance(report: MigrationReport) -> None:
            progress(report.looked_at, f"{report.moves.total()} so far, {len(report.refused)} refused")

        report = work(store, steps, selection, advance)
    _show(session.output, report)
    if any(each.why is not Refusal.DELETED for each in report.refused):
        raise typer.Exit(FINDINGS)


def _imported(named: str) -> Migrations:
    """What MODULE:ATTRIBUTE names; modules of the current directory are found too."""
    from eventlog.recovery import Migrations

    module_name, colon, attribute = named.partition(":")
    hint = "Name it as MODULE:ATTRIBUTE, such as acme.migrations:orders; the module must be installed or in the current directory."
    if not colon or not module_name or not attribute:
        raise InvalidRequest("--migrations", f"{named[:80]!r} is not MODULE:ATTRIBUTE", hint=hint)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidRequest("--migrations", f"{module_name} cannot be imported: {error}", hint=hint) from error
    except Exception as error:  # it is the module's own code, which may fail in any way
        raise InvalidRequest("--migrations", f"{module_name} fails when it is imported: {type(error).__name__}: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InvalidRequest("--migrations", f"{module_name} has no {attribute}", hint=hint)
        found = getattr(found, name)
    if not isinstance(found, Migrations):
        raise InvalidRequest("--migrations", f"{named} is no Migrations but {type(found).__name__}", hint=hint)
    return found


def _schema(text: str) -> tuple[str, int]:
    kind, slash, version = text.rpartition("/")
    if not slash or not version.isdecimal():
        raise InvalidRequest("--to", f"{text[:80]!r} is not KIND/VERSION", hint="Such as acme.order/2.")
    return kind, int(version)


def _show(output: Output, report: MigrationReport) -> None:
    moves = sorted(report.moves.items())
    if output.format is OutputFormat.JSON:
        output.document(
            {
                "moves": [{"from": _pair(start), "to": _pair(end), "checkpoints": count} for (start, end), count in moves],
                "unchanged": report.unchanged,
                "conflicts": report.conflicts,
                "refused": [each._asdict() for each in report.refused],
            }
        )
    elif output.format is OutputFormat.CSV:
        lines = output.lines(_REPORT)
        for (start, end), count in moves:
            lines((start, end, count, None, None, None, None, None))
        for each in report.refused:
            lines((_of(each), None, 1, each.why, each.checkpoint_id, each.revision, each.phase, each.detail))
    else:
        refused = Counter((_of(each), each.why.value) for each in report.refused)
        rows = [(str(start), str(end), count, None) for (start, end), count in moves]
        rows += [(start, None, count, why) for (start, why), count in sorted(refused.items())]  # type: ignore[misc]
        if rows:
            output.rows(("from", "to", "checkpoints", "refused"), rows)
        for each in report.refused[:_SHOWN]:
            output.note(f"{each.checkpoint_id}: {each.detail}", "yellow")
        if len(report.refused) > _SHOWN:
            output.note(f"and {len(report.refused) - _SHOWN} more; --format json lists all", "yellow")
        again = f", {report.conflicts} planned again because somebody wrote first" if report.conflicts else ""
        output.note(f"{report.moves.total()} of {report.looked_at}; nothing to do for {report.unchanged}{again}")


def _pair(schema: Any) -> dict[str, Any]:
    return {"kind": schema.kind, "version": schema.version}


def _of(each: Refused) -> str:
    return "" if each.kind is None else f"{each.kind} {each.schema_version}"
