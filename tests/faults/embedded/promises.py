"""Whether a store keeps its promises after what happened to the process that used it. Runs in a new process.

Everything that judges a history of attempts and answers stands in `check_history`; the rest asks the store for more than its history.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from eventlog import (
    Checkpoint,
    CheckpointId,
    CheckpointStore,
    ConfigurationError,
    Deleted,
    EventId,
    Position,
    Receipt,
    Revision,
    create_store,
    open_store,
)
from eventlog.archive.remembered import FILE as REMEMBERED
from eventlog.embedded_files import LOG_FILE
from eventlog.projection_files import PROJECTION_FILE, SNAPSHOT_FILE
from eventlog.verification import verify
from projections.engine import Projection
from projections.snapshot import private_copy
from tests.faults.embedded.notes import Attempt, Heard, Notes, digest_of, told
from tests.faults.embedded.workloads import first
from tests.read_side.samples import everything
from tests.store.samples import chain_is_intact, revisions

# What a directory may hold once a store in it is closed and nothing is left of a process that was killed.
TIDY = {LOG_FILE, PROJECTION_FILE, f"{PROJECTION_FILE}.lock", f"rebuild-{PROJECTION_FILE}.lock", SNAPSHOT_FILE, REMEMBERED}


def check(notes: Notes, directory: str, said: list[str]) -> None:
    """Checks the store in a directory against what its users have said."""
    place = Path(directory) / "store"
    heard = told(said)
    if not (place / LOG_FILE).exists():
        assert not heard.done("create"), "a store that was made is not there"
        create_store(place)
    else:
        _refused_a_second_time(place)
    _check_snapshot(place)
    with open_store(place, actor="checker") as store:
        check_history(store, heard, notes)
        _check_projection(store)
        _check_it_goes_on(store, heard)
    left = {each.name for each in place.iterdir()} - TIDY
    assert not left, f"left behind: {sorted(left)}"


def check_history(store: CheckpointStore, heard: Heard, notes: Notes) -> None:
    """What was acknowledged is there once and as it was, what was refused is not, and of the rest `resolve` tells the truth."""
    events = list(store.subscribe(Position(), idle_timeout=0))
    assert [each.position for each in events] == [Position(((0, number + 1),)) for number in range(len(events))]
    there: dict[str, Revision] = {each.checkpoint.event_id: each for each in events}
    assert len(there) == len(events), "an event is there twice"
    attempts: dict[str, Attempt] = {}
    acknowledged: set[str] = set()
    refused: set[str] = set()
    for number, attempt in heard.attempts.items():
        attempts[attempt.event_id] = attempt
        answer = heard.answers.get(number)
        if answer is not None and answer.outcome == "committed":
            acknowledged.add(attempt.event_id)
            assert attempt.event_id in there, f"acknowledged and lost: {attempt}"
            assert there[attempt.event_id].position == Position(((0, (answer.offset or 0) + 1),))
        elif answer is not None and answer.outcome != "OutcomeUnknown":
            refused.add(attempt.event_id)
    for number, found in heard.resolved:
        (acknowledged if found else refused).add(heard.attempts[number].event_id)
    assert acknowledged <= there.keys(), "acknowledged and lost"
    assert not (refused - acknowledged) & there.keys(), f"refused, and there: {(refused - acknowledged) & there.keys()}"
    for event_id, revision in there.items():
        attempt = attempts[event_id]  # else it is nobody's
        made = revision.checkpoint
        assert (made.id, made.revision, digest_of(made.payload)) == (attempt.checkpoint_id, attempt.revision, attempt.digest)
    for event_id, attempt in attempts.items():
        for receipt in (store.resolve(_checkpoint(attempt)), store.resolve(event_id)):
            assert (receipt is not None) == (event_id in there), f"resolve answers {receipt}"
    for checkpoint_id in {each.checkpoint.id for each in events}:
        assert chain_is_intact(revisions(store, checkpoint_id))
    notes.counted("events", len(there))
    notes.counted("unanswered and there", len(there.keys() - acknowledged))
    notes.counted("unanswered and not there", len(attempts.keys() - there.keys() - refused))


def _checkpoint(attempt: Attempt) -> Checkpoint:
    """All that `resolve` looks at."""
    identity = {"id": CheckpointId(attempt.checkpoint_id), "revision": attempt.revision, "event_id": EventId(attempt.event_id)}
    return first("any").model_copy(update=identity)


def _refused_a_second_time(place: Path) -> None:
    try:
        create_store(place)
    except ConfigurationError:
        return
    raise AssertionError("a second store was made in the place of the first")


def _check_projection(store: CheckpointStore) -> None:
    """Nothing wrong with log or projection, and the projection answers what one made anew does."""
    found = verify(store)
    assert found.is_clean, found.faults
    before = everything(store.catalog.projection())
    store.catalog.rebuild()
    assert everything(store.catalog.projection()) == before


def _check_snapshot(place: Path) -> None:
    """A file under the snapshot's name is a whole one: the projection as of some position, from which one can go on."""
    if not (place / SNAPSHOT_FILE).exists():
        return
    with tempfile.TemporaryDirectory() as private, open_store(place) as store:
        identity = store.log.identity
        with Projection(
            path=private_copy(place / SNAPSHOT_FILE, Path(private)), store_id=identity.store_id, partitions=1, keep_events=False
        ) as copied:
            (reached,) = copied.positions().values()
            assert copied.query("SELECT count(*) FROM revisions") == [(reached,)]
            assert reached <= store.position().next_offset(0)


def _check_it_goes_on(store: CheckpointStore, heard: Heard) -> None:
    """New revisions are accepted, and who sends an acknowledged one again gets its first receipt."""
    assert isinstance(store.compare_and_swap(first("behind the fault"), None), Receipt)
    for checkpoint_id in {attempt.checkpoint_id for attempt in heard.attempts.values()}:
        found = list(store.history(checkpoint_id)) if _exists(store, checkpoint_id) else []
        if not found:
            continue
        last = found[-1]
        assert isinstance(last, Revision)
        try:
            current = store.load(checkpoint_id)
        except Deleted:
            continue
        expected = None if current.revision == 0 else current.revision - 1
        assert store.compare_and_swap(current, expected).duplicate
        assert not store.compare_and_swap(current.next({"behind": "the fault"}), current.revision).duplicate
    assert store.list(include_deleted=True, limit=1000).items


def _exists(store: CheckpointStore, checkpoint_id: str) -> bool:
    return store.log.latest(checkpoint_id) is not None
