"""The store's own streams: holds, registers, refusals, applied plans and restores, in a tenant that is nobody's.

They lie in a tenant of their own because a hold may concern several tenants or must not be seen by the one it concerns, and because what
is done to a tenant (its erasure, the loss of its key) must not take the holds with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import CheckpointError, Corrupted, KeysUnavailable, SchemaMismatch
from eventlog.event import CheckpointEvent, EventType
from eventlog.ids import CheckpointId, RunId
from eventlog.log import Log
from eventlog.payload import COMPRESS_FROM
from eventlog.position import Position
from eventlog.proposing import PayloadKeys, propose
from eventlog.revision import Revision, read_revision

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore

TENANT = "eventlog.retention"
HOLD_KIND = "eventlog.hold"
REGISTER_KIND = "eventlog.hold_register"
REFUSAL_KIND = "eventlog.refusal"
APPLIED_KIND = "eventlog.retention"
RESTORE_KIND = "eventlog.restore"
VERSION = 1  # of each of these kinds
PROTECTED = frozenset({HOLD_KIND, REGISTER_KIND, APPLIED_KIND, RESTORE_KIND})  # never deleted: the record of who held, deleted, restored


class ReservedStreams:
    """Reads and writes them past the limits of whoever is asking: a tenant's writer must be refused by a hold that it cannot see.

    Arguments:
        actor: who is on the events.
        timeout: seconds that a write may take.
    """

    def __init__(self, *, log: Log, keys: PayloadKeys | None, actor: str | None, timeout: float) -> None:
        self.log = log
        self.actor = actor
        self._keys = keys
        self._timeout = timeout
        self._json_text = CheckpointEvent.json_text if keys is None else keys.json_text
        self._compress_from = log.compress_from if keys is None else COMPRESS_FROM

    @classmethod
    def of(cls, store: CheckpointStore) -> ReservedStreams:
        """Those of a store."""
        return cls(log=store.log, keys=store.keys, actor=store.actor, timeout=store.timeout)

    def load(self, checkpoint_id: CheckpointId, kind: str, *, at_least: Position | None = None) -> Checkpoint | None:
        """See `revision`."""
        found = self.revision(checkpoint_id, kind, at_least=at_least)
        return None if found is None else found.checkpoint

    def revision(self, checkpoint_id: CheckpointId, kind: str, *, at_least: Position | None = None) -> Revision | None:
        """The latest revision; None: there is none. Raises `Corrupted` when it was deleted past the store, `SchemaMismatch`,
        `KeysUnavailable`: without keys nobody can tell what is held.
        """
        if self.log.place(checkpoint_id, at_least=at_least) is None:
            return None
        record = self.log.latest(checkpoint_id)
        assert record is not None
        try:
            found = read_revision(record, None, self._json_text)
        except KeysUnavailable as error:
            raise KeysUnavailable(error.source, f"{error.problem}; legal holds are sealed as all payloads are") from error
        if found.type is EventType.DELETED:
            raise Corrupted(f"checkpoint {checkpoint_id}", f"it is a {found.checkpoint.kind}, which nobody may delete, and was deleted")
        if (found.checkpoint.tenant, found.checkpoint.kind, found.checkpoint.schema_version) != (TENANT, kind, VERSION):
            what = f"{found.checkpoint.kind} {found.checkpoint.schema_version} of tenant {found.checkpoint.tenant}"
            raise SchemaMismatch(f"checkpoint {checkpoint_id} is {what}, where a {kind} {VERSION} belongs")
        return found

    def commit(self, checkpoint: Checkpoint, expected: int | None) -> Receipt:
        """By compare-and-swap; raises as `CheckpointStore.compare_and_swap` does."""
        proposal = propose(
            checkpoint,
            expected,
            actor=self.actor,
            max_event_bytes=self.log.max_event_bytes,
            compress_from=self._compress_from,
            keys=self._keys,
        )
        outcome = self.log.append((proposal,), timeout=self._timeout)[0]
        if isinstance(outcome, CheckpointError):
            raise outcome
        return outcome


def first(checkpoint_id: CheckpointId, kind: str, payload: dict[str, Any], *, labels: dict[str, str] | None = None) -> Checkpoint:
    """Revision 0 of such a stream."""
    return Checkpoint.initial(checkpoint_id, RunId.new(), kind, VERSION, payload, tenant=TENANT, labels=labels)
