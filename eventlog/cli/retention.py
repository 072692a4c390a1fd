"""`retention`: what a policy would delete, and deleting it; legal holds. And `report retention` with a policy."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli import parsing
from eventlog.cli.command import command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from eventlog.holds.placing import Hold
    from eventlog.holds.targets import HoldTarget
    from eventlog.retention import Item, Plan
    from eventlog.store import CheckpointStore

_ITEMS = (
    "action", "why", "rule", "tenant", "kind", "phase", "checkpoint_id", "revision", "recorded_at", "due_since", "revisions",
    "stored_bytes", "holds",
)  # fmt: skip
_HOLDS = ("id", "on", "state", "reason", "placed_by", "placed_at", "release_reason", "released_by", "released_at")
REPORT, POLICY = "retention", "policy"  # the report that takes a policy too, and its option
_SHOWN = 50  # items of each kind in a table; JSON, CSV and the plan's file have all

PolicyOption = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="The policy, in TOML.", show_default=False)]
REPORT_OPTIONS = (inspect.Parameter(POLICY, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=PolicyOption),)
OverrideOption = Annotated[
    str | None,
    typer.Option("--override-floor", metavar="REASON", help="Why the policy's floors do not count; it is on record.", show_default=False),
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, on one line; it is on record.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Adds this file's command group."""
    group = typer.Typer(no_args_is_help=True, help="Delete what is old enough, and hold what must not be deleted.", rich_markup_mode="rich")
    command(
        group,
        "plan",
        examples=("retention plan --policy retention.toml", "retention plan --policy retention.toml --out plan.json --format csv"),
    )(plan)
    command(
        group,
        "apply",
        examples=("retention apply --plan plan.json --reason monthly", "retention apply --policy retention.toml --reason nightly"),
    )(apply)
    command(
        group,
        "hold",
        examples=(
            "retention hold --checkpoint ID --reason 'case 4711' --actor ann",
            "retention hold --tenant north --label customer=7 --reason 'case 4711' --actor ann",
        ),
        common=_WITHOUT_TENANT,
    )(hold)
    command(group, "release", examples=("retention release HOLD --reason 'case 4711 is closed' --actor ann",))(release)
    command(group, "holds", examples=("retention holds", "retention holds --released --format json"))(holds)
    command(group, "log", examples=("retention log", "retention log --format json"))(log)
    app.add_typer(group, name="retention", rich_help_panel="Care")


_WITHOUT_TENANT = ("store", "actor", "acting_as", "role", "timeout", "format")  # `hold` has an option of this name


def plan(
    session: Session,
    policy: PolicyOption = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it, for `apply --plan`.", show_default=False)] = None,
    override_floor: OverrideOption = None,
) -> None:
    """Say what the policy would delete now and why, and what is due and kept all the same. Deletes nothing.

    Kept are what a legal hold lies on, runs in flight and their effects, what is quarantined and what is below a floor. What is not due is
    counted only.
    """
    with session.store() as store:
        made = _planned(store, policy, override_floor)
    if out is not None:
        made.write(out)
    _show(session, made)
    if out is not None:
        session.output.note(f"written to {out}")


