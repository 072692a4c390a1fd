"""Legal holds: placed and released by a person, each with an id and a history of its own.

A hold is a checkpoint (kind `eventlog.hold`: who, when, why), and an entry in the register of each partition that it concerns
(`register.py`), which is what deletions look at. The two are written one after the other; the phase says how far that has come:

    placing -> placed -> releasing -> released

It holds from its first entry on, and everything that it concerns once it is `placed`. Whoever dies in between leaves it `placing` or
`releasing`: placing it with the same id, or releasing it again, goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from eventlog.checkpoint import MAX_REASON, Checkpoint, check_text, from_millis, to_millis
from eventlog.errors import Conflict, InvalidRequest, NotFound, SchemaMismatch
from eventlog.holds.refusals import Refusal
from eventlog.holds.remembered import refusals
from eventlog.holds.reserved import HOLD_KIND, TENANT, ReservedStreams, first
from eventlog.holds.targets import HeldBy, HoldTarget, Placed
from eventlog.ids import CheckpointId
from eventlog.position import Position
from eventlog.privacy.principals import Operation
from eventlog.projection_errors import translated
from eventlog.revision import Revision
from projections import retention

if TYPE_CHECKING:
    from uuid import UUID

    from eventlog.store import CheckpointStore

_PAGE = 1_000


class HoldState(StrEnum):
    """How far a hold has come."""

    PLACING = "placing"
    PLACED = "placed"
    RELEASING = "releasing"
    RELEASED = "released"


class Hold(NamedTuple):
    """A hold as it stands. The times are the log's."""

    id: CheckpointId
    target: HoldTarget
    state: HoldState
    reason: str
    placed_by: str | None
    placed_at: datetime | None
    release_reason: str | None
    released_by: str | None
    released_at: datetime | None


class Placement(NamedTuple):
    """A hold that is in force, and what it lies on as of then: later ones are held too, the deleted ones were gone before."""

    hold: Hold
    kept: int
    already_deleted: tuple[CheckpointId, ...]


class Release(NamedTuple):
    """A released hold, and the refused deletions that nothing holds any more: the next plan names them as due."""

    hold: Hold
    requeued: tuple[Refusal, ...]


