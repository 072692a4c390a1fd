"""What a checkpoint was migrated from last is read from its history, without what was undone; where that is removed, nothing is guessed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eventlog import Checkpoint, CheckpointId, EventType, Gap, Position, Revision, RunId
from eventlog.recovery.carrying import CannotBeMigrated, Migrated, Refusal, last_migration
from eventlog.recovery.migrations import Schema

START = Checkpoint.initial(CheckpointId.new(), RunId.new(), "acme.order", 1, {})


def history(text: str) -> list[Revision | Gap]:
    """`1 1 m2 g m1`: revisions by their version, migrated ones with an m, gaps (i: what lies before an import)."""
    found: list[Revision | Gap] = []
    for number, word in enumerate(text.split()):
        if word in "gi":
            found.append(Gap(START.id, number, number, "compaction" if word == "g" else "import"))
            continue
        checkpoint = START.model_copy(update={"revision": number, "schema_version": int(word[-1])})
        kind = EventType.MIGRATED if word.startswith("m") else EventType.REVISION
        found.append(Revision(checkpoint, kind, None, datetime(2025, 1, 1, tzinfo=UTC), Position(), b"", b"", 2))
    return found


@pytest.mark.parametrize(
    ("text", "origin", "revision"),
    [
        ("1 m2", 1, 1),
        ("1 1 m2 2 2", 1, 2),
        ("1 m2 m3", 2, 2),
        ("1 m2 m3 m2", 1, 1),
        ("1 m2 m3 m1 m3", 1, 4),
        ("1 m2 m1 m2 2", 1, 3),
        ("1 g 1 m2", 1, 3),
        ("i 1 m2", 1, 2),
        ("1 m2 m2", 1, 1),  # the same version again is no migration of the kind that is undone
    ],
)
def test_the_last_one_that_was_not_undone_is_found(text: str, origin: int, revision: int) -> None:
    assert last_migration(history(text), 99) == Migrated(Schema("acme.order", origin), revision)


@pytest.mark.parametrize("text", ["1", "1 1 1", "1 m2 m1", "i 1 1", "1 m2 m3 m2 m1 1"])
def test_none_is_found_where_none_stands(text: str) -> None:
    assert last_migration(history(text), 99) is None


def test_what_came_after_the_revision_that_is_looked_at_does_not_count() -> None:
    assert last_migration(history("1 1 m2"), 1) is None


@pytest.mark.parametrize("text", ["g m2 2", "1 m2 g 2", "g 2 2"])
def test_where_the_log_has_forgotten_it_nothing_is_guessed(text: str) -> None:
    with pytest.raises(CannotBeMigrated) as caught:
        last_migration(history(text), 99)
    assert caught.value.why is Refusal.HISTORY_REMOVED
