"""What is recorded of a call: how it was made, when, what it said; of a call that never returned, that it was made."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    AsyncCheckpointStore,
    CheckpointError,
    CheckpointId,
    CheckpointStore,
    Conflict,
    Deleted,
    NotFound,
    OutcomeUnknown,
    Position,
    create_store,
    open_store,
)
from eventlog.testing import Action, AsyncRecorder, FileJournal, MemoryJournal, Mode, Operation, Outcome, RecordedHistory, Recorder, log_of
from tests.store.samples import UNUSED_ID, initial, stream

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CheckpointStore]:
    create_store(tmp_path / "store")
    with open_store(tmp_path / "store", actor="tester") as opened:
        yield opened


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal("mine")


@pytest.fixture
def recorder(store: CheckpointStore, journal: MemoryJournal) -> Recorder:
    return Recorder(store, journal)


def public(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


def test_a_recorder_has_every_method_of_the_store() -> None:
    for store, recorder in ((CheckpointStore, Recorder), (AsyncCheckpointStore, AsyncRecorder)):
        # What is reached past the recorder is not recorded; a principal's store is recorded by a recorder of its own.
        assert public(store) - public(recorder) <= {
            *("log", "catalog", "keys", "for_principal"),
            *("entrusted", "announce", "require_payloads", "forget"),  # for the package itself
        }
        for name in public(recorder):
            assert inspect.iscoroutinefunction(getattr(recorder, name)) == inspect.iscoroutinefunction(getattr(store, name)), name


def test_a_write_is_recorded_with_its_receipt(recorder: Recorder, journal: MemoryJournal) -> None:
    before = time.monotonic_ns()
    first = initial()
    receipt = recorder.compare_and_swap(first, None)
    after = time.monotonic_ns()
    recorder.compare_and_swap(first, None)
    one, two = journal
    assert before <= one.invoked <= (one.returned or 0) <= after
    assert one == Operation(
        session="mine",
        thread=threading.current_thread().name,
        action=Action.COMMIT,
        invoked=one.invoked,
        returned=one.returned,
        outcome=Outcome.COMMITTED,
        checkpoint_id=first.id,
        event_id=first.event_id,
        proposed=0,
        revision=0,
        position=str(receipt.position),
    )
    assert (two.outcome, two.revision, two.duplicate) == (Outcome.COMMITTED, 0, True)


def test_every_answer_of_the_store_is_recorded(recorder: Recorder, journal: MemoryJournal) -> None:
    written = stream(recorder.store, 2)
    first = written[0]
    with pytest.raises(Conflict):
        recorder.compare_and_swap(first.next({}), 0)
    with pytest.raises(NotFound):
        recorder.compare_and_swap(initial().next({}), 0)
    with pytest.raises(CheckpointError, match="payload"):
        recorder.compare_and_swap(written[1].next({1}), 1)
    recorder.delete(first.id, 1)
    with pytest.raises(Deleted):
        recorder.load(first.id)
    assert recorder.resolve(written[1]) is not None
    assert recorder.resolve(UNUSED_ID) is None
    imported = initial()
    recorder.import_revision(imported)
    recorder.migrate_revision(imported.next({}).model_copy(update={"schema_version": imported.schema_version + 1}), 0)
    found = [(each.action.value, each.outcome.value, each.expected, each.proposed, each.actual, each.revision) for each in journal]
    assert found == [
        ("commit", "conflict", 0, 1, 1, None),
        ("commit", "not_found", 0, 1, None, None),
        ("commit", "refused", 1, 2, None, None),
        ("delete", "committed", 1, 2, None, 2),
        ("load", "deleted", None, None, None, 2),
        ("resolve", "committed", None, 1, None, 1),
        ("resolve", "absent", None, None, None, None),
        ("import", "committed", None, 0, None, 0),
        ("commit", "committed", 0, 1, None, 1),
    ]
    assert [each.error for each in journal if each.error] == ["InvalidPayload INVALID_PAYLOAD"]


def test_every_read_is_recorded_with_what_was_seen_and_how_fresh_it_had_to_be(recorder: Recorder, journal: MemoryJournal) -> None:
    first, second = stream(recorder.store, 2)
    position = recorder.position()
    recorder.load(first.id)
    recorder.load(first.id, at_least=Position())
    recorder.load(first.id, revision=0)
    recorder.load(first.id, at=position)
    recorder.load_revision(first.id)
    recorder.list(run_id=first.run_id)
    list(recorder.subscribe(Position(), idle_timeout=0))
    found = [(each.action, each.mode, each.revision, each.observed) for each in journal]
    assert found == [
        (Action.LOAD, Mode.LATEST, 1, second.event_id),
        (Action.LOAD, Mode.LOCAL, 1, second.event_id),
        (Action.LOAD, Mode.REVISION, 0, first.event_id),
        (Action.LOAD, Mode.PAST, 1, second.event_id),
        (Action.LOAD, Mode.LATEST, 1, second.event_id),
        (Action.LIST, Mode.LATEST, 1, second.event_id),
        (Action.SUBSCRIBE, Mode.PAST, 0, first.event_id),
        (Action.SUBSCRIBE, Mode.PAST, 1, second.event_id),
    ]


def test_a_history_is_recorded_when_it_has_been_read(recorder: Recorder, journal: MemoryJournal) -> None:
    written = stream(recorder.store, 4)
    pairs = tuple((each.revision, str(each.event_id)) for each in written)
    revisions = recorder.history(written[0].id)
    assert list(journal) == []
    list(revisions)
    for _ in recorder.history(written[0].id, after=0):
        break
    list(recorder.history(written[0].id, limit=2))
    with pytest.raises(NotFound):
        recorder.history(UNUSED_ID)
    recorder.history(written[0].id)  # never read: nothing was seen
    found = [(each.outcome, each.after, each.seen, each.complete) for each in journal]
    assert found == [
        (Outcome.READ, None, pairs, True),
        (Outcome.READ, 0, pairs[1:2], False),
        (Outcome.READ, None, pairs[:2], False),
        (Outcome.NOT_FOUND, None, None, None),
    ]


def test_many_are_recorded_one_by_one(recorder: Recorder, journal: MemoryJournal) -> None:
    first = initial()
    recorder.compare_and_swap_many([(first, None), (first.next({}), 0), (first.next({}), 0), (initial({1}), None)])
    assert [each.outcome.value for each in journal] == ["committed", "committed", "conflict", "refused"]
    with pytest.raises(CheckpointError):
        recorder.compare_and_swap_many([])


class Failing:
    """A store that breaks off."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def compare_and_swap(self, *_: Any) -> Any:
        raise self.error

    def compare_and_swap_many(self, *_: Any) -> Any:
        raise self.error

    def load(self, *_: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("?"), KeyboardInterrupt(), OutcomeUnknown("c", event_id="e", reason="r")], ids=repr)
