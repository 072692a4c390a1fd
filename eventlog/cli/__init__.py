"""The command line, `eventlog`: one file a group of commands, put together here.

Whatever is slow to import (DuckDB, Kafka) is imported inside the commands that need it.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from eventlog.cli import (
    access,
    archives,
    backups,
    browse,
    checkpoints,
    erasures,
    failures,
    intake,
    keys,
    metrics,
    migrate,
    recovery,
    reports,
    retention,
    start,
    stores,
    tail,
    topics,
)
from eventlog.cli.command import (
    ActorOption,
    AsOption,
    FormatOption,
    LogFormatOption,
    LogLevelOption,
    RoleOption,
    StoreOption,
    TenantOption,
    TimeoutOption,
)
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Given, Session
from eventlog.errors import CheckpointError

__all__ = ["app", "main"]

_EPILOG = f"""Exit codes:

{failures.exit_code_table()}

Data goes to stdout, everything else to stderr. With --format json an error is one JSON object on stderr.
Settings: options, then EVENTLOG_* in the environment, then eventlog.toml (or the file in EVENTLOG_CONFIG).

Examples:

  eventlog demo
  eventlog init --store ./orders
  eventlog list --store ./orders --format json"""


class Root(TyperGroup):
    """The top command: the one place where a failure becomes an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a reader that has gone is no traceback
            return result
        except CheckpointError as error:
            failures.report(error, as_json=_wants_json(ctx))
            raise typer.Exit(failures.exit_code(error)) from error
        except BrokenPipeError as error:
            # Nobody reads on. What Python still wants to flush at its end must not be a second failure.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(failures.READER_GONE) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(failures.INTERRUPTED) from error


def _wants_json(ctx: Any) -> bool:
    session = Session(given=ctx.obj.given if ctx.obj is not None else Given())
    try:
        return session.output.format is OutputFormat.JSON
    except CheckpointError:  # it is the settings that are wrong
        return False


class _Shared:
    """Carries the options from the top command to the one that runs."""

    def __init__(self) -> None:
        self.given = Given()


app = typer.Typer(
    cls=Root,
    name="eventlog",
    help="A checkpoint store for agents and workflows: compare-and-swap on an append-only log, its history in DuckDB.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from eventlog import __version__

        typer.echo(f"eventlog {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    ctx: typer.Context,
    store: StoreOption = None,
    tenant: TenantOption = None,
    actor: ActorOption = None,
    acting_as: AsOption = None,
    role: RoleOption = None,
    timeout: TimeoutOption = None,
    output_format: FormatOption = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True)] = False,  # noqa: ARG001
) -> None:
    ctx.obj = _Shared()
    ctx.obj.given = Given(
        store=store,
        tenant=tenant,
        actor=actor,
        acting_as=acting_as,
        role=role,
        timeout=timeout,
        format=output_format,
        log_format=log_format,
        log_level=log_level,
    )


for _group in (
    start,
    checkpoints,
    browse,
    tail,
    recovery,
    reports,
    intake,
    stores,
    metrics,
    retention,
    erasures,
    archives,
    backups,
    keys,
    access,
    migrate,
    topics,
):
    _group.register(app)


def main() -> None:
    """The console script. Ends the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character is no reason to fail
    app(prog_name="eventlog")
