"""Whether a proposal whose revision the log already has is that very event, sent again."""

from __future__ import annotations

from eventlog import retry
from eventlog.errors import CheckpointError, HistoryRemoved, OutcomeUnknown
from eventlog.kafka.view import View
from eventlog.kafka.waiting import Item
from eventlog.rules import Head


def compare(view: View, item: Item, head: Head) -> None:
    """Answers the item. In a pool: the projection may have to be asked."""
    proposal = item.proposal
    assert proposal is not None
    try:
        record = view.revision(proposal.checkpoint_id, proposal.revision)
        item.answer(retry.answer(head, proposal, record))
    except HistoryRemoved as error:
        # Not a conflict: this event may be the very one that stood there, sent again by somebody who was not told.
        reason = f"revision {proposal.revision} was removed from the log ({error.reason}): nothing shows which event it was"
        item.answer(OutcomeUnknown(proposal.checkpoint_id, event_id=proposal.event_id, reason=reason))
    except CheckpointError as error:
        item.answer(item.unanswered(error))
