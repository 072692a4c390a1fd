"""`ingest` and `import`: checkpoints from other places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eventlog.cli.command import command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session

if TYPE_CHECKING:
    from eventlog.ingest import IngestSummary

_FILE = typer.Argument(metavar="FILE", help="The file.", show_default=False)
_SHOWN = 20  # complaints in a table; JSON has all


def register(app: typer.Typer) -> None:
    """Adds this file's command groups."""
    ingest = typer.Typer(no_args_is_help=True, help="Turn recorded work into checkpoint streams.", rich_markup_mode="rich")
    imports = typer.Typer(no_args_is_help=True, help="Take over checkpoints of other stores.", rich_markup_mode="rich")
    command(ingest, "chats", examples=("ingest chats conversations.jsonl.gz", "ingest chats day.jsonl --kind acme.chat"))(chats)
    command(imports, "runifold", examples=("import runifold runifold.sqlite3",))(runifold)
    app.add_typer(ingest, name="ingest", rich_help_panel="From elsewhere")
    app.add_typer(imports, name="import", rich_help_panel="From elsewhere")


def chats(
    session: Session,
    file: Annotated[Path, _FILE],
    kind: Annotated[str, typer.Option(help="Of the checkpoints.")] = "chat.transcript",
) -> None:
    """Commit conversations as an agent runtime would have written them.

    FILE has one JSON object a line with "messages" in OpenAI form, plain or gzip. Each becomes a checkpoint: revision 0, then an in-flight
    and a stable revision around each assistant turn, the whole transcript in each. Ids follow from the content: running it again, also
    after a kill, adds nothing twice. A malformed line is reported and skipped, and the exit code is then 1.
    """
    from eventlog.ingest import ingest_chats

    size = file.stat().st_size if file.is_file() else None
    with session.store() as store, session.progress("ingesting", total=size, is_bytes=True) as progress:

        def advance(summary: IngestSummary) -> None:
            progress(summary.read, f"{summary.committed} revisions, {summary.rate:.0f}/s")

        summary = ingest_chats(store, file, kind=kind, progress=advance)
    output = session.output
    if output.format is OutputFormat.TABLE:
        for complaint in summary.malformed[:_SHOWN]:
            output.note(f"line {complaint.line}: {complaint.reason}", "yellow")
        if len(summary.malformed) > _SHOWN:
            output.note(f"and {len(summary.malformed) - _SHOWN} more; --format json lists all", "yellow")
    fields = {
        "conversations": summary.conversations,
        "committed": summary.committed,
        "already_there": summary.already_there,
        "malformed": len(summary.malformed),
        "bytes": summary.bytes,
        "seconds": round(summary.seconds, 2),
        "revisions_per_second": round(summary.rate, 1),
    }
    if output.format is OutputFormat.JSON:
        fields["malformed"] = [complaint._asdict() for complaint in summary.malformed]  # type: ignore[assignment]
    output.record(fields)
    if summary.malformed:
        raise typer.Exit(FINDINGS)


def runifold(session: Session, file: Annotated[Path, _FILE]) -> None:
    """Import the checkpoints of a Runifold SQLite file, which is only read.

    Id, run, revision, kind, schema version and payload are kept, and the label imported_from=runifold is set. A stream starts here at the
    revision that Runifold has. A row that this store cannot hold is reported and skipped, and the exit code is then 1.
    """
    from eventlog.importing import import_runifold

    with session.store() as store, session.progress("importing") as progress:
        summary = import_runifold(store, file, progress=lambda done, total: progress(done, f"of {total}"))
    output = session.output
    rejected = [row._asdict() for row in summary.rejected]
    if output.format is OutputFormat.TABLE:
        for row in summary.rejected[:_SHOWN]:
            output.note(f"{row.checkpoint_id}: {row.reason}", "yellow")
    output.record(
        {
            "imported": summary.imported,
            "already_there": summary.already_there,
            "rejected": rejected if output.format is OutputFormat.JSON else len(rejected),
        }
    )
    if rejected:
        raise typer.Exit(FINDINGS)
