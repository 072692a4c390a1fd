"""`demo` and `init`: where one starts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from eventlog.cli.command import StoreArgument, command, examples_text
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.privacy.access_log import AccessMode

PANEL = "Start"
DEMO_STORE = Path("demo-store")


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    app.command("demo", epilog=examples_text(("demo", "demo /tmp/try-it")), rich_help_panel=PANEL)(demo)
    command(
        app,
        "init",
        examples=("init ./orders", "init ./orders --access strict", "init kafka://localhost:9092/orders --partitions 8"),
        panel=PANEL,
    )(init)


def demo(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where the demo's store is made, or used again.")] = DEMO_STORE,
) -> None:
    """Show what the store does, in a minute.

    An agent commits its turns, two writers race for one revision, a process is killed in the middle of a turn, and new processes
    find what was committed, what is in flight, the history and its proof.
    """
    from eventlog.demo.narration import run_demo

    run_demo(directory)


def init(
    session: Session,
    address: StoreArgument = None,
    partitions: Annotated[int, typer.Option(help="Of a topic; never changed afterwards.", min=1)] = 4,
    replication: Annotated[
        int | None, typer.Option(help="Copies of a topic; else 3 where there are three brokers, otherwise 1.", min=1, show_default=False)
    ] = None,
    access: Annotated[
        AccessMode, typer.Option(help="Record who reads and writes what: not at all, soon (at most 1 s later), or before it is handed out.")
    ] = AccessMode.OFF,
) -> None:
    """Make a new, empty store.

    That is a directory, or a topic with the settings that the store insists on.
    """
    from eventlog.address import DirectoryAddress, parse_address
    from eventlog.opening import create_store

    session.require("create")
    where = parse_address(session.at(address).address)
    create_store(where, partitions=partitions, replication=replication, access=access)
    embedded = isinstance(where, DirectoryAddress)
    output = session.output
    if output.format is not OutputFormat.TABLE:
        output.record({"store": str(where), "log": "embedded" if embedded else "kafka", "partitions": 1 if embedded else partitions})
        return
    output.text(f"Made an empty store in {where}." if embedded else f"Made the topic {where} with {partitions} partitions.")
    output.text(f"""Next: echo '{{"phase": "ready"}}' | eventlog put - --kind acme.order --store {shlex.quote(str(where))}""")
