"""On Kafka: whether the topic has let go of what was erased, and the certificate that says so."""

from __future__ import annotations

import time
from typing import NamedTuple

from eventlog.erasure import certificate as certificates
from eventlog.erasure.certificate import Certificate, Place
from eventlog.erasure.erasing import access_head, announce, certify, last_certificate
from eventlog.erasure.places import Compacted
from eventlog.erasure.register import register_of
from eventlog.privacy.principals import Operation
from eventlog.store import CheckpointStore


class Finished(NamedTuple):
    """What was found of an erasure that waited for compaction."""

    erasure: str
    records: int  # that are still there
    certificate: str | None  # the hash of the completing certificate, where nothing is left


def finish(store: CheckpointStore) -> list[Finished]:
    """Reads the topic from its beginning, and certifies each erasure of which it holds nothing any more but the DELETED events.

    Nothing on an embedded log, where an erasure is complete when it returns. Raises `Busy`, `Unavailable`, `Corrupted` or `StorageError`.
    """
    with store.entrusted(Operation.ERASE_FINISH) as whole:
        found = _finished(whole)
    for each in found:
        if each.certificate is not None:
            announce(store, Operation.ERASE_FINISH, each.certificate)
    return found


def _finished(store: CheckpointStore) -> list[Finished]:
    log = store.log
    if not isinstance(log, Compacted):
        return []
    register = register_of(log.directory, log.identity.store_id)
    with register.locked():
        entries = register.entries()
        done = {entry.erasure for entry in entries if entry.kind == "gone"}
        seals = [entry.certificate for entry in entries if entry.kind == "certified" and entry.erasure not in done and entry.certificate]
        waiting = certificates.read(register.certificates, seals)
        if not waiting:
            return []
        left, position = log.records_left(frozenset(end.checkpoint_id for each in waiting for end in each.checkpoints))
        found = []
        for each in waiting:
            records = sum(left.get(end.checkpoint_id, 0) for end in each.checkpoints)
            made: Certificate | None = None
            if not records:
                now = time.time_ns() // 1_000_000
                made = each._replace(
                    number=sum(entry.certificate is not None for entry in register.entries()),
                    completed_at=now,
                    bytes_gone_at=now,
                    places=(*each.places, Place("topic", f"read up to {position}", len(each.checkpoints), 0, "DELETED events only")),
                    access_head=access_head(store),
                    previous=last_certificate(register),
                    completes=each.hash,
                )
                certify(store, register, made, kind="gone")
            found.append(Finished(each.erasure, records, None if made is None else made.hash))
        return found
