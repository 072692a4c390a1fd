"""`erase`: payloads that go for good; its certificates; and what is left to do."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli.command import command, examples_text, with_session
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Given, Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from eventlog.erasure.certificate import Certificate
    from eventlog.erasure.erasing import Planned
    from eventlog.erasure.selection import Selection

_COMMON = ("store", "actor", "acting_as", "role", "timeout", "format")  # --tenant says here what is to go
_EXAMPLES = (
    'erase --checkpoint ID --reason "request 4711"',
    'erase --label subject=s-17 --reason "request 4711" --certificate erased.json --yes',
    'erase --run RUN --reason "kept too long" --dry-run',
)

ArchivesOption = Annotated[
    list[Path] | None,
    typer.Option("--archive", metavar="DIR", help="An archive besides the one that the store remembers; repeated.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    group = typer.Typer(rich_markup_mode="rich", epilog=examples_text(_EXAMPLES))
    group.callback(invoke_without_command=True)(_unless_subcommand(with_session(erase, _COMMON)))
    command(group, "status", examples=("erase status", "erase status --checkpoint ID --format json"), common=_COMMON)(status)
    command(group, "finish", examples=("erase finish --store kafka://localhost:9092/orders",), common=_COMMON)(finish)
    command(group, "apply", examples=("erase apply --store ./restored",), common=_COMMON)(apply)
    app.add_typer(group, name="erase", rich_help_panel="Care")


def _unless_subcommand(run: Callable[..., None]) -> Callable[..., None]:
    """The group by itself is the command; before one of its own it only carries the store and the like."""

    @functools.wraps(run)
    def either(ctx: typer.Context, **values: Any) -> None:
        if ctx.invoked_subcommand is None:
            run(ctx, **values)
        else:
            ctx.obj.given = Given(**{option: values[option] for option in _COMMON}).over(ctx.obj.given)

    return either


def erase(
    session: Session,
    checkpoint: Annotated[list[str] | None, typer.Option(metavar="ID", help="A checkpoint; repeated.", show_default=False)] = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="All of a run, its effects included.", show_default=False)] = None,
    tenant: Annotated[str | None, typer.Option(metavar="TENANT", help="All of a tenant.", show_default=False)] = None,
    label: Annotated[
        str | None, typer.Option(metavar="NAME=VALUE", help="Whatever has ever had this label: a subject.", show_default=False)
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; kept for ever, so no personal data.", show_default=False)] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the certificate there too.", show_default=False)] = None,
    archive: ArchivesOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase every payload of some checkpoints, from every place that the store keeps them in. There is no way back.

    The trail stays: ids, times, labels and hashes, and a DELETED event that says who. Killed or failed, it goes on when it is started
    again.
    """
    from eventlog.erasure.erasing import erase as erase_for_good
    from eventlog.erasure.erasing import plan

    selection = _selection(checkpoint, run, tenant, label)
    if not dry_run and not reason:
        raise InvalidRequest("--reason", "is missing", hint="Say why: it is what the trail will answer.")
    if certificate is not None and not certificate.absolute().parent.is_dir():
        raise InvalidRequest("--certificate", f"the directory of {certificate} does not exist")
    with session.store(keys_if_there=True) as store:  # needed to read what is held; nothing else is opened
        archives = archive or []
        if dry_run or (not yes and sys.stdin.isatty()):
            planned = plan(store, selection, archives=archives)
            _say_plan(session, planned, dry_run=dry_run)
            if dry_run:
                return
            typer.confirm("Erase them for good?", abort=True, err=True)
        assert reason is not None
        made = erase_for_good(store, selection, actor=store.actor or "unknown", reason=reason, archives=archives)
    if certificate is not None:
        _write(made, certificate)
    _say(session, made)


def status(
    session: Session,
    checkpoint: Annotated[str | None, typer.Option(metavar="ID", help="Only what concerns this one.", show_default=False)] = None,
) -> None:
    """List what was erased, by whom and why, and what is not complete. The register is held against its hashes first."""
    from eventlog.checkpoint import from_millis
    from eventlog.erasure import certificate as certificates
    from eventlog.erasure.applying import require_register

    columns = ("at", "state", "erasure", "checkpoints", "revisions", "actor", "reason", "bytes_gone", "bytes_due", "certificate")
    with session.store(without_keys=True) as store:
        register = require_register(store)
        entries = register.entries()
        kept = certificates.read(register.certificates, [entry.certificate for entry in entries if entry.certificate is not None])
        unfinished = register.open_erasures()
    rows: list[tuple[Any, ...]] = []
    for each in kept:
        if checkpoint is None or any(end.checkpoint_id == checkpoint for end in each.checkpoints):
            gone = None if each.bytes_gone_at is None else from_millis(each.bytes_gone_at)
            due = None if each.bytes_due_at is None else from_millis(each.bytes_due_at)
            state = "erased" if gone is not None else "key destroyed" if each.encrypted else "pending"
            count = len(each.checkpoints)
            at = from_millis(each.completed_at)
            rows.append((at, state, each.erasure, count, each.revisions, each.actor, each.reason, gone, due, each.hash))
    for entry in unfinished:
        if checkpoint is None or checkpoint in entry.checkpoints:
            at = from_millis(entry.at)
            rows.append((at, "NOT COMPLETE", entry.erasure, len(entry.checkpoints), None, None, None, None, None, None))
    session.output.rows(columns, rows, shown={"certificate": lambda value: "" if value is None else value[:12]})
    if unfinished and session.output.format is OutputFormat.TABLE:
        session.output.note("Start an erasure that is not complete once more: it goes on where it ended.")


