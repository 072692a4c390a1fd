"""`backup`, `backup drill`, `backup list`, `restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from eventlog.cli.command import WITHOUT_STORE, command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import CheckpointError

BackupArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The backup's directory.", show_default=False)]
KeysFromOption = Annotated[
    Path | None,
    typer.Option("--keys-from", metavar="DIR", help="Where its wrapped data keys are.", show_default=False),
]
WithoutKeysOption = Annotated[bool, typer.Option("--without-keys", help="Leave the payloads of an encrypted store sealed.")]


class _RunUnlessNamed(TyperGroup):
    """`backup DIR` is `backup run DIR`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    group = typer.Typer(
        cls=_RunUnlessNamed,
        no_args_is_help=True,
        help="Copy a store while it is used, and try whether it can be restored. `backup DIR` is `backup run DIR`.",
        rich_markup_mode="rich",
    )
    command(group, "run", examples=("backup run ./backups/monday --store ./orders", "backup run ./monday --keys-to ./keys/monday"))(run)
    command(group, "drill", examples=("backup drill ./backups/monday --store ./orders",))(drill)
    command(group, "list", examples=("backup list ./backups",), common=WITHOUT_STORE)(list_backups)
    app.add_typer(group, name="backup", rich_help_panel="Care")
    command(
        app,
        "restore",
        examples=(
            "restore ./backups/monday --store ./restored --erasure-register ./erasures.jsonl",
            'restore ./backups/monday --store ./restored --without-erasure-register "nothing was ever erased"',
        ),
        panel="Care",
    )(restore)


def run(
    session: Session,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory for the backup.", show_default=False)],
    keys_to: Annotated[
        Path | None,
        typer.Option(
            "--keys-to", metavar="DIR", help="A new directory for the wrapped data keys of an encrypted store.", show_default=False
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="PART", help="Leave a part out: keys, projection, access, archive.", show_default=False),
    ] = None,
    without_keys: Annotated[bool, typer.Option("--without-keys", help="The same as --without keys.")] = False,
) -> None:
    """Copy a store into a new directory, while others write to it.

    What was committed before is in it, as of one moment. Wrapped data keys of an encrypted store go to a place of their own, or are left
    out; the keys that wrap them are in no backup. Stopped or killed, it leaves nothing under that name.
    """
    from eventlog.backup.making import backup

    left_out = {*(without or ()), *(("keys",) if without_keys else ())}
    with session.store(without_keys=True) as store, session.progress("backing up") as progress:
        made = backup(store, directory, keys_to=keys_to, without=left_out, progress=lambda what, reached: progress(reached, what))
    manifest = made.manifest
    size = sum(file.bytes for file in manifest.files)
    output = session.output
    if output.format is OutputFormat.TABLE:
        output.text(f"Backed up {manifest.events} events, up to {manifest.anchor.position}: {len(manifest.files)} files, {size} bytes.")
        for each in manifest.left_out:
            output.note(f"not in it: {each.what}: {each.why}")
    else:
        fields: dict[str, Any] = {"directory": str(directory), "backup_id": manifest.backup_id, "position": str(manifest.anchor.position)}
        fields |= {"events": manifest.events, "files": len(manifest.files), "bytes": size, "encrypted": manifest.encrypted}
        output.record({**fields, "left_out": {each.what: each.why for each in manifest.left_out}})


def list_backups(
    session: Session,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A backup, or a directory of backups.", show_default=False)],
) -> None:
    """List backups, as their manifests describe them; oldest first."""
    from eventlog.backup.manifest import backups_in
    from eventlog.checkpoint import from_millis

    columns = ("taken_at", "kind", "store_id", "position", "events", "bytes", "encrypted", "directory")
    rows: list[tuple[Any, ...]] = []
    for each in backups_in(directory):
        if isinstance(each, CheckpointError):
            session.output.note(f"cannot be read: {each}", "red")
            continue
        this = each.manifest
        size = sum(file.bytes for file in this.files)
        place = (this.anchor.store_id, str(this.anchor.position), this.events, size, this.encrypted, str(each.directory))
        rows.append((from_millis(this.taken_at), this.kind, *place))
    session.output.rows(columns, rows)


