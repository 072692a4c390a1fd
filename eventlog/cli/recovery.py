"""`recovery`: runs of agents and workflows that were left in flight, for a person to look at and to decide about."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli import parsing
from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from eventlog.recovery import Decided, Evidence, Settlement

PANEL = "Runs"

_LIST = ("id", "kind", "what", "since", "recorded_at", "owner", "wakes_at", "decision")
_LIST_ALL = (
    "id", "kind", "tenant", "phase", "what", "since", "recorded_at", "revision", "run_id", "actor", "owner", "lease_ends", "wakes_at",
    "decision", "problem",
)  # fmt: skip
_ID = typer.Argument(metavar="ID", help="The run's checkpoint.", show_default=False)
_REASON = typer.Option("--reason", help="Why, on one line; it is on record.", show_default=False)


class Choice(StrEnum):
    """The decisions, as they are typed."""

    RETRY = "retry"
    ROLL_BACK = "roll-back"
    MARK_FAILED = "mark-failed"


class Outcome(StrEnum):
    """How an effect has ended, as a person says."""

    COMPLETED = "completed"
    FAILED = "failed"
    NOT_EXECUTED = "not-executed"


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    group = typer.Typer(no_args_is_help=True, help="Look at runs left in flight, and decide about them.", rich_markup_mode="rich")
    command(group, "list", examples=("recovery list", "recovery list --kind eventlog.workflow --older-than 12h"))(list_runs)
    command(group, "show", examples=("recovery show ID", "recovery show ID --format json"))(show)
    command(
        group,
        "resolve",
        examples=(
            "recovery resolve ID --decision retry --actor ann --reason 'the bank has no payment'",
            "recovery resolve ID --decision mark-failed --expected 7 --actor ann --reason 'order was cancelled'",
        ),
    )(resolve)
    command(
        group,
        "settle",
        examples=(
            "recovery settle EFFECT --outcome not-executed --actor ann --reason 'not in the outbox'",
            "recovery settle EFFECT --outcome completed --output '{\"mailed\": 7}' --actor ann --reason 'seen in the outbox'",
        ),
    )(settle)
    app.add_typer(group, name="recovery", rich_help_panel=PANEL)


def list_runs(
    session: Session,
    kind: Annotated[str | None, typer.Option(help="eventlog.agent or eventlog.workflow.", show_default=False)] = None,
    older_than: Annotated[
        str | None, typer.Option(help="In flight or waiting since before a time, or for an age (12h).", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(help="Runs at most.", min=1, max=100_000)] = 100,
) -> None:
    """List runs that are in flight or wait, the oldest first.

    Since when is by the log's clock. What a run is in, its owner and when it wakes are read from its payload.
    """
    from eventlog.recovery import Decisions

    with session.store() as store:
        older = None if older_than is None else parsing.moment("--older-than", older_than)
        found = Decisions(store).list(kind=kind, older_than=older, limit=limit)
    output = session.output
    rows = [each._asdict() | {"id": each.checkpoint_id} for each in found.runs]
    if output.format is OutputFormat.TABLE:
        shown = [row | {"what": row["problem"] or row["what"], "decision": _in_short(row["decision"])} for row in rows]
        if rows:
            output.rows(_LIST, [[row[name] for name in _LIST] for row in shown])
        else:
            output.note("no runs are in flight")
    else:
        output.rows(_LIST_ALL, [[row[name] if name != "decision" else _entry(row[name]) for name in _LIST_ALL] for row in rows])
    if found.more:
        output.note(f"there are more than these {limit}: raise --limit, or name a kind or an age")


def show(session: Session, checkpoint: Annotated[str, _ID]) -> None:
    """Print what is on record of a run: what it is in, its effects, and what each policy and each decision would do."""
    from eventlog.recovery import Decisions

    with session.store() as store:
        found = Decisions(store).show(checkpoint)
    output = session.output
    if output.format is not OutputFormat.TABLE:
        output.record(_described(found))
        return
    fields = _described(found)
    effects, policies, decisions = fields.pop("effects"), fields.pop("policies"), fields.pop("decisions")
    output.record({name: value for name, value in fields.items() if value not in (None, [], {})})
    if effects:
        output.text("\neffects")
        columns = ("capability", "idempotency_key", "effect_class", "state", "history", "repeated", "checkpoint_id")
        output.rows(columns, [[_history(each[name]) if name == "history" else each[name] for name in columns] for each in effects])
    output.text("\na resume")
    output.record(policies)
    output.text("\na decision")
    output.record({name.replace("_", "-"): text for name, text in decisions.items()})


def resolve(
    session: Session,
    checkpoint: Annotated[str, _ID],
    decision: Annotated[Choice, typer.Option("--decision", help="What becomes of the run.", show_default=False)],
    reason: Annotated[str, _REASON],
    expected: Annotated[
        int | None, typer.Option(help="The revision that was looked at; if the run has moved on, nothing is decided.", show_default=False)
    ] = None,
) -> None:
    """Decide about a run that is in flight: one more revision, with who has decided and why.

    retry: what is in flight may be repeated, once, whatever the policy of whoever resumes it. roll-back: the last stable revision is
    committed once more. mark-failed: the run ends, and every resume says so. Usage stays as it is.
    """
    from eventlog.recovery import Decision, Decisions

    actor = _actor(session)
    with session.store() as store:
        made = Decisions(store).resolve(
            checkpoint, Decision(decision.value.replace("-", "_")), actor=actor, reason=reason, expected=expected
        )
    session.output.record(
        {"id": made.id, "revision": made.revision, "phase": made.phase, "decision": decision.value, "actor": actor, "reason": reason}
    )


def settle(
    session: Session,
    effect: Annotated[str, typer.Argument(metavar="EFFECT", help="The effect's checkpoint, as recovery show prints it.")],
    outcome: Annotated[Outcome, typer.Option("--outcome", help="How it has ended.", show_default=False)],
    reason: Annotated[str, _REASON],
    output: Annotated[
        str | None, typer.Option(help="What its handler would have returned, as JSON; of a completed one.", show_default=False)
    ] = None,
    message: Annotated[str | None, typer.Option(help="What the other side has said; of a failed one.", show_default=False)] = None,
) -> None:
    """Say how an effect has ended that was started and has no answer.

    A completed one is never run again; one that was not executed may be. It is on record with who has said so, and why.
    """
    from eventlog.recovery import EffectStore
    from eventlog.recovery.effect_phases import Effect

    actor = _actor(session)
    settlement = _settlement(outcome, output, message)
    with session.store() as store:
        found = store.load(effect)
        on_record = Effect.of(found)
        settled = EffectStore(store, tenant=found.tenant).settle(
            on_record.capability, on_record.idempotency_key, settlement, reason=reason, actor=actor
        )
    session.output.record(
        {
            "id": found.id,
            "capability": settled.capability,
            "idempotency_key": settled.idempotency_key,
            "state": settled.state.value,
            "actor": actor,
            "reason": reason,
        }
    )


def _actor(session: Session) -> str:
    """A decision is somebody's: the login name of a shared account would not do."""
    if not session.actor:
        raise InvalidRequest("--actor", "is needed: a decision is on record with who has made it", hint="Name yourself by --actor NAME.")
    return session.actor