def apply(
    session: Session,
    reason: ReasonOption,
    plan: Annotated[Path | None, typer.Option("--plan", metavar="FILE", help="Of `plan --out`.", show_default=False)] = None,
    policy: PolicyOption = None,
    override_floor: OverrideOption = None,
) -> None:
    """Delete what a plan names, each checkpoint as it stood in the plan; or plan by --policy, and delete that at once.

    It may be killed and started again with the same plan. What has moved on meanwhile, or is held by now, is skipped and named. Ends with
    exit code 1 when anything was skipped.
    """
    from eventlog.retention import Plan, apply_plan

    if (plan is None) == (policy is None):
        raise InvalidRequest("--plan", "give a plan, or a policy to make one by", hint="`eventlog retention plan --out FILE` makes one.")
    if plan is not None and override_floor is not None:
        raise InvalidRequest("--override-floor", "stands in the plan", hint="Give it to `eventlog retention plan`.")
    with session.store() as store:
        made = Plan.read(plan) if plan is not None else _planned(store, policy, override_floor)
        with session.progress("deleting", total=len(made.items)) as progress:
            done = apply_plan(store, made, reason=reason, progress=lambda reached: progress(reached, ""))
    output = session.output
    if output.format is OutputFormat.TABLE:
        output.text(f"deleted {done.deleted.checkpoints} of {len(made.items)}; on record as {done.record}")
        if done.skipped:
            output.rows(("checkpoint_id", "rule", "why"), [each[:3] for each in done.skipped])
    elif output.format is OutputFormat.JSON:
        output.document({"record": done.record, "deleted": done.deleted._asdict(), "skipped": [each._asdict() for each in done.skipped]})
    else:
        output.rows(("checkpoint_id", "rule", "why", "detail"), done.skipped)
    if done.skipped:
        raise typer.Exit(FINDINGS)


def hold(
    session: Session,
    reason: ReasonOption,
    checkpoint: Annotated[str | None, typer.Option("--checkpoint", metavar="ID", help="This checkpoint.", show_default=False)] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="All of this run.", show_default=False)] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="KEY=VALUE", help="All that bears or has borne it.", show_default=False)
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="All of this tenant, or only what of the others is of it.", show_default=False)
    ] = None,
    hold_id: Annotated[
        str | None, typer.Option("--id", help="The hold's id: of an attempt that was interrupted.", show_default=False)
    ] = None,
) -> None:
    """Place a legal hold: nothing that it lies on is deleted by anybody until it is released, what comes later included."""
    from eventlog.retention import Holds

    target = _target(checkpoint, run, label, tenant)
    with session.store() as store:
        placed = Holds(store).place(target, reason=reason, hold_id=hold_id)
    session.output.record({**_described(placed.hold), "kept": placed.kept, "already_deleted": list(placed.already_deleted)})
    if placed.already_deleted:
        session.output.note(f"{len(placed.already_deleted)} were deleted before", "yellow")


def release(session: Session, hold: Annotated[str, typer.Argument(metavar="HOLD", show_default=False)], reason: ReasonOption) -> None:
    """Release a legal hold. Others on the same thing stay; what only this one kept from being deleted is due in the next plan."""
    from eventlog.retention import Holds

    with session.store() as store:
        released = Holds(store).release(hold, reason=reason)
    requeued = [each.checkpoint_id for each in released.requeued]
    session.output.record({**_described(released.hold), "requeued": requeued})
    if requeued:
        session.output.note(f"{len(requeued)} refused deletions are due again: see `eventlog retention plan`")


def holds(session: Session, released: Annotated[bool, typer.Option("--released", help="With those that are released.")] = False) -> None:
    """List the legal holds, the oldest first."""
    from eventlog.retention import Holds

    with session.store() as store:
        found = Holds(store).list(released=released)
    if found or session.output.format is not OutputFormat.TABLE:
        session.output.rows(_HOLDS, [[_described(each)[name] for name in _HOLDS] for each in found])
    else:
        session.output.note("nothing is held")


def log(session: Session) -> None:
    """List the plans that were applied: who, why, by which policy, and what came of it."""
    from eventlog.retention import applications

    with session.store() as store:
        found = sorted(applications(store), key=lambda each: each.recorded_at)
    columns = ("recorded_at", "ended", "actor", "reason", "planned", "deleted", "deleted_bytes", "skipped", "override", "policy", "plan")
    rows = [
        {
            **each._asdict(),
            **each.starts[-1]._asdict(),
            "deleted": sum(number for number, _ in each.deleted.values()),
            "deleted_bytes": sum(size for _, size in each.deleted.values()),
            "override": None if each.floor_override is None else each.floor_override["reason"],
        }
        for each in found
    ]
    session.output.rows(
        columns,
        [[row[name] for name in columns] for row in rows],
        shown={"policy": lambda text: str(text)[:12], "plan": lambda text: str(text)[:12]},
    )


