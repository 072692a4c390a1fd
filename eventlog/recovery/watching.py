"""Counts how resumes end, for the metrics."""

from __future__ import annotations

import time
from typing import Literal, TypeVar

from eventlog.checkpoint import Checkpoint
from eventlog.errors import SchemaMismatch
from eventlog.recovery.errors import AmbiguousResume
from eventlog.recovery.opening import Opened
from eventlog.recovery.steps import Steps, Store

O = TypeVar("O", bound=Opened)  # type: ignore[type-arg]  # noqa: E741 - of whatever record


def watched_steps(store: Store, run: Literal["agent", "workflow"], checkpoint: Checkpoint, steps: Steps[O]) -> Steps[O]:
    """Looks at a checkpoint that was loaded to be resumed, and counts what came of it."""
    metrics = store.metrics
    metrics.resumed(run, time.time() - checkpoint.updated_at.timestamp())
    try:
        opened = yield from steps
    except AmbiguousResume:
        metrics.ambiguous("refused")
        raise
    except SchemaMismatch:
        metrics.mismatched("run")
        raise
    if opened.found is not None:
        metrics.ambiguous("repeated")
    return opened