def _settlement(outcome: Outcome, output: str | None, message: str | None) -> Settlement:
    from eventlog.importing import parse_json
    from eventlog.recovery import Settlement

    for option, value, wanted in (("--output", output, Outcome.COMPLETED), ("--message", message, Outcome.FAILED)):
        if (value is not None) is not (outcome is wanted):
            raise InvalidRequest(option, f"goes with --outcome {wanted.value}, and with no other")
    if output is not None:
        return Settlement.completed(parse_json(output.encode()))
    return Settlement.not_executed() if message is None else Settlement.failed(message)


def _described(found: Evidence) -> dict[str, Any]:
    stable = found.last_stable
    return {
        "id": found.checkpoint_id,
        "kind": found.kind,
        "tenant": found.tenant,
        "run_id": found.run_id,
        "identity": found.identity,
        "revision": found.latest.revision,
        "phase": found.latest.phase,
        "what": found.what,
        "since": found.since,
        "recorded_at": found.latest.recorded_at,
        "actor": found.latest.actor,
        "attempts": [each._asdict() | {"decision": _entry(each.decision)} for each in found.attempts],
        "usage": found.usage,
        "owner": found.owner,
        "lease_ends": found.lease_ends,
        "wakes_at": found.wakes_at,
        "decision": _entry(found.decision),
        "last_stable": None if stable is None else stable._asdict(),
        "removed": found.removed,
        "effects": [
            each.effect._asdict() | {"history": [moment._asdict() for moment in each.history], "repeated": each.on_repetition}
            for each in found.effects
        ],
        "policies": found.policies,
        "decisions": found.decisions,
    }


def _history(moments: list[dict[str, Any]]) -> str:
    from eventlog.cli.output import instant

    return ", ".join(f"{each['phase']} {instant(each['recorded_at'])}" for each in moments)


def _entry(decided: Decided | None) -> dict[str, Any] | None:
    return None if decided is None else decided.entry()


def _in_short(decided: Decided | None) -> str | None:
    return None if decided is None else f"{decided.choice} by {decided.actor}"
