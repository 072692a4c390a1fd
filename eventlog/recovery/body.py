"""The body of a turn, a step or a branch: what may happen in it, and what must have happened before it may end.

General over the kind of run. What is in flight, and how an effect is announced in it, is the record's to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from eventlog.errors import CheckpointError, ErrorKind, InvalidRequest
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effect_phases import Announced, EffectClass, Request
from eventlog.recovery.effects import EffectCall, EffectLedger, Recall, Reconciler
from eventlog.recovery.errors import StillInFlight
from eventlog.recovery.steps import Advance, Handler, Steps, check_handler
from eventlog.recovery.stream import R, RunStream
from eventlog.recovery.usage import TOOL_CALLS


class BodyCore(Generic[R]):
    """A body whose in-flight phase is durable, until it ends.

    Arguments:
        what: how errors and effects name it, `turn 3`.
        place: what the keys of effects without one begin with; the same in every attempt of this body, and in no other.
        announced: the effects that the record's phase names for this body, those of earlier attempts included.
        announce: the record with one more.
    """

    def __init__(
        self,
        stream: RunStream[R],
        effects: EffectLedger | None,
        *,
        what: str,
        place: str,
        announced: Callable[[R], Sequence[Announced]],
        announce: Callable[[R, Announced], R],
    ) -> None:
        self._stream = stream
        self._ledger = effects
        self._what = what
        self._place = place
        self._announced = announced
        self._announce = announce
        self._earlier = frozenset(each.checkpoint_id for each in announced(stream.record))
        self._ordinals: Counter[str] = Counter()
        self._running: dict[str, str] = {}  # by checkpoint id, how an error names it
        self._completed: set[str] = set()
        self._ended = False
        stream.at_work(self, True)

    def spend_steps(self, amounts: Mapping[str, int]) -> Steps[None]:
        """Makes usage durable, at once."""
        self._check_open()
        yield Advance(self._stream, lambda record: record, Boundary.USAGE_SPENT, amounts)

    def effect_steps(
        self,
        capability: str,
        argument: Any,
        handler: Handler,
        *,
        effect_class: EffectClass,
        idempotency_key: str | None,
        reconcile: Reconciler | None,
        recall: Recall | None,
        digest_only: bool,
    ) -> Steps[Any]:
        """Runs an effect, or replays it."""
        self._check_open()
        ledger = self._ledger
        if ledger is None:
            raise InvalidRequest("effects", "the run has no effect store here", hint="Pass effects=EffectStore(store) when it is started.")
        check_handler("handler", handler, self._stream.store)
        for name, function in (("reconcile", reconcile), ("recall", recall)):
            if function is not None:
                check_handler(name, function, self._stream.store)
        request = Request(capability, self._key(capability, effect_class, idempotency_key), effect_class, argument, digest_only)
        effect = ledger.announced(request)
        if effect.checkpoint_id in self._running:
            raise InvalidRequest("idempotency_key", f"{request.idempotency_key} is running in this body already")
        call = EffectCall(
            request,
            handler,
            run_id=self._stream.checkpoint.run_id,
            requested_by={"checkpoint_id": self._stream.checkpoint.id, "in": self._what},
            announce=lambda: self._announce_steps(effect),
            repeat=effect.checkpoint_id in self._earlier,
            reconcile=reconcile,
            recall=recall,
        )
        self._running[effect.checkpoint_id] = f"{capability} {request.idempotency_key}"
        try:
            output = yield from ledger.run_steps(call)
        finally:
            del self._running[effect.checkpoint_id]
        self._completed.add(effect.checkpoint_id)
        return output

    def end_steps(self, change: Callable[[R], R], boundary: Boundary, usage: Mapping[str, int] | None) -> Steps[None]:
        """Makes the phase durable that follows the body, if nothing of it is still open."""
        self._check_open()
        if self._running:
            raise self._still_in_flight(f"{', '.join(self._running.values())} still running")
        started = yield from self._started_steps()
        if started:
            raise self._still_in_flight(f"{', '.join(started)} started, and nobody knows how it ended")
        self._ended = True
        try:
            yield Advance(self._stream, change, boundary, {}, usage or {})
        except CheckpointError as error:
            self._ended = error.kind is ErrorKind.OUTCOME_UNKNOWN  # anything else: nothing was written, the body is as it was
            raise
        self._stream.at_work(self, False)

    def leave(self, error: BaseException | None) -> None:
        """The body has been left. Raises `StillInFlight` when that was before its end, and nothing said why."""
        self._stream.at_work(self, False)
        ended, self._ended = self._ended, True
        if error is None and not ended:
            raise self._still_in_flight("the body ended without commit()")

    # -- inside ---------------------------------------------------------------------------------------------------

    def _announce_steps(self, effect: Announced) -> Steps[None]:
        yield Advance(self._stream, lambda record: self._announce(record, effect), Boundary.EFFECT_ANNOUNCED, {TOOL_CALLS: 1})

    def _started_steps(self) -> Steps[list[str]]:
        """Writes of this body, earlier attempts included, that were started and have no answer. Reads may be left: they change nothing."""
        announced = self._announced(self._stream.record)
        open_ones = [each for each in announced if each.effect_class.writes and each.checkpoint_id not in self._completed]
        if not open_ones or self._ledger is None:
            return []
        known = yield from self._ledger.known_steps(open_ones)
        return [f"{each.capability} {each.idempotency_key}" for each in known if each.state == "started"]

    def _key(self, capability: str, effect_class: EffectClass, given: str | None) -> str:
        """A key of the body's own: the same call of a repeated body finds what the attempt before it has left."""
        if given is not None:
            return given
        if effect_class is EffectClass.IDEMPOTENT_WRITE:
            raise InvalidRequest("idempotency_key", "is needed for an idempotent write: it is what the other side knows the call by")
        self._ordinals[capability] += 1
        return f"{self._place}/{self._ordinals[capability]}"

    def _check_open(self) -> None:
        if self._ended:
            raise InvalidRequest("body", f"{self._what} has ended")

    def _still_in_flight(self, reason: str) -> StillInFlight:
        return StillInFlight(self._stream.checkpoint.id, what=self._what, reason=reason)
