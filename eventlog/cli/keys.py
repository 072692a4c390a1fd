"""`keys`: the keys that wrap an encrypted store's data keys."""

from __future__ import annotations

import typer

from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    keys = typer.Typer(no_args_is_help=True, help="The keys of an encrypted store.", rich_markup_mode="rich")
    command(keys, "status", examples=("keys status --store ./orders",))(status)
    command(keys, "rotate", examples=("keys rotate --store ./orders",))(rotate)
    app.add_typer(keys, name="keys", rich_help_panel="Care")


def status(session: Session) -> None:
    """Say where the keys are, and how many data keys each version wraps."""
    from eventlog.privacy.key_care import keys_status

    with session.store() as store:
        found = keys_status(store)
    session.output.rows(
        ("tenant", "version", "current", "data_keys"),
        [(count.tenant or "(the store)", count.version, count.current, count.keys) for count in found.counts],
    )
    if session.output.format is OutputFormat.TABLE:
        session.output.note(f"keys from {found.source}")


def rotate(session: Session) -> None:
    """Make a new version of every tenant's key, and wrap all data keys by it.

    The log is not touched, and the store is used on meanwhile. Killed, it goes on where it was when it is started again. With the keys in
    an environment variable, put the new version into that first.
    """
    from eventlog.privacy.key_care import rotate_keys

    with session.store() as store, session.progress("wrapping", total=None) as progress:
        done = rotate_keys(store, progress=lambda count: progress(count, ""))
    if session.output.format is not OutputFormat.TABLE:
        session.output.record(done._asdict())
        return
    session.output.text(f"Wrapped {done.rewrapped} data keys anew.")
    if not done.new_version:
        session.output.note("An earlier rotation was finished by this; for a new version, run it once more.")
