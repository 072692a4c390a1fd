"""`keys`: the keys that wrap an encrypted store's data keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import ConfigurationError

if TYPE_CHECKING:
    from eventlog.privacy.data_keys import DataKeys
    from eventlog.store import CheckpointStore


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    keys = typer.Typer(no_args_is_help=True, help="The keys of an encrypted store.", rich_markup_mode="rich")
    command(keys, "status", examples=("keys status --store ./orders",))(status)
    command(keys, "rotate", examples=("keys rotate --store ./orders",))(rotate)
    app.add_typer(keys, name="keys", rich_help_panel="Care")


def status(session: Session) -> None:
    """Say where the keys are, and how many data keys each version wraps."""
    from eventlog.privacy.rotation import status as counts

    with session.store() as store:
        keys = _keys(store)
        session.output.rows(
            ("tenant", "version", "current", "data_keys"),
            [(count.tenant or "(the store)", count.version, count.current, count.keys) for count in counts(keys.table, keys.provider)],
        )
        if session.output.format is OutputFormat.TABLE:
            session.output.note(f"keys from {keys.provider.source}")


def rotate(session: Session) -> None:
    """Make a new version of every tenant's key, and wrap all data keys by it.

    The log is not touched, and the store is used on meanwhile. Killed, it goes on where it was when it is started again. With the keys in
    an environment variable, put the new version into that first.
    """
    from eventlog.privacy.rotation import rotate as rewrap

    with session.store() as store:
        keys = _keys(store)
        with session.progress("wrapping", total=None) as progress:
            done = rewrap(keys.table, keys.provider, progress=lambda count: progress(count, ""))
    if session.output.format is not OutputFormat.TABLE:
        session.output.record(done._asdict())
        return
    session.output.text(f"Wrapped {done.rewrapped} data keys anew.")
    if not done.new_version:
        session.output.note("An earlier rotation was finished by this; for a new version, run it once more.")


def _keys(store: CheckpointStore) -> DataKeys:
    if store.keys is None:
        raise ConfigurationError(
            "the store is not encrypted, so it has no keys", hint="A store is encrypted when it is made: `eventlog init --encrypt`."
        )
    return store.keys
