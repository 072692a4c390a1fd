"""Each metric moves when the thing happens that it is named for, and not otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointError, CheckpointStore, Conflict, OutcomeUnknown, SchemaMismatch, StoreClosed, create_store, open_store
from eventlog.aio import AsyncCheckpointStore
from eventlog.metrics import registry
from eventlog.metrics.commit_tally import BYTES, SECONDS, CommitTally
from eventlog.recovery import AmbiguousResume, AsyncAgentRun, Decision, Decisions, IdentityMismatch, RetryInFlight
from tests.embedded.test_newer_schema import FINGERPRINT, add_foreign_event
from tests.metrics.counting import adds, value
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import AGENT, DEFINITION, MODEL, Outside, begun, resumed
from tests.store.samples import initial, stream
from tests.waiting import eventually


def test_a_commit_is_counted_timed_and_measured_once(store: CheckpointStore, kind: str) -> None:
    first, lost = initial(), initial()
    with (
        adds(3, "eventlog_appended_events_total", kind),
        adds(3, "eventlog_commit_seconds_count", kind),
        adds(3, "eventlog_checkpoint_size_bytes_count", kind),
    ):
        store.compare_and_swap(first, None)
        store.compare_and_swap(first, None)  # the same event again: it was committed before
        store.compare_and_swap_many([(first.next({"step": 1}), 0), (lost, 5)])
        store.delete(first.id, 1)


def test_its_size_is_that_of_its_event(store: CheckpointStore, kind: str) -> None:
    before = value("eventlog_checkpoint_size_bytes_sum", kind)
    large = initial({"data": list(range(5000))})
    store.compare_and_swap(large, None)
    stored = store.log.latest(large.id)
    assert stored is not None
    assert stored.value is not None
    assert before is not None
    assert value("eventlog_checkpoint_size_bytes_sum", kind) == before + len(stored.value)


def test_a_lost_proposal_is_a_conflict(store: CheckpointStore, kind: str) -> None:
    last = stream(store, 2)[-1]
    with adds(2, "eventlog_revision_conflicts_total", kind), adds(0, "eventlog_appended_events_total", kind):
        with pytest.raises(Conflict):
            store.compare_and_swap(last.next({}), 0)
        (outcome,) = store.compare_and_swap_many([(last.next({}), 0)])
        assert isinstance(outcome, Conflict)


def test_on_an_event_loop_the_same_is_counted(store: CheckpointStore, kind: str) -> None:
    first = initial()

    async def write() -> None:
        aio = AsyncCheckpointStore(store)
        assert aio.metrics is store.metrics
        await aio.compare_and_swap(first, None)
        await aio.compare_and_swap_many([(initial(), None), (initial(), None)])
        with pytest.raises(Conflict):
            await aio.compare_and_swap(first.model_copy(update={"event_id": initial().event_id}), None)

    with (
        adds(3, "eventlog_appended_events_total", kind),
        adds(3, "eventlog_commit_seconds_count", kind),
        adds(1, "eventlog_revision_conflicts_total", kind),
    ):
        asyncio.run(write())


def test_an_outcome_that_is_not_known_is_counted(store: CheckpointStore, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What leads to one takes a failing disk or broker (tests/faults); here the log says so."""
    lost = initial()
    unknown = OutcomeUnknown(lost.id, event_id=lost.event_id, reason="no answer")
    monkeypatch.setattr(store.log, "append", lambda proposals, *, timeout: [unknown for _ in proposals])  # noqa: ARG005
    name = "eventlog_unknown_outcomes_total"
    with adds(1, name, kind), adds(0, "eventlog_appended_events_total", kind), pytest.raises(OutcomeUnknown):
        store.compare_and_swap(lost, None)


@pytest.mark.parametrize("run", ["agent", "workflow"])
def test_a_resume_is_counted_by_how_it_ends(store: CheckpointStore, kind: str, tmp_path: Path, run: str) -> None:
    left = LeftRun(store, Outside(tmp_path / "outside"), "turn" if run == "agent" else "step")
    wrong: dict[str, Any] = {"definition_version" if run == "agent" else "version": 99}
    with (
        adds(4, "eventlog_resume_age_seconds_count", kind, run=run),
        adds(1, "eventlog_ambiguous_recoveries_total", kind, then="refused"),
        adds(1, "eventlog_ambiguous_recoveries_total", kind, then="repeated"),
        adds(1, "eventlog_schema_mismatches_total", kind, of="run"),
        adds(0, "eventlog_schema_mismatches_total", kind, of="event"),
    ):
        with pytest.raises(AmbiguousResume):
            left.resume()
        with pytest.raises(IdentityMismatch):
            left.resume(**wrong)
        left.work(left.resume(RetryInFlight(effects=left.effects)))
        assert left.resume().response == "done"


def test_the_age_of_a_resume_is_that_of_the_last_revision(store: CheckpointStore, kind: str) -> None:
    run = begun(store)
    before = value("eventlog_resume_age_seconds_sum", kind, run="agent")
    resumed(store, run.checkpoint_id)
    after = value("eventlog_resume_age_seconds_sum", kind, run="agent")
    assert before is not None
    assert after is not None
    assert 0 <= after - before < 60


def test_an_async_resume_is_counted(store: CheckpointStore, kind: str) -> None:
    async def work() -> None:
        aio = AsyncCheckpointStore(store)
        identity: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION}
        run = await AsyncAgentRun.start(aio, state={}, **identity)
        with contextlib.suppress(KeyError):
            async with run.turn():
                raise KeyError
        with pytest.raises(AmbiguousResume):
            await AsyncAgentRun.resume(aio, run.checkpoint_id, **identity)

    with adds(1, "eventlog_ambiguous_recoveries_total", kind, then="refused"):
        asyncio.run(work())


