"""Every place where a migration of three checkpoints, or its undo, can be killed; and what a victim does until it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventlog import CheckpointStore

CHECKPOINTS = 3
BOUNDARIES = {"migrate": "checkpoint_migrated", "undo": "migration_undone"}


def kills(mode: str) -> list[str]:
    """Before and after each commit."""
    return [f"{when} {BOUNDARIES[mode]} {number}" for number in range(1, CHECKPOINTS + 1) for when in ("before", "after")]


def all_kills() -> list[str]:
    return [kill for mode in BOUNDARIES for kill in kills(mode)]


def victim(mode: str, store: CheckpointStore, tenant: str, at: Callable[[str], None]) -> None:
    """Migrates what the tenant has, or takes it back, telling `at` before and after each commit."""
    from eventlog.recovery import Selection, run_migration, steps, undo_migration
    from tests.recovery.migration_samples import orders

    perform = steps.perform
    written = 0

    def watching(step: Any) -> Any:
        nonlocal written
        assert isinstance(step, steps.Commit)
        written += 1
        at(f"before {step.boundary} {written}")
        answer = perform(step)
        at(f"after {step.boundary} {written}")
        return answer

    steps.perform = watching
    (run_migration if mode == "migrate" else undo_migration)(store, orders(), Selection(tenant=tenant))
