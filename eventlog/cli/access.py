"""`access`: the care of the access log."""

from __future__ import annotations

from typing import Annotated

import typer

from eventlog.cli import parsing
from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    group = typer.Typer(no_args_is_help=True, help="Keep the record of who did what.", rich_markup_mode="rich")
    command(
        group,
        "prune",
        examples=("access prune --older-than 365d", "access prune --older-than 2026-01-31T00:00:00Z --as olga --role operator"),
    )(prune)
    app.add_typer(group, name="access", rich_help_panel="Care")


def prune(
    session: Session,
    older_than: Annotated[str, typer.Option(help="Recorded before a time, or an age ago (365d).", show_default=False)],
) -> None:
    """Remove old records from the access log.

    That they were removed, by whom and up to where, is on record before anything goes. `report access` shows what is left.
    """
    from eventlog.privacy.access_retention import prune_accesses

    before = parsing.moment("--older-than", older_than)
    with session.store() as store:
        pruned = prune_accesses(store, before)
    if session.output.format is OutputFormat.TABLE:
        session.output.text(f"Removed {pruned.removed} records; the access log begins at {pruned.start} now.")
    else:
        session.output.record({"removed": pruned.removed, "start": pruned.start})