def drill(
    session: Session,
    directory: BackupArgument,
    keys_from: KeysFromOption = None,
    without_keys: WithoutKeysOption = False,
    aside: Annotated[
        Path | None,
        typer.Option("--aside", metavar="DIR", help="A directory with room for the restored store; else the system's.", show_default=False),
    ] = None,
) -> None:
    """Restore a backup aside, verify it, hold it against the live store as of its position, and remove it again.

    Every event and head is compared, and the payloads of a sample. What the live store has erased or compacted since is counted, and is no
    difference. Ends with exit code 1 when anything differs, or the backup cannot be restored.
    """
    from eventlog.backup.drill import drill as try_it
    from eventlog.privacy.providers import NoKeys

    keys = NoKeys() if without_keys else session.keys
    with session.store(without_keys=without_keys) as store, session.progress("drilling") as progress:
        try:
            found = try_it(
                directory,
                store,
                session.address,
                keys=keys,
                keys_from=keys_from,
                aside=aside,
                progress=lambda what, reached: progress(reached, what),
            )
        finally:
            if keys is not None:
                keys.close()
    output = session.output
    counts = {
        "events": found.events,
        "checkpoints": found.checkpoints,
        "payloads": found.payloads,
        "erased_since": found.erased_since,
        "erased_again": found.erased_again,
        "removed_since": found.removed_since,
        "restore_seconds": round(found.restore_seconds, 3),
        "compare_seconds": round(found.compare_seconds, 3),
    }
    if output.format is OutputFormat.TABLE:
        for difference in found.differences:
            output.note(difference, "red")
        verdict = "the same" if found.is_clean else f"{found.difference_count} DIFFERENCES"
        output.text(f"{verdict}: {', '.join(f'{value} {name}' for name, value in counts.items())}")
    else:
        fields = {"same": found.is_clean, **counts, "position": str(found.manifest.anchor.position)}
        output.record({**fields, "difference_count": found.difference_count, "differences": found.differences})
    if not found.is_clean:
        raise typer.Exit(FINDINGS)


def restore(
    session: Session,
    directory: BackupArgument,
    erasure_register: Annotated[
        Path | None,
        typer.Option("--erasure-register", metavar="FILE", help="The newest copy of the store's register of erasures.", show_default=False),
    ] = None,
    without_erasure_register: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Restore although what was erased since the backup will be back; the reason is recorded.",
            show_default=False,
        ),
    ] = None,
    keys_from: KeysFromOption = None,
    without_keys: WithoutKeysOption = False,
) -> None:
    """Make a store of a backup, at an address where none is.

    Everything is verified, and what was erased since the backup is erased again, before the store can be opened by anybody. A backup of a
    topic is restored into a new topic: same events, same order, same times, other offsets and another store id. Stopped or killed, start it
    again: it begins from nothing.
    """
    from eventlog.backup.restoring import restore as make
    from eventlog.privacy.providers import NoKeys

    keys = NoKeys() if without_keys else session.keys
    try:
        with session.progress("restoring") as progress:
            done = make(
                directory,
                session.address,
                erasure_register=erasure_register,
                without_register=without_erasure_register,
                keys=keys,
                keys_from=keys_from,
                actor=session.actor,
                principal=session.principal,
                reason=session.settings.reason,
                progress=lambda what, reached: progress(reached, what),
            )
    finally:
        if keys is not None:
            keys.close()
    output = session.output
    if output.format is OutputFormat.TABLE:
        output.text(
            f"Restored {done.manifest.events} events to {done.address}, as of {done.manifest.anchor.position} of what was backed up."
        )
        if done.erasures is not None:
            output.text(f"{done.erasures.present} of {done.erasures.registered} erased checkpoints were in it, and are erased again.")
        if done.manifest.encrypted and not done.has_keys:
            output.note("Without its wrapped keys: payloads cannot be read.")
        if not done.recorded:
            output.note("The restore is not recorded in the store: it is encrypted, and was opened without keys.")
    else:
        fields: dict[str, Any] = {"address": done.address, "store_id": done.store_id, "events": done.manifest.events}
        fields |= {"recorded": done.recorded, "backup_id": done.manifest.backup_id}
        output.record({**fields, "erasures_applied": None if done.erasures is None else done.erasures.present})
