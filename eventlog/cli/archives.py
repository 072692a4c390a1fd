"""`archive run|list|verify` and `anchor`: history kept elsewhere, and what shows that nobody has changed it."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventlog.cli.command import command
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from eventlog.archive.directory import Archive
    from eventlog.archive.running import ArchiveRun
    from eventlog.store import CheckpointStore

ArchiveOption = Annotated[
    Path | None, typer.Option("--archive", metavar="DIR", help="The archive; else the one that the store remembers.", show_default=False)
]
AnchorOption = Annotated[
    Path | None, typer.Option("--anchor", metavar="FILE", help="What `eventlog anchor` has printed at some time.", show_default=False)
]
PublicKeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="PUBLIC.pem", help="The Ed25519 key that must have signed it; else none need have.", show_default=False),
]
SignOption = Annotated[
    Path | None, typer.Option("--sign", metavar="KEY.pem", help="Sign with this Ed25519 private key.", show_default=False)
]
_WAIT_MS = 3_600_000  # with --every: how long an event waits for a segment to fill, but never longer than a quarter of a topic's hold


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    group = typer.Typer(no_args_is_help=True, help="Keep a log's history in sealed segments.", rich_markup_mode="rich")
    command(group, "run", examples=("archive run --to ./archive", "archive run --every 60"))(run)
    command(group, "list", examples=("archive list --archive ./archive --format json",))(list_segments)
    command(group, "verify", examples=("archive verify --archive ./archive --key public.pem",))(verify)
    app.add_typer(group, name="archive", rich_help_panel="Care")
    command(app, "anchor", examples=("anchor --store ./orders --sign key.pem > anchor.json",), panel="Care")(anchor)


def run(
    session: Session,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Where the archive is; else where it was.", show_default=False)
    ] = None,
    every: Annotated[
        float | None, typer.Option("--every", metavar="SECONDS", help="Go on until stopped.", min=0.1, max=86_400, show_default=False)
    ] = None,
    sign: SignOption = None,
) -> None:
    """Archive what was committed since the last time.

    The store remembers where. May be stopped and started again at any time. With --every an event waits for its segment to fill, for an
    hour at most (on Kafka for a quarter of the topic's hold, if that is less).
    """
    from eventlog.archive.running import Limits, keep_archived, run_archive
    from eventlog.archive.sealing import signing_key
    from eventlog.privacy.principals import Operation

    key = None if sign is None else signing_key(sign)
    with session.store() as opened, opened.entrusted(Operation.ARCHIVE_RUN) as store:
        archive = archive_of(store, to, trusted=None, required=True, new=True)
        assert archive is not None
        if every is None:
            with session.progress("archiving") as progress:
                _say(session, run_archive(store, archive, key=key, progress=lambda count: progress(count, "")))
            return
        limits = Limits(wait_ms=min(_WAIT_MS, _hold_ms(session) // 4))
        keep_archived(
            store, archive, every=every, stop=threading.Event(), key=key, limits=limits, done=lambda each: _say(session, each, quiet=True)
        )


def list_segments(session: Session, archive: ArchiveOption = None) -> None:
    """List the segments of an archive, as their manifests describe them."""
    from eventlog.checkpoint import from_millis

    columns = ("partition", "first", "last", "events", "bytes", "from", "to", "root", "signed_by", "file")
    rows: list[tuple[Any, ...]] = []
    found = _named(session, archive, "archive_list")
    for partition in found.partitions():
        for segment in found.segments(partition):
            this, sealed = segment.manifest, segment.sealed
            signer = None if sealed.signed_by is None else sealed.signed_by.hex()
            times = (from_millis(this.first_recorded_at), from_millis(this.last_recorded_at))
            rows.append(
                (partition, this.first_offset, this.last_offset, this.rows, sealed.file_bytes, *times, this.root, signer, str(segment.path))
            )
    session.output.rows(columns, rows, shown={"root": lambda root: root[:12], "signed_by": lambda key: "" if key is None else key[:12]})


def verify(session: Session, archive: ArchiveOption = None, key: PublicKeyOption = None) -> None:
    """Check every segment of an archive: its file, each event in it, and that it continues the one before. Needs no store.

    `eventlog verify` holds the archive against the log as well. Something missing, altered or out of order is an error that names it.
    """
    from eventlog.archive.checking import check_archive

    found = check_archive(_named(session, archive, "archive_verify", trusted=trusted_key(key)))
    if session.output.format is OutputFormat.TABLE:
        gaps = f"; {found.gaps} gaps from before it was begun" if found.gaps else ""
        what = f"{found.events} events in {found.segments} segments, {found.file_bytes} bytes, {found.signed} signed"
        session.output.text(f"clean: {what}{gaps}")
    else:
        fields = {"clean": True, "events": found.events, "segments": found.segments, "bytes": found.file_bytes, "signed": found.signed}
        session.output.record({**fields, "gaps": found.gaps, "signers": sorted(signer.hex() for signer in found.signers)})


def anchor(session: Session, sign: SignOption = None) -> None:
    """Print the heads of the log's Merkle trees, as JSON whatever the format, to be kept where nobody can change both.

    `eventlog verify --anchor FILE` shows later whether the log is still a continuation of it.
    """
    from eventlog.archive.anchors import document, take_anchor
    from eventlog.archive.sealing import signing_key
    from eventlog.privacy.principals import Operation

    key = None if sign is None else signing_key(sign)
    with session.store() as opened, opened.entrusted(Operation.ANCHOR) as store:
        sys.stdout.write(f"{json.dumps(document(take_anchor(store.log), key=key), indent=1)}\n")


def archive_of(store: CheckpointStore, given: Path | None, *, trusted: bytes | None, required: bool, new: bool = False) -> Archive | None:
    """The archive of a whole store: the one that is named, or the one that it remembers. None: there is none, and none is required."""
    from eventlog.archive.directory import Archive
    from eventlog.archive.remembered import remembered

    directory = given or remembered(store.log.directory)
    if directory is None:
        if required:
            option = "--to" if new else "--archive"
            raise InvalidRequest(option, "no archive is named, and the store remembers none", hint=f"Name its directory with {option} DIR.")
        return None
    archive = Archive(directory=directory, trusted=trusted)
    return archive if new else required_archive(archive)


def required_archive(archive: Archive) -> Archive:
    """An archive that has to be there."""
    archive.require()
    return archive


def trusted_key(path: Path | None) -> bytes | None:
    """The public key in a file, if one is named."""
    from eventlog.archive.sealing import public_key

    return None if path is None else public_key(path)


def _named(session: Session, given: Path | None, operation: str, *, trusted: bytes | None = None) -> Archive:
    """The archive that is named, without opening a store where that is not needed."""
    from eventlog.archive.directory import Archive
    from eventlog.privacy.principals import Operation

    if given is not None:
        session.require(operation)
        return required_archive(Archive(directory=given, trusted=trusted))
    with session.store() as opened, opened.entrusted(Operation(operation)) as store:
        archive = archive_of(store, None, trusted=trusted, required=True)
    assert archive is not None
    return archive


def _hold_ms(session: Session) -> int:
    from eventlog.address import KafkaAddress, parse_address

    where = parse_address(session.address)
    if not isinstance(where, KafkaAddress):
        return 4 * _WAIT_MS
    from eventlog.kafka.topic import TopicSpec

    return TopicSpec.of(where).hold_ms


def _say(session: Session, done: ArchiveRun, *, quiet: bool = False) -> None:
    """`quiet`: not when there was nothing to do."""
    if quiet and not done.segments:
        return
    if session.output.format is OutputFormat.TABLE:
        session.output.text(f"Archived {done.events} events in {len(done.segments)} segments, up to {done.end}.")
    else:
        session.output.record({"events": done.events, "segments": len(done.segments), "end": str(done.end)})
    sys.stdout.flush()  # with --every it is not the last line
