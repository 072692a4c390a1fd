"""Checkpoints to write, and what became of writing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eventlog import Checkpoint, CheckpointError, CheckpointId, CheckpointStore, Position, Revision, RunId
from eventlog.testing.suite.samples import numbered as numbered
from eventlog.testing.suite.samples import outcome as outcome

UNUSED_ID = "01234567-89ab-7cde-8f01-23456789abcd"


def initial(
    payload: Any = None,
    *,
    kind: str = "acme.order",
    tenant: str = "default",
    labels: Mapping[str, str] | None = None,
    usage: Mapping[str, int] | None = None,
    phase: str | None = None,
    schema_version: int = 1,
) -> Checkpoint:
    """Revision 0 of a checkpoint that nothing has used."""
    return Checkpoint.initial(
        CheckpointId.new(),
        RunId.new(),
        kind,
        schema_version,
        {"step": 0} if payload is None else payload,
        tenant=tenant,
        labels=labels,
        usage=usage,
        phase=phase,
    )


def stream(store: CheckpointStore, revisions: int, **fields: Any) -> list[Checkpoint]:
    """A committed checkpoint with so many revisions."""
    written = [initial(**fields)]
    store.compare_and_swap(written[0], None)
    for step in range(1, revisions):
        written.append(written[-1].next({"step": step}))
        store.compare_and_swap(written[-1], step - 1)
    return written


def described(error: CheckpointError) -> tuple[Any, ...]:
    """Everything that a caller can see of an error."""
    return type(error), str(error), error.kind, error.retry, error.hint, vars(error)


def revisions(store: CheckpointStore, checkpoint_id: str) -> list[Revision]:
    """The history, which must have no gap."""
    found = list(store.history(checkpoint_id))
    assert all(isinstance(each, Revision) for each in found)
    return [each for each in found if isinstance(each, Revision)]


def since(store: CheckpointStore, position: Position) -> list[Revision]:
    """What was committed behind a position."""
    return list(store.subscribe(position, idle_timeout=0))


@contextmanager
def nothing_written(store: CheckpointStore) -> Iterator[None]:
    before = store.position()
    yield
    assert since(store, before) == []
    assert store.position() == before


def chain_is_intact(history: list[Revision]) -> bool:
    """Each revision names the one before it, and the numbers have no gap."""
    numbers = [each.checkpoint.revision for each in history]
    hashes = [bytes(32) if history[0].checkpoint.revision == 0 else history[0].previous_hash, *(each.hash for each in history)]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers))) and all(
        each.previous_hash == previous for each, previous in zip(history, hashes, strict=False)
    )
