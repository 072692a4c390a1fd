"""What may be done about a run that was in flight when its process ended. Pure: a decision, by the one who resumes.

A completed run is replayed and a stable one goes on under either policy; neither looks at it. Nor does either repeat a failed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventlog.errors import InvalidRequest
from eventlog.recovery.errors import AmbiguousResume

if TYPE_CHECKING:
    from eventlog.recovery.effects import AsyncEffectStore, EffectStore


@dataclass(frozen=True, slots=True)
class Reject:
    """The default: what is in flight is refused (`AmbiguousResume` says what is known), unless a person has decided for a retry."""


@dataclass(frozen=True, slots=True)
class RetryInFlight:
    """What is in flight is repeated: the body runs again from the last stable state, completed effects are replayed from their record.

    Arguments:
        effects: the effect store that the checkpoint names; another one is refused. None for a run that was started without one.
    """

    effects: EffectStore | AsyncEffectStore | None = None


Policy = Reject | RetryInFlight


def check_policy(policy: object) -> None:
    """Raises `InvalidRequest` for what is no policy."""
    if not isinstance(policy, Reject | RetryInFlight):
        raise InvalidRequest("policy", f"must be Reject() or RetryInFlight(effects=...), not {policy!r:.60}")


def admit(policy: Policy, found: AmbiguousResume, *, decided: bool) -> None:
    """Lets an in-flight run be repeated, or raises what was found.

    Arguments:
        decided: that a person has decided so, about each attempt that is in flight.
    """
    if not isinstance(policy, RetryInFlight) and not decided:
        raise found