def finish(session: Session) -> None:
    """Look whether a topic has let go of what was erased, and certify that. On Kafka only: elsewhere an erasure ends at once.

    Reads the topic, and the one of its keys, from the beginning.
    """
    from eventlog.erasure.finishing import finish as look

    with session.store(without_keys=True) as store:
        done = look(store)
    rows = [(each.erasure, "erased" if each.certificate else "pending", each.records, each.certificate) for each in done]
    session.output.rows(("erasure", "state", "records_left", "certificate"), rows)


def apply(session: Session, archive: ArchivesOption = None) -> None:
    """Erase again whatever the register names and the store has once more: after an older copy of something was put back.

    A directory whose log is older than its register does it by itself when it is opened.
    """
    from eventlog.erasure.applying import apply_register, require_register

    with session.store(without_keys=True) as store:
        require_register(store)
        done = apply_register(store, archives=archive or [])
    if session.output.format is OutputFormat.TABLE:
        session.output.text(
            f"{done.present} of {done.registered} registered checkpoints are in the log; {done.emptied} payloads and keys erased again."
        )
    else:
        session.output.record(done._asdict())


def _selection(checkpoints: list[str] | None, run: str | None, tenant: str | None, label: str | None) -> Selection:
    from eventlog.erasure.selection import Selection

    if sum(bool(each) for each in (checkpoints, run, tenant, label)) != 1:
        hint = "Give --checkpoint, --run, --tenant or --label."
        raise InvalidRequest("selection", "exactly one kind of selection is needed", hint=hint)
    if checkpoints:
        return Selection.of_checkpoints(*checkpoints)
    if run:
        return Selection.of_run(run)
    if tenant:
        return Selection.of_tenant(tenant)
    name, equals, value = (label or "").partition("=")
    if not equals:
        raise InvalidRequest("--label", f"{label!r} is not NAME=VALUE")
    return Selection.of_label(name, value)


def _write(made: Certificate, file: Path) -> None:
    from eventlog.errors import StorageError
    from projections.durable import put_in_place

    draft = Path(f"{file}.new")
    try:
        draft.write_text(json.dumps(made.document(), indent=1))
        put_in_place(draft, file)
    except OSError as error:
        hint = "The erasure is complete; `eventlog erase status` shows it."
        raise StorageError(str(file), f"the certificate cannot be written: {error.strerror}", hint=hint) from error


def _say_plan(session: Session, planned: Planned, *, dry_run: bool) -> None:
    if dry_run and session.output.format is not OutputFormat.TABLE:
        session.output.record(planned._asdict())
        return
    what = f"{len(planned.checkpoints)} checkpoints, {planned.revisions} payloads, {planned.payload_bytes} bytes"
    places = f"Places: {', '.join(planned.places)}."
    if dry_run:
        session.output.text(f"Would erase {what}.")
        session.output.text(places)
        session.output.rows(("checkpoint",), [(each,) for each in planned.checkpoints])
    else:
        session.output.note(f"This erases {what}. {places}")


def _say(session: Session, made: Certificate) -> None:
    if session.output.format is not OutputFormat.TABLE:
        session.output.document(made.document()) if session.output.format is OutputFormat.JSON else session.output.record(made._asdict())
        return
    from eventlog.checkpoint import from_millis

    session.output.text(f"Erased {made.revisions} payloads of {len(made.checkpoints)} checkpoints. Certificate {made.hash}.")
    columns = ("place", "where", "found", "erased", "note")
    session.output.rows(columns, made.places)
    if made.bytes_gone_at is None:
        due = (
            ""
            if made.bytes_due_at is None
            else f" until {from_millis(made.bytes_due_at):%Y-%m-%d %H:%M} UTC at the latest, if it is written to"
        )
        keys = "their keys are destroyed" if made.encrypted else "THEY ARE IN CLEAR TEXT"
        session.output.note(f"The topic still holds the records{due}; {keys}. Then: eventlog erase finish.", "yellow")
    for each in made.not_reached:
        session.output.note(f"not reached: {each}")
