"""`verify`, `rebuild`, `doctor`: the care of a store."""

from __future__ import annotations

from typing import Annotated

import typer

from eventlog.cli.command import command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session

PANEL = "Care"


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    command(app, "verify", examples=("verify --store ./orders", "verify --store ./orders --without-keys"), panel=PANEL)(verify)
    command(app, "rebuild", examples=("rebuild --store ./orders",), panel=PANEL)(rebuild)
    command(app, "doctor", examples=("doctor --store ./orders", "doctor --store kafka://localhost:9092/orders"), panel=PANEL)(doctor)


def verify(
    session: Session,
    without_keys: Annotated[bool, typer.Option("--without-keys", help="Leave the payloads of an encrypted store sealed.")] = False,
) -> None:
    """Check every event of the log, and the projection against it.

    Each event must decode, stand under its key, match its digest, continue its checkpoint's hash chain and keep the rules; its payload
    must be JSON of the stated size. Missing history is reported as a gap and is no fault. Ends with exit code 1 when anything is wrong.
    """
    from eventlog.verification import verify as check

    with session.store(without_keys=without_keys) as store:
        end = sum(offset for _, offset in store.position().offsets)
        with session.progress("verifying", total=end) as progress:
            found = check(store, progress=lambda count: progress(count, ""))
    output = session.output
    if output.format is OutputFormat.JSON:
        output.document(
            {
                "clean": found.is_clean,
                "events": found.events,
                "checkpoints": found.checkpoints,
                "payload_bytes": found.payload_bytes,
                "erased": found.erased,
                "sealed": found.sealed,
                "accesses": found.accesses,
                "position": str(found.position),
                "fault_counts": {kind.value: count for kind, count in found.fault_counts.items()},
                "faults": [fault._asdict() for fault in found.faults],
                "gap_count": found.gap_count,
                "gaps": [gap._asdict() for gap in found.gaps],
            }
        )
    else:
        if found.faults or output.format is OutputFormat.CSV:
            output.rows(("position", "checkpoint_id", "kind", "problem"), found.faults)
        for gap in found.gaps:
            output.note(f"gap: {gap.checkpoint_id} revisions {gap.first_revision} to {gap.last_revision} are no longer in the log")
        for fault in found.first_of_each_kind():
            count = found.fault_counts[fault.kind]
            output.note(f"first {fault.kind.value} of {count}: {fault.position or 'the projection'}: {fault.problem}", "red")
        read = f"{found.events} events of {found.checkpoints} checkpoints, {found.payload_bytes} bytes of payload, up to {found.position}"
        read += f", {found.accesses} accesses" if found.accesses else ""
        missing = "".join(
            f"; {count} {what}" for count, what in ((found.gap_count, "gaps"), (found.erased, "erased"), (found.sealed, "sealed")) if count
        )
        output.text(f"{'clean' if found.is_clean else f'{found.fault_counts.total()} FAULTS'}: {read}{missing}")
    if not found.is_clean:
        raise typer.Exit(FINDINGS)


def rebuild(session: Session) -> None:
    """Make the projection anew from the log.

    It is built beside the old one and put in its place when it is complete; loads and reports go on meanwhile.
    """
    done = 0
    with session.store() as store:
        end = sum(offset for _, offset in store.position().offsets)
        with session.progress("rebuilding", total=end) as progress:

            def advance(count: int) -> None:
                nonlocal done
                done += count
                progress(done, "")

            store.catalog.rebuild(advance)
    output = session.output
    if output.format is OutputFormat.TABLE:
        output.text(f"Rebuilt the projection from {done} events.")
    else:
        output.record({"events": done})


def doctor(session: Session) -> None:
    """Look the store over and say what to do about what is found.

    Ends with exit code 1 when a check fails.
    """
    from eventlog.doctor import State, examine

    checks = list(examine(session.address, timeout=session.timeout, principal=session.principal, keys=session.keys))
    session.output.rows(
        ("check", "state", "detail", "advice"), [(each.check, each.state.value, each.detail, each.advice) for each in checks]
    )
    if any(each.state is State.FAIL for each in checks):
        raise typer.Exit(FINDINGS)
