"""`list` and `log`: many checkpoints, and the history of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli import parsing
from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session

if TYPE_CHECKING:
    from eventlog.revision import Gap, Revision

SHORT_HASH = 12  # hex digits, in tables only

_LIST = ("id", "revision", "kind", "phase", "recorded_at", "actor", "bytes", "labels")
_LIST_ALL = (
    "id", "revision", "kind", "schema_version", "phase", "tenant", "run_id", "labels", "usage", "actor", "updated_at", "recorded_at",
    "payload_size", "event_id", "position", "deleted",
)  # fmt: skip
_LOG = ("revision", "type", "recorded_at", "actor", "phase", "bytes", "hash")
_LOG_ALL = (
    "revision", "type", "recorded_at", "updated_at", "actor", "phase", "kind", "schema_version", "labels", "usage", "payload_size",
    "event_id", "position", "hash", "previous_hash", "last_revision", "reason", "decision",
)  # fmt: skip

PANEL = "Checkpoints"


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    command(
        app,
        "list",
        examples=(
            "list --kind acme.order --phase turn_in_flight",
            "list --label region=eu --older-than 30d",
            "list --at 2026-01-31T08:00:00Z",
        ),
        panel=PANEL,
    )(list_checkpoints)
    command(app, "log", examples=("log ID", "log ID --after 10 --limit 20", "log ID --format csv"), panel=PANEL)(log)


def list_checkpoints(
    session: Session,
    kind: Annotated[str | None, typer.Option(help="Of this kind.", show_default=False)] = None,
    phase: Annotated[str | None, typer.Option(help="In this phase.", show_default=False)] = None,
    label: Annotated[list[str] | None, typer.Option(help="name=value; repeated, all must match.", show_default=False)] = None,
    run: Annotated[str | None, typer.Option(help="Of this run.", show_default=False)] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Last written before a time, or an age ago (30d, 12h).", show_default=False)
    ] = None,
    newer_than: Annotated[str | None, typer.Option(help="Last written since.", show_default=False)] = None,
    at: Annotated[str | None, typer.Option(help="As it was at a position, a time or an age ago.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="Checkpoints a page.", min=1, max=1000)] = 100,
    after: Annotated[str | None, typer.Option(help="The page behind this id.", show_default=False)] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="With the deleted ones.")] = False,
) -> None:
    """List checkpoints by their latest revision.

    All filters given must match; the order is that of the ids. With more than a page there is a note how to go on;
    in JSON that is "next", null on the last page.
    """
    with session.store() as store:
        page = store.list(
            kind=kind,
            phase=phase,
            labels=parsing.labels(label or ()) or None,
            run_id=run,
            older_than=None if older_than is None else parsing.moment("--older-than", older_than),
            newer_than=None if newer_than is None else parsing.moment("--newer-than", newer_than),
            include_deleted=deleted,
            at=parsing.position_or_moment("--at", at),
            after=after,
            limit=limit,
        )
    output = session.output
    if output.format is OutputFormat.JSON:
        items = [dict(zip(_LIST_ALL, [getattr(item, name) for name in _LIST_ALL], strict=True)) for item in page.items]
        output.document({"checkpoints": items, "next": page.next, "position": page.position})
        return
    if output.format is OutputFormat.CSV:
        output.rows(_LIST_ALL, [[getattr(item, name) for name in _LIST_ALL] for item in page.items])
    elif page.items:
        output.rows(
            _LIST,
            [
                (
                    each.id,
                    each.revision,
                    each.kind,
                    "DELETED" if each.deleted else each.phase,
                    each.recorded_at,
                    each.actor,
                    each.payload_size,
                    each.labels,
                )
                for each in page.items
            ],
        )
    else:
        output.note("no checkpoints match")
    if page.next is not None:
        output.note(f"more: repeat the command with --after {page.next} --at {page.position}")


def log(
    session: Session,
    checkpoint: Annotated[str, typer.Argument(metavar="ID", help="The checkpoint.", show_default=False)],
    after: Annotated[int, typer.Option(help="Only behind this revision.", show_default=False)] = -1,
    limit: Annotated[int | None, typer.Option(help="Revisions at most; else all.", min=1, show_default=False)] = None,
    at: Annotated[str | None, typer.Option(help="As far as it had come at a position, a time or an age ago.", show_default=False)] = None,
) -> None:
    """Print the history of a checkpoint: who committed which revision when.

    Revisions that the log no longer holds are shown as a gap, with the reason where it is known. What a person has decided about a
    run (recovery resolve) stands beside the revision, with the reason.
    """
    output = session.output
    wide = output.format is not OutputFormat.TABLE
    with session.store() as store:
        found = store.history(checkpoint, after=after, at=parsing.position_or_moment("--at", at), limit=limit)
        rows = [_log_row(each) for each in found]
    by_people = any(row.get("decision") for row in rows)
    output.rows(
        _LOG_ALL if wide else (*_LOG, "decision") if by_people else _LOG,
        [[row.get(name) for name in _LOG_ALL] if wide else _narrow(row, by_people) for row in rows],
        shown={"hash": lambda value: "" if value is None else value.hex()[:SHORT_HASH]},
    )


def _log_row(each: Revision | Gap) -> dict[str, Any]:
    from eventlog.recovery.decided_runs import decision_made
    from eventlog.revision import Gap

    if isinstance(each, Gap):
        return {"revision": each.first_revision, "last_revision": each.last_revision, "type": "GAP", "reason": each.reason}
    own = {name: getattr(each, name) for name in ("type", "recorded_at", "actor", "payload_size", "position", "hash", "previous_hash")}
    made = decision_made(each.checkpoint)
    own["decision"] = None if made is None else made.entry()
    kept = ("revision", "updated_at", "phase", "kind", "schema_version", "labels", "usage", "event_id")
    return {**own, **{name: getattr(each.checkpoint, name) for name in kept}}


def _narrow(row: dict[str, Any], by_people: bool) -> list[Any]:
    if row["type"] == "GAP":
        cells = [f"{row['revision']}-{row['last_revision']}", "GAP", None, None, f"removed by {row['reason']}", None, None]
    else:
        cells = [row[name] for name in ("revision", "type", "recorded_at", "actor", "phase", "payload_size", "hash")]
    made = row.get("decision")
    return [*cells, f"{made['choice']} by {made['actor']}: {made['reason']}" if made else None] if by_people else cells
