"""What may happen in the body of a turn, and what must have happened before it may end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from eventlog.errors import CheckpointError, ErrorKind, InvalidRequest
from eventlog.recovery.agent_phases import AgentRecord, TurnInFlight
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effect_phases import Announced, EffectClass, Request
from eventlog.recovery.effects import EffectCall, EffectLedger, Recall, Reconciler
from eventlog.recovery.errors import EffectFailed, StillInFlight
from eventlog.recovery.fields import own_copy
from eventlog.recovery.settlement import NotExecuted
from eventlog.recovery.steps import Advance, Handler, Steps, check_handler
from eventlog.recovery.stream import RunStream
from eventlog.recovery.usage import TOOL_CALLS


class TurnCore:
    """A turn whose in-flight phase is durable, until it ends."""

    def __init__(self, stream: RunStream[AgentRecord], effects: EffectLedger | None) -> None:
        phase = stream.record.in_flight()
        self._stream = stream
        self._ledger = effects
        self._phase = phase
        self._earlier = frozenset(each.checkpoint_id for each in phase.effects)
        self._ordinals: Counter[str] = Counter()
        self._running: dict[str, str] = {}  # by checkpoint id, how an error names it
        self._settled: set[str] = set()
        self._ended = False

    @property
    def number(self) -> int:
        """Which turn of the run this is, from 1 on."""
        return self._phase.turn

    @property
    def attempt(self) -> int:
        """How often this turn has been begun, from 1 on."""
        return self._phase.attempt

    def spend_steps(self, amounts: Mapping[str, int]) -> Steps[None]:
        """Makes usage durable, at once."""
        self._check_open()
        yield Advance(self._stream, AgentRecord.same, Boundary.TURN_SPENT, amounts)

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
            raise InvalidRequest("idempotency_key", f"{request.idempotency_key} is running in this turn already")
        call = EffectCall(
            request,
            handler,
            run_id=self._stream.checkpoint.run_id,
            requested_by={"checkpoint_id": self._stream.checkpoint.id, "in": f"turn {self.number}"},
            announce=lambda: self._announce(effect),
            repeat=effect.checkpoint_id in self._earlier,
            reconcile=reconcile,
            recall=recall,
        )
        self._running[effect.checkpoint_id] = f"{capability} {request.idempotency_key}"
        try:
            output = yield from ledger.run_steps(call)
        except (EffectFailed, NotExecuted):
            self._settled.add(effect.checkpoint_id)
            raise
        finally:
            del self._running[effect.checkpoint_id]
        self._settled.add(effect.checkpoint_id)
        return output

    def commit_steps(self, state: Any, usage: Mapping[str, int] | None) -> Steps[None]:
        """Makes the stable phase durable, if nothing of the turn is still open."""
        self._check_open()
        kept = own_copy(state)
        if self._running:
            raise self._still_in_flight(f"{', '.join(self._running.values())} still running")
        started = yield from self._started()
        if started:
            raise self._still_in_flight(f"{', '.join(started)} started, and nobody knows how it ended")
        self._ended = True
        try:
            yield Advance(self._stream, lambda record: record.stable(kept), Boundary.TURN_STABLE, {}, usage or {})
        except CheckpointError as error:
            self._ended = error.kind is ErrorKind.OUTCOME_UNKNOWN  # anything else: nothing was written, the turn is as it was
            raise
        self._stream.at_work(False)

    def leave(self, error: BaseException | None) -> None:
        """The body has ended. Raises `StillInFlight` when it did so without a commit, and without saying why."""
        self._stream.at_work(False)
        ended, self._ended = self._ended, True
        if error is None and not ended:
            raise self._still_in_flight("the body ended without commit()")

    # -- inside ---------------------------------------------------------------------------------------------------

    def _announce(self, effect: Announced) -> Steps[None]:
        yield Advance(self._stream, lambda record: record.announce(effect), Boundary.EFFECT_ANNOUNCED, {TOOL_CALLS: 1})

    def _started(self) -> Steps[list[str]]:
        """Writes of this turn, earlier attempts included, that were started and have no answer. Reads may be left: they change nothing."""
        phase = self._stream.record.phase
        assert isinstance(phase, TurnInFlight)
        open_ones = [each for each in phase.effects if each.effect_class.writes and each.checkpoint_id not in self._settled]
        if not open_ones or self._ledger is None:
            return []
        known = yield from self._ledger.known_steps(open_ones)
        return [f"{each.capability} {each.idempotency_key}" for each in known if each.state == "started"]

    def _key(self, capability: str, effect_class: EffectClass, given: str | None) -> str:
        """A key of the turn's own: the same call of a repeated turn finds what the attempt before it has left."""
        if given is not None:
            return given
        if effect_class is EffectClass.IDEMPOTENT_WRITE:
            raise InvalidRequest("idempotency_key", "is needed for an idempotent write: it is what the other side knows the call by")
        self._ordinals[capability] += 1
        return f"{self._stream.checkpoint.id}/turn-{self.number}/{self._ordinals[capability]}"

    def _check_open(self) -> None:
        if self._ended:
            raise InvalidRequest("turn", f"turn {self.number} has ended")

    def _still_in_flight(self, reason: str) -> StillInFlight:
        return StillInFlight(self._stream.checkpoint.id, what=f"turn {self.number}", reason=reason)


def begun(turn: TurnCore | None) -> TurnCore:
    """A turn that was entered. Raises `InvalidRequest` for one that was not."""
    if turn is None:
        raise InvalidRequest("turn", "has not begun", hint="Use it as a context manager: with run.turn() as turn.")
    return turn