class Holds:
    """The legal holds of a store. One that is opened for a tenant sees and places those of this tenant alone."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    def place(self, target: HoldTarget, *, reason: str, hold_id: CheckpointId | UUID | str | None = None) -> Placement:
        """Places a hold; the store's actor is who did. When it returns, whatever it lies on is deleted by nobody until its release.

        Arguments:
            reason: why, 1 to 1,000 characters on one line.
            hold_id: of an earlier attempt that did not return, or of one's own.

        Raises `NotFound` (of a checkpoint that never was), `InvalidRequest` (another hold has this id, or it is released), and as
        `compare_and_swap` does.
        """
        with self._store.entrusted(Operation.HOLD_PLACE, limited=True) as lent:
            return _Holds(lent).place(target, reason=reason, hold_id=hold_id)

    def release(self, hold_id: CheckpointId | UUID | str, *, reason: str) -> Release:
        """Ends a hold. Others on the same thing are as they were. Released once more: nothing changes.

        Raises `NotFound`, `InvalidRequest`, and as `compare_and_swap` does.
        """
        with self._store.entrusted(Operation.HOLD_RELEASE, limited=True) as lent:
            return _Holds(lent).release(hold_id, reason=reason)

    def get(self, hold_id: CheckpointId | UUID | str) -> Hold:
        """One hold. Raises `NotFound`."""
        with self._store.entrusted(Operation.HOLD_LIST, limited=True) as lent:
            return _Holds(lent).get(hold_id)

    def list(self, *, released: bool = False) -> list[Hold]:
        """All holds, the oldest first, those that are released only on request."""
        with self._store.entrusted(Operation.HOLD_LIST, limited=True) as lent:
            return _Holds(lent).list(released=released)


class _Holds:
    """The same, of a store that was lent for it."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._streams = ReservedStreams.of(store)
        self._register = store._deleter.register

    def place(self, target: HoldTarget, *, reason: str, hold_id: CheckpointId | UUID | str | None = None) -> Placement:
        """See `Holds`."""
        check_text("reason", reason, MAX_REASON)
        target = target.within(self._store.tenant)
        if target.by is HeldBy.CHECKPOINT:
            found = self._store._deleter.header(CheckpointId(target.value))
            if target.tenant not in (None, found.tenant):
                raise NotFound(target.value)
        identity = CheckpointId.new() if hold_id is None else CheckpointId(hold_id)
        hold = self._begun(identity, target, reason)
        self._register.add(Placed(identity, target))
        if hold.payload["phase"]["state"] == HoldState.PLACING:
            try:
                hold = self._advance(hold, HoldState.PLACED)
            except Conflict:
                hold = self._load(identity)
                if _state(hold) is not HoldState.PLACED:  # somebody has released it meanwhile: nothing of it may stay
                    self._register.remove(Placed(identity, target))
                    raise
        covered = self._covered(target)
        deleted = tuple(CheckpointId.trusted(each) for each, is_deleted in covered if is_deleted)
        return Placement(_hold(hold), len(covered) - len(deleted), deleted)

    def release(self, hold_id: CheckpointId | UUID | str, *, reason: str) -> Release:
        """See `Holds`."""
        check_text("reason", reason, MAX_REASON)
        identity = CheckpointId(hold_id)
        hold = self._load(identity)
        placed = Placed(identity, HoldTarget.read(hold.payload["target"]))
        was = _state(hold)
        if was in (HoldState.PLACING, HoldState.PLACED):
            said = {"actor": self._store.actor, "reason": reason}
            hold = self._advance(hold, HoldState.RELEASING, release=said)
        self._register.remove(placed)
        if was is not HoldState.RELEASED:
            hold = self._advance(hold, HoldState.RELEASED)
        return Release(_hold(hold), self._requeued(identity))

    def get(self, hold_id: CheckpointId | UUID | str) -> Hold:
        """See `Holds`."""
        return _hold(self._load(CheckpointId(hold_id)))

    def list(self, *, released: bool = False) -> list[Hold]:
        """See `Holds`."""
        found: list[Hold] = []
        after: str | None = None
        while True:
            page = self._store.catalog.list(tenant=TENANT, kind=HOLD_KIND, after=after, limit=_PAGE, at=None, run_id=None)
            for each in page.items:
                if released or each.phase != HoldState.RELEASED:
                    revision = self._streams.revision(each.id, HOLD_KIND, at_least=Position())
                    assert revision is not None
                    found.append(_hold(_dated(revision)))
            after = page.next
            if after is None:
                return [each for each in found if self._visible(each.target)]

    # -- inside ---------------------------------------------------------------------------------------------------

    def _begun(self, identity: CheckpointId, target: HoldTarget, reason: str) -> Checkpoint:
        payload = {
            "target": target.fields(),
            "reason": reason,
            "actor": self._store.actor,
            "phase": {"state": HoldState.PLACING.value},
        }
        begun = first(identity, HOLD_KIND, payload, labels=target.fields())
        try:
            receipt = self._streams.commit(begun, None)
        except Conflict as error:
            found = self._streams.revision(identity, HOLD_KIND)
            there = begun if found is None else _dated(found)
            if found is None or (there.payload["target"], there.payload["reason"]) != (payload["target"], reason):
                raise InvalidRequest("hold_id", f"{identity} is another hold", hint="Leave it out: each hold gets an id.") from error
            if _state(there) in (HoldState.RELEASING, HoldState.RELEASED):
                raise InvalidRequest("hold_id", f"{identity} is released", hint="Place another hold.") from error
            return there
        return begun.model_copy(update={"payload": {**payload, "placed_at_ms": to_millis(receipt.recorded_at)}})

    def _advance(self, hold: Checkpoint, state: HoldState, **more: Any) -> Checkpoint:
        payload = {**hold.payload, **more, "phase": {"state": state.value}}
        following = hold.next(payload)
        receipt = self._streams.commit(following, hold.revision)
        if state is HoldState.RELEASING:
            payload["release"] = {**payload["release"], "at_ms": to_millis(receipt.recorded_at)}
        return following.model_copy(update={"payload": payload})

    def _load(self, identity: CheckpointId) -> Checkpoint:
        try:
            found = self._streams.revision(identity, HOLD_KIND)
        except SchemaMismatch as error:
            raise NotFound(identity, detail="it is no legal hold") from error
        if found is None or not self._visible(HoldTarget.read(found.checkpoint.payload["target"])):
            raise NotFound(identity, detail="there is no such legal hold")
        return _dated(found)

    def _visible(self, target: HoldTarget) -> bool:
        return self._store.tenant is None or target.tenant == self._store.tenant

    def _covered(self, target: HoldTarget) -> Sequence[tuple[str, bool]]:
        label = (target.key, target.value) if target.by is HeldBy.LABEL and target.key is not None else None
        with translated():
            return retention.covered(
                self._store.catalog.projection(),
                without=TENANT,
                tenant=target.tenant,
                checkpoint_id=target.value if target.by is HeldBy.CHECKPOINT else None,
                run_id=target.value if target.by is HeldBy.RUN else None,
                label=label,
            )

    def _requeued(self, hold_id: str) -> tuple[Refusal, ...]:
        """Refusals by this hold that nothing keeps any more."""
        mine = [each for each in refusals(self._store, self._streams) if hold_id in each.holds]
        return tuple(each for each in mine if self._is_free(each))

    def _is_free(self, refusal: Refusal) -> bool:
        try:
            header = self._store._deleter.header(CheckpointId(refusal.checkpoint_id))
        except NotFound:
            return False
        return header.revision == refusal.revision and not self._store._deleter.holds_on(header)


def _dated(found: Revision) -> Checkpoint:
    """With the time of the step that its latest revision is, which that revision could not know."""
    payload, at = found.checkpoint.payload, to_millis(found.recorded_at)
    if _state(found.checkpoint) is HoldState.PLACING:
        payload["placed_at_ms"] = at
    elif _state(found.checkpoint) is HoldState.RELEASING:
        payload["release"] = {**payload["release"], "at_ms": at}
    return found.checkpoint


def _state(hold: Checkpoint) -> HoldState:
    try:
        return HoldState(hold.payload["phase"]["state"])
    except (KeyError, TypeError, ValueError) as error:
        raise SchemaMismatch(f"checkpoint {hold.id} revision {hold.revision} is no legal hold") from error


def _hold(hold: Checkpoint) -> Hold:
    payload, release = hold.payload, hold.payload.get("release") or {}
    return Hold(
        hold.id,
        HoldTarget.read(payload["target"]),
        _state(hold),
        payload["reason"],
        payload["actor"],
        _moment(payload.get("placed_at_ms")),
        release.get("reason"),
        release.get("actor"),
        _moment(release.get("at_ms")),
    )


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else from_millis(millis)
