"""`verify`, `rebuild`, `compact`, `doctor`: the care of a store."""

from __future__ import annotations

from typing import Annotated

import typer

from eventlog.cli.archives import AnchorOption, ArchiveOption, PublicKeyOption, archive_of, required_archive, trusted_key
from eventlog.cli.command import command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session

PANEL = "Care"


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    command(
        app,
        "verify",
        examples=(
            "verify --store ./orders",
            "verify --store ./orders --without-keys",
            "verify --store ./orders --anchor anchor.json --key public.pem",
        ),
        panel=PANEL,
    )(verify)
    command(app, "rebuild", examples=("rebuild --store ./orders", "rebuild --archive ./archive"), panel=PANEL)(rebuild)
    command(app, "compact", examples=("compact --store ./orders --archive ./archive --hold-days 30",), panel=PANEL)(compact)
    command(app, "doctor", examples=("doctor --store ./orders", "doctor --store kafka://localhost:9092/orders"), panel=PANEL)(doctor)


def verify(
    session: Session,
    archive: ArchiveOption = None,
    anchor: AnchorOption = None,
    key: PublicKeyOption = None,
    without_keys: Annotated[bool, typer.Option("--without-keys", help="Leave the payloads of an encrypted store sealed.")] = False,
) -> None:
    """Check every event of the log, the projection against it, and what the archive and an anchor say of it.

    Each event must decode, stand under its key, match its digest, continue its checkpoint's hash chain and keep the rules; its payload
    must be JSON of the stated size. The archive, when there is one, must be as it was sealed and hold the same events. An anchor shows
    what nothing else can: that nobody has cut the log, replaced it by an older one, or rewritten it so that all of it fits again. Missing
    history is reported as a gap and is no fault. Ends with exit code 1 when anything is wrong.
    """
    from eventlog.archive.anchors import read_anchor
    from eventlog.privacy.principals import Operation
    from eventlog.verification import verify as check

    trusted = trusted_key(key)
    anchored = None if anchor is None else read_anchor(anchor, trusted=trusted)
    with session.store(without_keys=without_keys) as opened, opened.entrusted(Operation.VERIFY) as store:
        kept = archive_of(store, archive, trusted=trusted, required=False)
        end = sum(offset for _, offset in store.position().offsets)
        with session.progress("verifying", total=end) as progress:
            found = check(store, archive=kept, anchor=anchored, progress=lambda count: progress(count, ""))
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
                "moved": found.moved,
                "archived": found.archived,
                "anchored": found.anchored,
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
            output.note(f"first {fault.kind.value} of {count}: {fault.position or 'as a whole'}: {fault.problem}", "red")
        read = f"{found.events} events of {found.checkpoints} checkpoints, {found.payload_bytes} bytes of payload, up to {found.position}"
        read += f", {found.accesses} accesses" if found.accesses else ""
        counted = ((found.gap_count, "gaps"), (found.erased, "erased"), (found.sealed, "sealed"), (found.moved, "in the archive only"))
        missing = "".join(f"; {count} {what}" for count, what in counted if count)
        missing += f"; {found.archived} held against the archive" if kept is not None else ""
        missing += f"; {found.anchored} of them anchored" if anchored is not None else ""
        output.text(f"{'clean' if found.is_clean else f'{found.fault_counts.total()} FAULTS'}: {read}{missing}")
    if not found.is_clean:
        raise typer.Exit(FINDINGS)


def rebuild(session: Session, archive: ArchiveOption = None) -> None:
    """Make the projection anew from the log, or from its archive and the log.

    It is built beside the old one and put in its place when it is complete; loads and reports go on meanwhile. On Kafka the archive
    has what compaction has taken from the topic; every segment is verified while it is read.
    """
    from eventlog.archive.directory import Archive

    done = 0
    with session.store() as store:
        end = sum(offset for _, offset in store.position().offsets)
        with session.progress("rebuilding", total=end) as progress:

            def advance(count: int) -> None:
                nonlocal done
                done += count
                progress(done, "")

            store.catalog.rebuild(advance, archive=None if archive is None else required_archive(Archive(directory=archive)))
    output = session.output
    if output.format is OutputFormat.TABLE:
        output.text(f"Rebuilt the projection from {done} events.")
    else:
        output.record({"events": done})


def compact(
    session: Session,
    archive: ArchiveOption = None,
    hold_days: Annotated[float, typer.Option(help="What is younger stays.", min=0, max=36_500)] = 7,
) -> None:
    """Take the bodies of superseded revisions out of an embedded log, and give their space back to the disk.

    Only what the archive has, byte for byte, is taken; the past is read from there from then on. Headers stay, and with them positions,
    chains, retries and reports. May be stopped and started again.
    """
    from eventlog.archive.compacting import compact as take
    from eventlog.privacy.principals import Operation

    with session.store() as opened, opened.entrusted(Operation.COMPACT) as store, session.progress("compacting") as progress:
        kept = archive_of(store, archive, trusted=None, required=True)
        assert kept is not None
        done = take(store, kept, hold_ms=int(hold_days * 86_400_000), progress=lambda count: progress(count, ""))
    if session.output.format is OutputFormat.TABLE:
        session.output.text(f"Moved the bodies of {done.moved} events: {done.bytes_before} bytes before, {done.bytes_after} after.")
    else:
        session.output.record({"moved": done.moved, "bytes_before": done.bytes_before, "bytes_after": done.bytes_after})


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