def test_a_write_that_fails_in_an_unknown_way_has_an_unknown_outcome(error: BaseException) -> None:
    journal = MemoryJournal()
    failing = Recorder(Failing(error), journal)
    first = initial()
    with pytest.raises(type(error)):
        failing.compare_and_swap(first, None)
    with pytest.raises(type(error)):
        failing.compare_and_swap_many([(first, None), (first, None)])
    assert [each.outcome for each in journal] == [Outcome.UNKNOWN] * 3


def test_a_read_that_fails_says_nothing() -> None:
    journal = MemoryJournal()
    with pytest.raises(RuntimeError):
        Recorder(Failing(RuntimeError()), journal).load(UNUSED_ID)
    assert [each.outcome for each in journal] == [Outcome.REFUSED]


def test_a_file_gives_back_what_was_recorded(store: CheckpointStore, tmp_path: Path) -> None:
    kept = MemoryJournal("one")
    with FileJournal.open(tmp_path / "history", session="one") as file:
        for journal in (kept, file):
            recorder = Recorder(store, journal)
            first = initial()
            recorder.compare_and_swap(first, None)
            recorder.load(first.id)
            list(recorder.history(first.id))
            with pytest.raises(Conflict):
                recorder.compare_and_swap(first.next({}), 1)
    kinds = [(each.session, each.action, each.outcome, each.revision) for each in kept]
    history = RecordedHistory([tmp_path / "history"])
    assert [(each.session, each.action, each.outcome, each.revision) for each in history] == kinds
    assert list(history) == list(history)


