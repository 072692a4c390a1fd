"""The refused deletions that are on record, as plans and releases ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog.catalog import CheckpointSummary
from eventlog.holds.refusals import Refusal
from eventlog.holds.reserved import REFUSAL_KIND, TENANT, ReservedStreams
from eventlog.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eventlog.store import CheckpointStore

_PAGE = 1_000


def refusal_summaries(store: CheckpointStore) -> Iterator[CheckpointSummary]:
    """Of each refusal what stands in clear text. Withdrawn ones, which were deleted, are not there."""
    after: str | None = None
    while True:
        page = store.catalog.list(tenant=TENANT, kind=REFUSAL_KIND, after=after, limit=_PAGE, at=None, run_id=None)
        yield from page.items
        after = page.next
        if after is None:
            return


def refusals(store: CheckpointStore, streams: ReservedStreams) -> Iterator[Refusal]:
    """Each refusal in full."""
    for each in refusal_summaries(store):
        if store.tenant is None or each.labels.get("tenant") == store.tenant:
            found = streams.load(each.id, REFUSAL_KIND, at_least=Position())
            if found is not None:
                yield Refusal.read(found)
