"""Erasing: from a selection to a certificate, or to an error that says what is left to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eventlog import codec
from eventlog.checkpoint import MAX_ACTOR, MAX_REASON, check_text
from eventlog.embedded import EmbeddedLog
from eventlog.erasure import certificate as certificates
from eventlog.erasure.certificate import FORMAT_VERSION, Certificate, EndOf, Place
from eventlog.erasure.ending import end_all, events_of, latest_header
from eventlog.erasure.noting import note_applied
from eventlog.erasure.places import Compacted, visits
from eventlog.erasure.register import Erased, Register, register_of
from eventlog.erasure.selection import Selection
from eventlog.erasure.steps import Step, passed
from eventlog.errors import CheckpointError, ErasureIncomplete, InvalidRequest
from eventlog.event import EventType
from eventlog.holds.refusals import Wanted
from eventlog.ids import CheckpointId, EventId
from eventlog.merkle import Tree, leaf_hash
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.store import CheckpointStore

NOT_REACHED = (
    "backups: applying the register when one is restored keeps them from bringing anything back",
    "copies of files made past the store: exports, snapshots in other places, disk images",
    "what a disk keeps of deleted or overwritten files below the file system",
)
NOT_REACHED_ON_KAFKA = (
    "projections of other processes, in other state directories: copy the register into each and run `eventlog erase apply`",
)


class Planned(NamedTuple):
    """What an erasure would take."""

    checkpoints: tuple[CheckpointId, ...]
    revisions: int  # that still have a payload
    payload_bytes: int  # of their JSON texts
    places: tuple[str, ...]


def plan(store: CheckpointStore, selection: Selection, *, archives: Sequence[Path] = ()) -> Planned:
    """What `erase` would do; nothing is changed. Raises `NotFound`."""
    with store.entrusted(Operation.ERASE_PLAN) as whole:
        return _planned(whole, selection, archives)


def _planned(store: CheckpointStore, selection: Selection, archives: Sequence[Path]) -> Planned:
    ids = _resolved(store, selection)
    events = [(record.value or b"", header) for each in ids for record, header, _ in events_of(store.log, each)]
    whole = [
        header.payload_size for value, header in events if header.type != EventType.DELETED and codec.header_end(value) + 2 < len(value)
    ]
    return Planned(tuple(ids), len(whole), sum(whole), tuple(name for name, _ in visits(store, ids, archives)))


def erase(
    store: CheckpointStore,
    selection: Selection,
    *,
    actor: str,
    reason: str,
    archives: Sequence[Path] = (),
) -> Certificate:
    """Erases every payload of the checkpoints that a selection means now. There is no way back.

    Headers stay: positions, chains and every proof verify as before, and the id answers with its DELETED event for ever. On Kafka the
    superseded records leave the topic when it is compacted; see `Certificate.bytes_due_at`, and `finish`.

    Arguments:
        actor: who erases; 1 to 200 characters, for the trail.
        reason: why; 1 to 1000 characters. It is kept for ever: no personal data.
        archives: directories besides the one that the store remembers.

    Returns the certificate, which is also kept beside the register. Killed or failed on the way, start the same erasure again: it goes on
    where it ended. Raises `NotFound` (nothing is meant), `HeldByLegalHold` (nothing was erased), `Busy` (another erasure is under way),
    `ErasureIncomplete` naming the places that were not visited, and before anything is destroyed what `CheckpointStore.delete` raises, or
    `MissingRight` for who may not read the access log. `AuditUnavailable` at the very end: it is done, the certificate is in the register.
    """
    check_text("actor", actor, MAX_ACTOR)
    check_text("reason", reason, MAX_REASON)
    with store.entrusted(Operation.ERASE) as whole:
        made = _erased(whole, selection, actor, reason, archives)
    announce(store, Operation.ERASE, made.hash)
    return made


def _erased(store: CheckpointStore, selection: Selection, actor: str, reason: str, archives: Sequence[Path]) -> Certificate:
    register = register_of(store.log.directory, store.log.identity.store_id)
    with register.locked():
        begun_at = _now()
        position = str(store.log.end())
        ids = _resolved(store, selection)
        for each in ids:
            store._deleter.require_not_held(latest_header(store, each), wanted=Wanted.ERASE, reason=reason)
        access_head(store)  # whoever may not read it learns that before anything is destroyed
        passed(Step.CHECKED)
        ends = end_all(store, ids, actor=actor, unheld=reason)
        passed(Step.DELETED)
        erasure = str(EventId.new())
        register.append("erased", erasure, checkpoints={each.checkpoint_id: Erased(each.revision, each.hash) for each in ends})
        passed(Step.REGISTERED)
        places = visit_all(store, ids, archives)
        revisions, root = _proved(store, ids)
        made = Certificate(
            format_version=FORMAT_VERSION,
            number=sum(entry.certificate is not None for entry in register.entries()),
            erasure=erasure,
            store_id=store.log.identity.store_id,
            log=store.log.kind,
            encrypted=store.keys is not None,
            actor=actor,
            reason=reason,
            selection=selection.document(),
            position=position,
            begun_at=begun_at,
            completed_at=_now(),
            checkpoints=tuple(ends),
            revisions=revisions,
            events_root=root,
            keys_destroyed_at=None if store.keys is None else _now(),
            bytes_gone_at=_now() if isinstance(store.log, EmbeddedLog) else None,
            bytes_due_at=_bytes_due_at(store, ends),
            places=tuple(places),
            not_reached=NOT_REACHED if isinstance(store.log, EmbeddedLog) else NOT_REACHED + NOT_REACHED_ON_KAFKA,
            access_head=access_head(store),
            previous=last_certificate(register),
        )
        certify(store, register, made, kind="certified")
        return made


def visit_all(store: CheckpointStore, ids: Sequence[str], archives: Sequence[Path]) -> list[Place]:
    """Visits every place, the others too where one cannot be. Raises `ErasureIncomplete`."""
    found: list[Place] = []
    missed: list[tuple[str, str]] = []
    cause: CheckpointError | None = None
    for name, visit in visits(store, ids, archives):
        try:
            found.append(visit())
        except CheckpointError as error:
            missed.append((name, str(error)))
            cause = cause or error
    if missed:
        raise ErasureIncomplete(missed) from cause
    return found


def access_head(store: CheckpointStore) -> str | None:
    """What the access log holds when a certificate is made; None where accesses are not recorded."""
    return None if store.recorder is None else store.recorder.head()


def announce(store: CheckpointStore, operation: Operation, certificate: str) -> None:
    """Puts a certificate on record by its hash: the access log and the certificates vouch for each other."""
    store.announce(Access(operation, target=f"certificate {certificate}"))


def certify(store: CheckpointStore, register: Register, made: Certificate, *, kind: str) -> None:
    """Keeps a certificate, then enters it into the register: one that the register does not name is none."""
    certificates.keep(made, register.certificates)
    passed(Step.CERTIFIED)
    note_applied(store, sum(entry.kind == "certified" for entry in register.entries()) + (kind == "certified"))
    register.append(kind, made.erasure, certificate=made.hash)


def last_certificate(register: Register) -> str | None:
    """The hash of the newest certificate."""
    return next((entry.certificate for entry in reversed(register.entries()) if entry.certificate is not None), None)


def _resolved(store: CheckpointStore, selection: Selection) -> list[CheckpointId]:
    ids = selection.resolve(store)
    if not ids:
        raise InvalidRequest("selection", "no checkpoint matches", hint="Nothing was done. Check the label, the run or the tenant.")
    return ids


def _proved(store: CheckpointStore, ids: Sequence[str]) -> tuple[int, str]:
    """How many events are without a body, and the root over their hashes. Raises `ErasureIncomplete` for one that has any."""
    tree = Tree()
    for checkpoint_id in ids:
        for record, header, digest in events_of(store.log, checkpoint_id):
            if header.type == EventType.DELETED:
                continue
            if record.value != codec.without_body(record.value or b""):
                where = f"{record.partition}:{record.offset}"
                raise ErasureIncomplete([("log", f"revision {header.revision} of {checkpoint_id} at {where} still has a body")])
            tree.append(leaf_hash(digest))
    return tree.size, tree.root.hex()


def _bytes_due_at(store: CheckpointStore, ends: Sequence[EndOf]) -> int | None:
    """By when the topic's settings have it compacted what came before the DELETED events; None where nothing has to be waited for."""
    if not isinstance(store.log, Compacted):
        return None
    return max(each.recorded_at for each in ends) + store.log.compacted_within


def _now() -> int:
    return time.time_ns() // 1_000_000
