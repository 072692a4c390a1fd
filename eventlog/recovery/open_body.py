"""What a turn, a step or a branch offers while it is open, whatever kind of run it belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

from eventlog.recovery.body import BodyCore
from eventlog.recovery.effect_phases import EffectClass
from eventlog.recovery.effects import Recall, Reconciler
from eventlog.recovery.steps import Handler, drive, drive_async


class Begun(ABC):
    """Something with a body that may have been entered."""

    @property
    @abstractmethod
    def _begun(self) -> BodyCore[Any]:
        """Its body. Raises `InvalidRequest` when it was not entered."""


class OpenBody(Begun):
    """Over a `CheckpointStore`."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._begun.leave(error)

    def spend(self, **amounts: int) -> None:
        """Records what was used just now (`tokens=812, cost_microusd=950`), durably: a process that dies later has still used it.

        One commit. `turns`, `tool_calls` and `duration_micros` are counted without it. Raises `InvalidRequest` for a negative amount.
        """
        drive(self._begun.spend_steps(amounts))

    def effect(
        self,
        capability: str,
        input: Any,  # noqa: A002 - what it is
        handler: Handler,
        *,
        effect_class: EffectClass,
        idempotency_key: str | None = None,
        reconcile: Reconciler | None = None,
        recall: Recall | None = None,
        digest_only: bool = False,
    ) -> Any:
        """Does something outside, at most once as far as can be known, and returns what came of it.

        Arguments:
            capability, idempotency_key: name the effect for ever, in this tenant. Without a key it belongs to its place in this body: the
                first, second, ... call of the capability. An idempotent write needs a key, and its handler should pass it on.
            input: any JSON value; it is what the handler gets.
            effect_class: what may be done when nobody knows how it ended.
            reconcile: gets the `Effect` of an earlier attempt that did not answer; returns a `Settlement`.
            digest_only: keep the digests of input and output, not themselves; then a replay asks `recall` for the output.

        A completed effect returns its output without being run. The handler says that it failed for certain by `CertainFailure` (then this
        and every later call raises `EffectFailed`), that nothing happened by `NotExecuted`; whatever else it raises comes through, and the
        effect stays started.

        Raises before the handler: `Conflict` (another process has the run), `BranchCancelled` (another branch of the race has won),
        `EffectReused` (same key, other input), `AmbiguousEffect`, `InvalidRequest`, `InvalidPayload`. After it: `InvalidPayload` or
        `TooLarge` for an output that cannot be recorded. `OutcomeUnknown` may be raised by any of the writes.
        """
        return drive(
            self._begun.effect_steps(
                capability,
                input,
                handler,
                effect_class=effect_class,
                idempotency_key=idempotency_key,
                reconcile=reconcile,
                recall=recall,
                digest_only=digest_only,
            )
        )


class AsyncOpenBody(Begun):
    """Over an `AsyncCheckpointStore`; see `OpenBody`."""

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._begun.leave(error)

    async def spend(self, **amounts: int) -> None:
        """See `OpenBody.spend`."""
        await drive_async(self._begun.spend_steps(amounts))

    async def effect(
        self,
        capability: str,
        input: Any,  # noqa: A002 - what it is
        handler: Handler,
        *,
        effect_class: EffectClass,
        idempotency_key: str | None = None,
        reconcile: Reconciler | None = None,
        recall: Recall | None = None,
        digest_only: bool = False,
    ) -> Any:
        """See `OpenBody.effect`."""
        return await drive_async(
            self._begun.effect_steps(
                capability,
                input,
                handler,
                effect_class=effect_class,
                idempotency_key=idempotency_key,
                reconcile=reconcile,
                recall=recall,
                digest_only=digest_only,
            )
        )
