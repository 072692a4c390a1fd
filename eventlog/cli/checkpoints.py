"""`put` and `get`: one checkpoint."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli import parsing
from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest, NotFound, OutcomeUnknown
from eventlog.no_payload import Withheld

if TYPE_CHECKING:
    from eventlog.checkpoint import Checkpoint
    from eventlog.revision import Revision
    from eventlog.store import CheckpointStore

PANEL = "Checkpoints"


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    command(
        app,
        "put",
        examples=(
            "put order.json --kind acme.order --label region=eu",
            "put - --id ID --expect 3 --usage turns=4 < order.json",
            "put - --id ID --expect 3 --event-id EVENT < order.json   (a retry)",
        ),
        panel=PANEL,
    )(put)
    command(
        app,
        "get",
        examples=("get ID", "get ID --revision 2", "get ID --at 2026-01-31T08:00:00Z", "get ID --payload | jq .phase"),
        panel=PANEL,
    )(get)


def put(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file with the JSON payload, or - for standard input.", show_default=False)],
    checkpoint: Annotated[
        str | None, typer.Option("--id", help="The checkpoint; a new id when it is created without one.", show_default=False)
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option(help="Continue the checkpoint behind this revision; without it a checkpoint is created.", show_default=False),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="What it is, such as acme.order; needed to create.", show_default=False)] = None,
    schema_version: Annotated[int | None, typer.Option(help="Of the payload; 1 for a new checkpoint.", show_default=False)] = None,
    run: Annotated[str | None, typer.Option(help="The run that it belongs to; a new one without.", show_default=False)] = None,
    label: Annotated[list[str] | None, typer.Option(help="name=value, searchable; adds to those there are.", show_default=False)] = None,
    usage: Annotated[list[str] | None, typer.Option(help="name=number, cumulative; adds to those there are.", show_default=False)] = None,
    phase: Annotated[str | None, typer.Option(help="Else taken from the payload's phase.", show_default=False)] = None,
    event_id: Annotated[str | None, typer.Option(help="Of an earlier attempt, which makes a retry safe.", show_default=False)] = None,
) -> None:
    """Commit a revision by compare-and-swap and print its receipt.

    Creates a checkpoint, or with --expect N continues it: the new revision is N + 1, and it is a conflict (exit code 4) when another
    writer has committed meanwhile. With the --event-id of an earlier attempt the same revision is never committed twice.
    """
    payload = _payload(file)
    with session.store() as store:
        options = {
            "labels": parsing.labels(label or ()),
            "usage": parsing.usage(usage or ()),
            "phase": phase,
            "event_id": event_id,
        }
        if expect is None:
            proposed = _initial(store, checkpoint, run, kind, schema_version, payload, options)
        else:
            if checkpoint is None:
                raise InvalidRequest("--id", "is needed with --expect", hint="Name the checkpoint that is continued.")
            fixed = {"kind": kind, "schema_version": schema_version, "run_id": run}
            proposed = _following(store, checkpoint, expect, fixed, payload, options)
        try:
            receipt = store.compare_and_swap(proposed, expect)
        except OutcomeUnknown as error:
            error.hint = f"Repeat the command with --id {proposed.id} --event-id {proposed.event_id}: it is never committed twice."
            raise
    session.output.record(
        {
            "id": proposed.id,
            "revision": receipt.revision,
            "event_id": receipt.event_id,
            "run_id": proposed.run_id,
            "position": receipt.position,
            "recorded_at": receipt.recorded_at,
            "duplicate": receipt.duplicate,
        }
    )


def get(
    session: Session,
    checkpoint: Annotated[str, typer.Argument(metavar="ID", help="The checkpoint.", show_default=False)],
    revision: Annotated[int | None, typer.Option(help="A certain revision; else the latest.", show_default=False)] = None,
    at: Annotated[
        str | None, typer.Option(help="As it was at a position (17, or 0:17,1:4), a time, or an age (12h).", show_default=False)
    ] = None,
    payload: Annotated[bool, typer.Option("--payload", help="Print the payload's JSON and nothing else.")] = False,
) -> None:
    """Print a checkpoint: its latest revision, or one of the past."""
    with session.store() as store:
        if payload:
            store.require_payloads()
        found = store.load_revision(checkpoint, revision=revision, at=parsing.position_or_moment("--at", at))
    output = session.output
    if found.type == "DELETED":
        from eventlog.errors import Deleted

        raise Deleted(found.checkpoint.id, last_revision=found.checkpoint.revision)
    if payload:
        output.document(found.checkpoint.payload)
        return
    fields = _described(found)
    if isinstance(found.checkpoint.payload, Withheld):
        output.record({**fields, "payload_withheld": True})
        return
    if output.format is not OutputFormat.TABLE:
        output.record({**fields, "payload": found.checkpoint.payload})
        return
    output.record(fields)
    output.text("payload")
    output.document(found.checkpoint.payload)


def _described(found: Revision) -> dict[str, Any]:
    checkpoint = found.checkpoint
    fields = {
        "id": checkpoint.id,
        "revision": checkpoint.revision,
        "kind": checkpoint.kind,
        "schema_version": checkpoint.schema_version,
        "phase": checkpoint.phase,
        "tenant": checkpoint.tenant,
        "run_id": checkpoint.run_id,
        "labels": checkpoint.labels,
        "usage": checkpoint.usage,
        "updated_at": checkpoint.updated_at,
        "recorded_at": found.recorded_at,
        "actor": found.actor,
        "type": found.type,
        "event_id": checkpoint.event_id,
        "position": found.position,
        "hash": found.hash,
        "payload_size": found.payload_size,
    }
    return fields if found.as_of is None else {**fields, "as_of": found.as_of}


def _payload(file: str) -> Any:
    from eventlog.importing import parse_json

    if file == "-":
        return parse_json(sys.stdin.buffer.read())
    try:
        return parse_json(Path(file).read_bytes())
    except OSError as error:
        raise InvalidRequest(
            "file", f"{file} cannot be read: {error.strerror}", hint="Name a file with JSON, or - for standard input."
        ) from error


def _initial(
    store: CheckpointStore,
    checkpoint: str | None,
    run: str | None,
    kind: str | None,
    version: int | None,
    payload: Any,
    options: dict[str, Any],
) -> Checkpoint:
    from eventlog.checkpoint import DEFAULT_TENANT, Checkpoint
    from eventlog.ids import CheckpointId, RunId

    if kind is None:
        raise InvalidRequest("--kind", "is needed for a new checkpoint", hint="Name what it is, such as --kind acme.order.")
    identity = CheckpointId.new() if checkpoint is None else CheckpointId(checkpoint)
    earlier = _earlier_attempt(store, identity, 0, options["event_id"])
    return Checkpoint.initial(
        identity,
        run or (RunId.new() if earlier is None else earlier.run_id),
        kind,
        1 if version is None else version,
        payload,
        tenant=store.tenant or DEFAULT_TENANT,
        updated_at=None if earlier is None else earlier.updated_at,
        **options,
    )


def _following(
    store: CheckpointStore, checkpoint: str, expect: int, fixed: dict[str, Any], payload: Any, options: dict[str, Any]
) -> Checkpoint:
    from eventlog.errors import HistoryRemoved
    from eventlog.ids import CheckpointId, RunId

    identity = CheckpointId(checkpoint)
    try:
        before = store.load_revision(identity, revision=expect).checkpoint
    except (NotFound, HistoryRemoved):
        before = store.load(identity)  # the store says what is wrong with --expect: it knows the current revision
    earlier = _earlier_attempt(store, identity, expect + 1, options["event_id"])
    following = before.model_copy(update={"revision": expect}).next(
        payload,
        labels={**before.labels, **options["labels"]},
        usage={**before.usage, **options["usage"]},
        phase=options["phase"],
        event_id=options["event_id"],
        updated_at=None if earlier is None else earlier.updated_at,
    )
    if fixed["run_id"] is not None:
        fixed["run_id"] = RunId(fixed["run_id"])
    return following.model_copy(update={name: value for name, value in fixed.items() if value is not None})


def _earlier_attempt(store: CheckpointStore, checkpoint: str, revision: int, event_id: str | None) -> Checkpoint | None:
    """What an earlier run of this command committed under the same event id: only then its clock and run are taken over."""
    from eventlog.errors import HistoryRemoved
    from eventlog.ids import EventId

    if event_id is None:
        return None
    try:
        found = store.load_revision(checkpoint, revision=revision).checkpoint
    except (NotFound, HistoryRemoved):
        return None
    return found if found.event_id == EventId(event_id) else None
