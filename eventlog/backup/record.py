"""What a restored store says of having been restored: a stream of kind `eventlog.restore`, a revision each time.

It is one of the store's own, so that both logs have it in the same way, whoever audits the log finds it there, and nobody deletes it. The
labels, which stay in clear text, name the store that it was restored from: by them an anchor of that store is known to be this one's too.
"""

from __future__ import annotations

from typing import Any

from eventlog.backup.manifest import Manifest
from eventlog.codec import decode_header
from eventlog.erasure.applying import Applied
from eventlog.errors import ConfigurationError, NotFound
from eventlog.holds.reserved import RESTORE_KIND, ReservedStreams, first
from eventlog.ids import CheckpointId
from eventlog.revision import Revision
from eventlog.store import CheckpointStore

ORIGIN = "restored-from"  # a label
RESTORES = CheckpointId("5e57042e-0000-8000-8000-000000000001")  # the one stream of a store
_PAGE = 1_000


def record_restore(store: CheckpointStore, manifest: Manifest, *, erasures: Applied | None, without_register: str | None) -> bool:
    """Commits the record; False where it cannot be sealed, because the store is encrypted and opened without keys.

    Arguments:
        erasures: what applying the register did; None: there was none.
        without_register: the reason why not.

    Raises `ConfigurationError` when there is a reason to be recorded, and it cannot be.
    """
    if store.keys is not None and not store.keys.can_open:
        if without_register is not None:
            raise ConfigurationError(
                "that the register was not applied has to be recorded, and without keys nothing can be written to an encrypted store",
                hint="Give the store's keys, or the erasure register.",
            )
        return False
    payload: dict[str, Any] = {
        "backup_id": manifest.backup_id,
        "store_id": manifest.anchor.store_id,
        "position": str(manifest.anchor.position),
        "events": manifest.events,
        "taken_at": manifest.taken_at,
        "erasures_applied": None if erasures is None else erasures.present,
        "without_erasure_register": without_register,
    }
    labels = {ORIGIN: manifest.anchor.store_id}
    streams = ReservedStreams.of(store)
    last = streams.load(RESTORES, RESTORE_KIND)
    if last is None:
        streams.commit(first(RESTORES, RESTORE_KIND, payload, labels=labels), None)
    else:
        streams.commit(last.next(payload, labels=labels), last.revision)
    return True


def restores_of(store: CheckpointStore) -> list[Revision]:
    """The restores that a store has been through, oldest first. Payloads are read."""
    try:
        return [each for each in store.history(RESTORES) if isinstance(each, Revision)]
    except NotFound:
        return []


def origins_of(store: CheckpointStore) -> frozenset[str]:
    """The ids of the stores that a store was restored from, directly or before. Needs no keys."""
    found: set[str] = set()
    if store.log.place(RESTORES, at_least=None) is None:
        return frozenset()
    after = -1
    while records := store.log.history(RESTORES, after=after, position=None, limit=_PAGE):
        for record in records:
            if record.value is None:
                continue
            header, _ = decode_header(record.value)
            after = header.revision
            found |= {header.labels[ORIGIN]} if ORIGIN in header.labels else set()
        if len(records) < _PAGE:
            break
    return frozenset(found)
