"""`tail`: what is committed, as it is committed."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

_COLUMNS = ("position", "recorded_at", "id", "revision", "type", "kind", "phase", "actor", "bytes")
_WIDTHS = {"position": 10, "recorded_at": 24, "id": 36, "revision": 8, "type": 8, "kind": 20, "phase": 16, "actor": 12}

PANEL = "Checkpoints"


def register(app: typer.Typer) -> None:
    """Adds this file's command."""
    command(app, "tail", examples=("tail", "tail --from-start --format json", "tail --from 0:17 --idle-timeout 5"), panel=PANEL)(tail)


def tail(
    session: Session,
    start: Annotated[
        str | None, typer.Option("--from", help="From a position on (17, or 0:17,1:4); else from now.", show_default=False)
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="From the log's beginning.")] = False,
    idle_timeout: Annotated[float | None, typer.Option(help="End after so many seconds without news.", min=0, show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(help="End after so many revisions.", min=1, show_default=False)] = None,
    payload: Annotated[bool, typer.Option("--payload", help="With the payload (JSON and CSV).")] = False,
) -> None:
    """Follow the log: print every revision as it is committed.

    It goes on until Ctrl-C. JSON comes as one object a line.
    """
    from eventlog.position import Position

    if start is not None and from_start:
        raise InvalidRequest("--from", "cannot be given together with --from-start", hint="Give one of them.")
    output = session.output
    with_payload = payload and output.format is not OutputFormat.TABLE
    with session.store() as store:
        if with_payload:
            store.require_payloads()
        after = Position() if from_start else store.position() if start is None else Position.parse(start)
        if sys.stderr.isatty():
            output.note(f"following from {after}; Ctrl-C ends")
        line = output.lines((*_COLUMNS, *(("payload",) if with_payload else ())), widths=_WIDTHS)
        left = limit
        for each in store.subscribe(after, idle_timeout=idle_timeout):
            one = each.checkpoint
            row: list[Any] = [
                each.position, each.recorded_at, one.id, one.revision, each.type, one.kind, one.phase, each.actor, each.payload_size,
            ]  # fmt: skip
            line([*row, one.payload] if with_payload else row)
            if left is not None:
                left -= 1
                if left == 0:
                    return
