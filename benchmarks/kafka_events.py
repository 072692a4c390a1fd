"""Valid events in any number, made by the store's own code but written by nobody's store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from uuid import UUID

from benchmarks.kafka_bare import Pair
from benchmarks.payloads import Payloads
from benchmarks.stores import ACTOR, KIND
from eventlog import Checkpoint, CheckpointId, RunId
from eventlog.codec import finish
from eventlog.event import GENESIS
from eventlog.proposing import propose

_VARIANTS = 97  # different payloads, so that a compressed batch is not a thousand times the same text


def checkpoint_id(number: int) -> CheckpointId:
    """The id of a numbered checkpoint: known to whoever knows the number, scattered like any other."""
    return CheckpointId(UUID(bytes=hashlib.md5(str(number).encode(), usedforsecurity=False).digest()))


def events(payloads: Payloads, *, checkpoints: int, revisions: int, kilobytes: int = 1) -> Iterator[Pair]:
    """Key and value of `revisions` events of each of `checkpoints` checkpoints, revision by revision."""
    states = [payloads.of(kilobytes, variant=variant) for variant in range(_VARIANTS)]
    heads: list[tuple[Checkpoint, bytes]] = []
    for revision in range(revisions):
        for number in range(checkpoints):
            state = states[(number + revision) % _VARIANTS]
            if revision == 0:
                checkpoint, previous = Checkpoint.initial(checkpoint_id(number), RunId.new(), KIND, 1, state), GENESIS
            else:
                last, previous = heads[number]
                checkpoint = last.next(state)
            proposal = propose(checkpoint, None if revision == 0 else revision - 1, actor=ACTOR, max_event_bytes=1 << 23)
            event, digest = finish(proposal.draft, previous)
            if revisions == 1:
                pass
            elif revision == 0:
                heads.append((checkpoint, digest))
            else:
                heads[number] = (checkpoint, digest)
            yield checkpoint.id.encode(), event