def test_a_decision_is_counted(store: CheckpointStore, kind: str, tmp_path: Path) -> None:
    for decision in Decision:
        left = LeftRun(store, Outside(tmp_path / "outside"), "turn")
        with adds(1, "eventlog_decisions_total", kind, choice=decision.value):
            Decisions(store).resolve(left.id, decision, actor="ann", reason="x")
            with contextlib.suppress(CheckpointError):
                Decisions(store).resolve(left.id, Decision.RETRY, actor="ann", reason=" ")


def test_an_event_of_a_schema_that_is_not_known_is_counted_where_it_is_met(tmp_path: Path) -> None:
    create_store(tmp_path)
    with open_store(tmp_path) as store:
        last = stream(store, 2)[-1]
        add_foreign_event(tmp_path, last, bytes.fromhex("c301" + FINGERPRINT) + b"who knows")
        with adds(3, "eventlog_schema_mismatches_total", "embedded", of="event"):
            for call in (
                lambda: store.load(last.id),
                lambda: store.load_revision(last.id),
                lambda: store.compare_and_swap(last.next({}), last.revision),
            ):
                with pytest.raises(SchemaMismatch):
                    call()


def test_a_quarantined_checkpoint_shows_as_long_as_its_store_is_open(tmp_path: Path) -> None:
    create_store(tmp_path)
    with open_store(tmp_path) as store:
        last = stream(store, 2)[-1]
        store.list()
        before = value("eventlog_quarantined_checkpoints", "embedded")
        assert before is not None
        add_foreign_event(tmp_path, last, b"\xc3\x01nonsense")
        store.list()
        assert store._watched.backlog().quarantined == 1
        assert value("eventlog_quarantined_checkpoints", "embedded") == before + 1
    assert (value("eventlog_quarantined_checkpoints", "embedded") or 0) == before


def test_the_lag_is_what_a_projection_has_yet_to_take(fresh_address: str, kind: str) -> None:
    with open_store(fresh_address) as store:
        stream(store, 3)
        store.list()
        assert store._watched.backlog().projection == 0
        if kind != "kafka":
            stream(store, 5)
            assert store._watched.backlog() == (5, None, 0)
            assert value("eventlog_tail_lag_offsets", kind) is None
        else:
            eventually(lambda: store._watched.backlog() == (0, 0, 0))
        eventually(lambda: value("eventlog_projection_lag_offsets", kind) == sum(backlog(store)))


def backlog(store: CheckpointStore) -> list[int]:
    """Of every open store over the same kind of log."""
    return [each.projection for each in store.metrics.backlogs() if each.projection is not None]


@pytest.mark.parametrize("kind", [pytest.param("kafka", marks=pytest.mark.broker)], indirect=True)
def test_a_partition_that_is_taken_over_is_counted(opening: Callable[..., CheckpointStore], kind: str) -> None:
    one, other = opening(), opening()
    first = initial()
    with adds(1, "eventlog_partition_takeovers_total", kind):
        one.compare_and_swap(first, None)
    with adds(1, "eventlog_partition_takeovers_total", kind):
        other.compare_and_swap(first.next({}), 0)


def test_a_store_that_was_closed_or_forgotten_is_no_longer_asked(tmp_path: Path) -> None:
    create_store(tmp_path)
    store = open_store(tmp_path)
    metrics = store.metrics
    assert store._watched.backlog() in metrics.backlogs()
    asked = len(metrics.backlogs())
    store.close()
    assert len(metrics.backlogs()) == asked - 1
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


def test_a_store_that_cannot_answer_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        create_store(tmp_path / name)
    with open_store(tmp_path / "one") as one, open_store(tmp_path / "other") as other:
        stream(other, 2)
        for each in (one, other):
            each.list()
        asked = len(one.metrics.backlogs())

        def failing() -> Any:
            raise StoreClosed("just now")

        monkeypatch.setattr(one._watched, "backlog", failing)
        assert len(one.metrics.backlogs()) == asked - 1


def test_labels_are_words_of_this_library(store: CheckpointStore, tmp_path: Path) -> None:
    left = LeftRun(store, Outside(tmp_path / "outside"), "turn")
    Decisions(store).resolve(left.id, Decision.MARK_FAILED, actor="ann", reason="x")
    bounded = {"log": {"embedded", "kafka"}, "of": {"event", "run"}, "then": {"refused", "repeated"}, "run": {"agent", "workflow"}}
    bounded["choice"] = {each.value for each in Decision}
    for metric in registry().collect():
        for sample in metric.samples:
            for label, text in sample.labels.items():
                assert label == "le" or text in bounded[label], sample


def test_commits_are_counted_in_the_bucket_that_they_belong_to() -> None:
    tally = CommitTally()
    for seconds, size in ((0.0001, 256), (0.00011, 257), (31.0, 1 << 30)):
        tally.add(seconds, size)
    times, sizes = tally.read()
    assert times.buckets[:2] == [("0.0001", 1.0), ("0.00025", 2.0)]
    assert times.buckets[-2:] == [("30.0", 2.0), ("+Inf", 3.0)]
    assert times.total == 3
    assert times.sum == pytest.approx(31.00021)
    assert (sizes.buckets[0], sizes.buckets[1], sizes.buckets[-1]) == (("256.0", 1.0), ("1024.0", 2.0), ("+Inf", 3.0))
    assert (len(times.buckets), len(sizes.buckets)) == (len(SECONDS) + 1, len(BYTES) + 1)


def test_no_commit_of_many_threads_is_forgotten() -> None:
    tally = CommitTally()

    def count() -> None:
        for _ in range(20_000):
            tally.add(0.001, 100)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    times, sizes = tally.read()
    assert (times.total, sizes.total, sizes.sum) == (80_000, 80_000, 8_000_000)