def test_threads_do_not_mix_their_lines(store: CheckpointStore, tmp_path: Path) -> None:
    with FileJournal.open(tmp_path / "history") as journal:
        recorder = Recorder(store, journal)

        def write() -> None:
            checkpoint = initial({"text": "x" * 5000}, labels={"a": "b"})
            recorder.compare_and_swap(checkpoint, None)
            for _ in range(30):
                assert recorder.load(checkpoint.id).revision == checkpoint.revision
                checkpoint = checkpoint.next({})
                recorder.compare_and_swap(checkpoint, checkpoint.revision - 1)

        threads = [threading.Thread(target=write) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    operations = list(RecordedHistory([tmp_path / "history"]))
    assert len(operations) == 8 * 61
    assert len({each.thread for each in operations}) == 8


KILLED = """
import sys, threading
from eventlog.testing import FileJournal, Recorder
from tests.store.samples import initial

class Hanging:
    def compare_and_swap(self, *_):
        print("called", flush=True)
        threading.Event().wait()
    def load(self, *_):
        return first

first = initial()
recorder = Recorder(Hanging(), FileJournal.open(sys.argv[1]))
recorder.load(first.id)
recorder.compare_and_swap(first, None)
"""


def test_a_killed_process_leaves_its_call_as_pending(tmp_path: Path) -> None:
    path = tmp_path / "history"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "called\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    dead = time.monotonic_ns()
    load, pending = RecordedHistory([path])
    assert (load.outcome, pending.outcome, pending.returned, pending.proposed) == (Outcome.READ, Outcome.PENDING, None, 0)
    assert pending.invoked < dead  # one clock for both processes
    *_, over = RecordedHistory([path], ended={path: dead})
    assert (over.outcome, over.returned) == (Outcome.PENDING, dead)


def test_a_line_that_was_cut_off_is_left_out_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with FileJournal.open(path) as journal:
        Recorder(Failing(RuntimeError()), journal)
        number = journal.invoked({"thread": "t", "action": "commit", "invoked": 1})
        journal.returned(number, {"returned": 2, "outcome": "unknown"})
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert [each.outcome for each in RecordedHistory([path])] == [Outcome.PENDING]
    for damaged in (
        whole[:-9] + b"\n",
        whole + b'{"n":7,"returned":5}\n',
        whole + b'{"action":"dance","invoked":1,"thread":"t"}\n',
        b"what\n",
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="history"):
            list(RecordedHistory([path]))
    path.write_bytes(b"")
    assert list(RecordedHistory([path])) == []


def test_clocks_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        FileJournal.open(tmp_path / name).close()
    assert list(RecordedHistory([tmp_path / "a", tmp_path / "b"])) == []
    header = (tmp_path / "a").read_text()
    (tmp_path / "a").write_text(header.replace('"boot":"', '"boot":"another'))
    with pytest.raises(ValueError, match="compared"):
        list(RecordedHistory([tmp_path / "a", tmp_path / "b"]))


def test_a_file_is_one_sessions(tmp_path: Path) -> None:
    FileJournal.open(tmp_path / "history").close()
    with pytest.raises(FileExistsError):
        FileJournal.open(tmp_path / "history")


def test_the_final_log_is_what_the_history_holds(store: CheckpointStore) -> None:
    written = stream(store, 2)
    receipt = store.delete(written[0].id, 1)
    moved = initial().model_copy(update={"revision": 5})
    store.import_revision(moved)
    log = log_of(store, [written[0].id, moved.id, CheckpointId(UNUSED_ID)])
    assert [list(map(tuple, entries)) for entries in log.values()] == [
        [(0, written[0].event_id, "REVISION"), (1, written[1].event_id, "REVISION"), (2, receipt.event_id, "DELETED")],
        [(0, 4), (5, moved.event_id, "IMPORTED")],
        [],
    ]


def test_the_async_recorder_records_the_same(store: CheckpointStore, journal: MemoryJournal) -> None:
    async def run() -> None:
        recorder = AsyncRecorder(AsyncCheckpointStore(store), journal)
        first = initial()
        await recorder.compare_and_swap(first, None)
        await recorder.compare_and_swap_many([(first.next({}), 0), (first.next({}), 0)])
        await recorder.load(first.id)
        await recorder.load_revision(first.id, revision=0)
        assert [each async for each in recorder.history(first.id)]
        async with contextlib.aclosing(recorder.history(first.id)) as revisions:
            await anext(revisions)
        await recorder.list(run_id=first.run_id)
        assert await recorder.resolve(first) is not None
        async for _ in recorder.subscribe(Position(), idle_timeout=0):
            pass
        await recorder.delete(first.id, 1)
        imported = initial()
        await recorder.import_revision(imported)
        await recorder.migrate_revision(imported.next({}), 0)
        with pytest.raises(Deleted):
            await recorder.load(first.id)
        deletion = await recorder.load_revision(first.id)
        assert (await recorder.position()).covers(await recorder.position_at(deletion.recorded_at))

    asyncio.run(run())
    found = [(each.action.value, each.outcome.value) for each in journal]
    assert found[:3] == [("commit", "committed"), ("commit", "committed"), ("commit", "conflict")]
    assert found[3:9] == [(name, "read") for name in ("load", "load", "history", "history", "list")] + [("resolve", "committed")]
    assert found[9:] == [
        ("subscribe", "read"),
        ("subscribe", "read"),
        ("delete", "committed"),
        ("import", "committed"),
        ("commit", "committed"),
        ("load", "deleted"),
        ("load", "read"),
    ]
    assert len({each.thread for each in journal}) == 1
    assert threading.current_thread().name not in {each.thread for each in journal}  # it is the task's


def test_a_cancelled_write_has_an_unknown_outcome(journal: MemoryJournal) -> None:
    class Waiting:
        async def compare_and_swap(self, *_: Any) -> Any:
            await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.create_task(AsyncRecorder(Waiting(), journal).compare_and_swap(initial(), None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert [(each.outcome, each.error) for each in journal] == [(Outcome.UNKNOWN, "CancelledError")]
