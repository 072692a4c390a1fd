"""That a run is somebody's: what whoever has claimed it holds in its hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from eventlog.ids import CheckpointId
from eventlog.recovery.log_clock import LogClock


@dataclass(frozen=True, slots=True)
class Claim:
    """A run was claimed. Only its owner's claim with the token on record is one: everything else is refused.

    `token` grows by one with each claim of the run. `clock` is the log's, as the claim has read it.
    """

    checkpoint_id: CheckpointId
    owner: str
    token: int
    clock: LogClock = field(default_factory=LogClock, compare=False, repr=False)
