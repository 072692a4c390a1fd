"""`metrics serve`: a store's state for Prometheus, from a process that does nothing else."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli.archives import ArchiveOption, archive_of
from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session

if TYPE_CHECKING:
    from eventlog.archive.margin import ArchiveMargin
    from eventlog.store import CheckpointStore

PANEL = "Care"


class _Stopped(Exception):
    """A signal that asks to end."""


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    group = typer.Typer(no_args_is_help=True, help="A store's state for Prometheus.", rich_markup_mode="rich")
    command(
        group,
        "serve",
        examples=(
            "metrics serve --store ./orders --port 9464",
            "metrics serve --store 'kafka://localhost:9092/orders?state=/var/lib/metrics' --archive /var/lib/archive",
        ),
    )(serve)
    app.add_typer(group, name="metrics", rich_help_panel=PANEL)


def serve(
    session: Session,
    port: Annotated[int, typer.Option(help="Where to listen; 0 takes a free one.", min=0, max=65_535)] = 9464,
    address: Annotated[str, typer.Option(help="Of this machine. Nobody is asked who he is.")] = "127.0.0.1",
    archive: ArchiveOption = None,
) -> None:
    """Serve what a store holds that somebody should look after: open runs and their age, lag, quarantine, the margin of its archive.

    It looks on: nothing is written but who has started it, where accesses are recorded, and a directory's projection is left to other
    processes. What your own processes count they serve themselves (docs/metrics.md). Ends on SIGTERM or Ctrl-C.
    """
    from eventlog.address import parse_address
    from eventlog.archive.margin import margin_of
    from eventlog.metrics import serve_metrics

    where = parse_address(session.address)

    def margin(whole: CheckpointStore) -> ArchiveMargin | None:
        """Where no archive is kept there is none to be behind."""
        kept = archive_of(whole, archive, trusted=None, required=False)
        if kept is None:
            return None
        kept.require_of(whole.log.identity)
        return margin_of(whole, where, kept)

    # Payloads are of no interest, and so no key is.
    with (
        session.store(without_keys=True, looks_on=True) as store,
        serve_metrics(port, address, store=store, archive_margin=margin) as server,
    ):
        url = f"http://{address}:{server.port}/metrics"
        if session.output.format is OutputFormat.TABLE:
            session.output.text(f"Serving {url}; Ctrl-C ends it.")
        else:
            session.output.record({"url": url})
        sys.stdout.flush()
        _until_stopped()


def _until_stopped() -> None:
    def stop(*_: Any) -> None:
        raise _Stopped

    before = {}
    try:
        for each in (signal.SIGTERM, signal.SIGINT):
            before[each] = signal.signal(each, stop)
        threading.Event().wait()
    except _Stopped:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
