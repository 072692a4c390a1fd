"""A broken store is found out, from what it answered and what it holds: recorder and checker end to end, and the contract too."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog import CheckpointError, OutcomeUnknown
from eventlog.testing import MemoryJournal, Recorder, Rule, Verdict, check, log_of
from eventlog.testing.forgetful import Forgetful
from eventlog.testing.memory import MemoryStore
from eventlog.testing.workload import Workload
from tests.store.samples import initial
from tests.testing.broken_stores import (
    AcknowledgesBeforeWriting,
    AppliesAConflict,
    ForgetsOnRestart,
    GuessesAnOutcome,
    LastWriterWins,
    ReadsBehindADeletion,
    ReadsFromAReplica,
    ResurrectsAfterDelete,
    WritesARetryAgain,
)

REPOSITORY = Path(__file__).resolve().parents[2]
FIRST = initial()


def raced(store: Recorder) -> None:
    """Two writers from the same state."""
    store.compare_and_swap(FIRST, None)
    rivals = [FIRST.next({"writer": number}) for number in range(2)]
    gate = threading.Barrier(2)

    def write(number: int) -> None:
        gate.wait()
        try:
            store.compare_and_swap(rivals[number], 0)
        except CheckpointError:
            return

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def buffered(store: Recorder) -> None:
    raced(store)
    store.store.flush()


def restarted(store: Recorder) -> None:
    store.compare_and_swap(FIRST, None)
    store.compare_and_swap(FIRST.next({}), 0)
    store.store.restart()


def deleted(store: Recorder) -> None:
    store.compare_and_swap(FIRST, None)
    store.delete(FIRST.id, 0)
    try:
        store.load(FIRST.id)
    except CheckpointError:
        store.compare_and_swap(initial().model_copy(update={"id": FIRST.id}), None)


def read_back(store: Recorder) -> None:
    store.compare_and_swap(FIRST, None)
    store.compare_and_swap(FIRST.next({}), 0)
    store.load(FIRST.id)


def unclear(store: Recorder) -> None:
    store.compare_and_swap(FIRST, None)
    second = FIRST.next({})
    bare, store.store = store.store, Forgetful(store.store, lose=lambda: "answer")
    with pytest.raises(OutcomeUnknown):
        store.compare_and_swap(second, 0)
    store.store = bare
    store.resolve(second)
    store.compare_and_swap(second, 0)


BROKEN: list[tuple[type[MemoryStore], Callable[[Recorder], None], set[Rule]]] = [
    (LastWriterWins, raced, {Rule.LOST}),
    (AcknowledgesBeforeWriting, buffered, {Rule.LOST}),
    (ForgetsOnRestart, restarted, {Rule.LOST}),
    (AppliesAConflict, raced, {Rule.CONFLICT_IN_LOG}),
    (ResurrectsAfterDelete, deleted, {Rule.LOST}),
    (ReadsBehindADeletion, deleted, {Rule.RESURRECTED}),
    (ReadsFromAReplica, read_back, {Rule.STALE_READ}),
    (GuessesAnOutcome, unclear, {Rule.FALSE_RESOLVE}),
    (WritesARetryAgain, unclear, {Rule.TWICE_IN_LOG}),
]


def judged(store: MemoryStore, work: Callable[[Recorder], None]) -> Verdict:
    journal = MemoryJournal()
    work(Recorder(store, journal))
    return check(journal, log_of(store, [FIRST.id]))


@pytest.mark.parametrize(("broken", "work", "rules"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_what_a_broken_store_does_is_named(broken: type[MemoryStore], work: Callable[[Recorder], None], rules: set[Rule]) -> None:
    verdict = judged(broken(), work)
    assert {each.rule for each in verdict.violations} == rules, verdict
    assert all(each.operations for each in verdict.violations if each.rule is not Rule.TWICE_IN_LOG)


@pytest.mark.parametrize("work", [raced, read_back, unclear], ids=lambda work: work.__name__)
def test_the_same_from_an_honest_store_is_accepted(work: Callable[[Recorder], None]) -> None:
    judged(MemoryStore(), work).require_none()


def test_a_workload_finds_the_last_writer_that_wins_without_being_told_where_to_look() -> None:
    broken, work, journal = LastWriterWins(), Workload(seed=1, checkpoints=1, deletes=False), MemoryJournal()
    gate = threading.Barrier(2)

    class Together(Recorder):
        """Two load before either writes, as two machines do."""

        def load(self, *arguments: object, **options: object) -> object:
            loaded = super().load(*arguments, **options)  # type: ignore[arg-type]
            gate.wait(10)
            return loaded

    Recorder(broken, journal).compare_and_swap(initial().model_copy(update={"id": work.ids[0]}), None)
    work.run([Together(broken, journal)] * 2, turns=10)
    assert Rule.LOST in {each.rule for each in check(journal, log_of(broken, work.ids)).violations}


CONTRACT = """
class Test{name}(StoreContract):
    @pytest.fixture
    def opening(self):
        store = {name}()
        return lambda: store
"""


def test_the_contract_fails_each_of_them(tmp_path: Path) -> None:
    names = [broken.__name__ for broken, _, _ in BROKEN if broken is not ForgetsOnRestart]  # it is not restarted there
    imports = (
        f"import pytest\nfrom eventlog.testing.suite import StoreContract\nfrom tests.testing.broken_stores import {', '.join(names)}\n"
    )
    (tmp_path / "test_broken.py").write_text(imports + "".join(CONTRACT.format(name=name) for name in names))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rf", "-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert [name for name in names if f"::Test{name}::" not in run.stdout] == [], run.stdout