def report(session: Session, policy: Path, values: dict[str, Any]) -> None:
    """What `report retention --policy` prints."""
    from eventlog.retention import Standing, retention_report

    with session.store() as store:
        lines = retention_report(store, _planned(store, policy, None))
    wanted = {"tenant": values["tenant"] or session.tenant, "kind": values["kind"]}
    rows = [each for each in lines if all(value is None or getattr(each, name) == value for name, value in wanted.items())]
    session.output.rows(Standing._fields, rows)
    if not rows:
        session.output.note("nothing is due, and nothing was deleted by a policy or erased")


def _planned(store: CheckpointStore, policy: Path | None, override_floor: str | None) -> Plan:
    from eventlog.retention import Policy, plan_retention

    if policy is None:
        raise InvalidRequest("--policy", "is needed: what may be deleted is not guessed", hint="docs/retention.md shows one.")
    return plan_retention(store, Policy.read(policy), override_floor=override_floor)


def _target(checkpoint: str | None, run: str | None, label: str | None, tenant: str | None) -> HoldTarget:
    from eventlog.retention import HoldTarget

    given = [each for each in (checkpoint, run, label) if each is not None]
    if len(given) > 1 or (not given and tenant is None):
        raise InvalidRequest("--checkpoint", "give one of --checkpoint, --run, --label and --tenant", hint="--tenant limits the others.")
    if checkpoint is not None:
        return HoldTarget.of_checkpoint(checkpoint, tenant=tenant)
    if run is not None:
        return HoldTarget.of_run(run, tenant=tenant)
    if label is not None:
        ((key, value),) = parsing.labels([label]).items()
        return HoldTarget.of_label(key, value, tenant=tenant)
    assert tenant is not None
    return HoldTarget.of_tenant(tenant)


def _described(hold: Hold) -> dict[str, Any]:
    return {**hold._asdict(), "on": str(hold.target), "state": hold.state.value} | {"target": hold.target.fields()}


def _show(session: Session, made: Plan) -> None:
    output = session.output
    if output.format is OutputFormat.JSON:
        output.document(made.fields())
        return
    if output.format is OutputFormat.CSV:
        lines = output.lines(_ITEMS)
        for each in (*made.items, *made.kept):
            lines(_row(each))
        return
    _table(session, list(made.items), "to be deleted")
    _table(session, list(made.kept), "due, and kept")
    due, kept = len(made.items), Counter(str(each.kept) for each in made.kept)
    reasons = "".join(f", {number} kept: {why}" for why, number in sorted(kept.items()))
    output.note(f"{due} of {made.looked_at} would be deleted{reasons}; at {made.position}")


def _table(session: Session, items: list[Item], title: str) -> None:
    if not items:
        return
    session.output.text(title)
    columns = ("why", "kind", "phase", "checkpoint_id", "revision", "due_since", "stored_bytes", "holds")
    places = [_ITEMS.index(name) for name in columns]
    session.output.rows(columns, [[_row(each)[place] for place in places] for each in items[:_SHOWN]])
    if len(items) > _SHOWN:
        session.output.note(f"and {len(items) - _SHOWN} more; --format json or csv lists all")


def _row(item: Item) -> tuple[Any, ...]:
    from eventlog.checkpoint import from_millis

    below = " (floor overridden)" if item.below_floor else ""
    return (
        "delete" if item.kept is None else "keep",
        item.rule + below if item.kept is None else item.kept.value,
        item.rule,
        item.tenant,
        item.kind,
        item.phase,
        item.checkpoint_id,
        item.revision,
        from_millis(item.recorded_at),
        from_millis(item.due_since),
        item.revisions,
        item.stored_bytes,
        list(item.holds),
    )
