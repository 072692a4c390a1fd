"""A workflow that waits: it is nobody's, is woken once, and goes by the log's clock."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, InvalidRequest
from eventlog.recovery import NotWaiting, WaitForSignal, WaitForTimer, send_signal
from tests.recovery.order_runs import PAST, again, begun
from tests.recovery.samples import phases
from tests.store.samples import nothing_written


def test_a_signal_from_another_process_wakes_the_run_once(store: CheckpointStore, opening: Any) -> None:
    layout = [WaitForSignal("ok"), "ship"]
    flow = begun(store, *layout)
    elsewhere = opening(actor="another process")
    with nothing_written(store), pytest.raises(NotWaiting, match="it is ready, and ok is next"):
        send_signal(elsewhere, flow.checkpoint_id, "ok", 1)
    assert flow.wait_for_signal("ok") is False
    with nothing_written(store):
        assert flow.wait_for_signal("ok") is False
    other = again(elsewhere, flow, *layout)
    other.signal("ok", {"by": "ann"}, signal_id="s-1")
    with nothing_written(store):
        send_signal(elsewhere, flow.checkpoint_id, "ok", {"by": "ann"}, signal_id="s-1")  # the same again: its answer may have been lost
        with pytest.raises(NotWaiting, match="woken before"):
            send_signal(elsewhere, flow.checkpoint_id, "ok", {"by": "bob"}, signal_id="s-2")
        with pytest.raises(NotWaiting, match="woken before"):
            other.signal("ok", {"by": "ann"})
        assert flow.wait_for_signal("ok") is True
    assert flow.outputs["ok"] == {"by": "signal", "value": {"by": "ann"}, "signal_id": "s-1"}
    with flow.step("ship") as step:
        step.commit(output=1)
    assert phases(store, flow.checkpoint_id) == ["ready", "waiting", "ready", "step_in_flight", "ready"]


def test_of_many_that_wake_a_run_one_does(store: CheckpointStore) -> None:
    flow = begun(store, WaitForSignal("ok"))
    flow.wait_for_signal("ok")
    outcomes = []

    def sends(number: int) -> None:
        try:
            send_signal(store, flow.checkpoint_id, "ok", number)
            outcomes.append(number)
        except NotWaiting:
            pass

    threads = [threading.Thread(target=sends, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert flow.wait_for_signal("ok")
    assert [flow.outputs["ok"]["value"]] == outcomes


def test_a_waiting_run_that_was_woken_and_taken_on_is_lost(store: CheckpointStore) -> None:
    layout = [WaitForSignal("ok"), "ship"]
    flow = begun(store, *layout)
    flow.wait_for_signal("ok")
    send_signal(store, flow.checkpoint_id, "ok", 1)
    again(store, flow, *layout).step("ship").__enter__()
    with nothing_written(store), pytest.raises(Conflict):
        flow.wait_for_signal("ok")


def test_a_timer_goes_by_the_logs_clock(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = begun(store, WaitForTimer("cool"))
    soon = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr("eventlog.checkpoint._now", lambda: soon + timedelta(hours=1))  # the writer's clock is far ahead
    assert flow.wait_for_timer("cool", until=soon) is False
    assert again(store, flow, WaitForTimer("cool")).wait_for_timer("cool", until=soon) is False
    with pytest.raises(InvalidRequest, match="time zone"):
        begun(store, WaitForTimer("cool")).wait_for_timer("cool", until=datetime(2020, 1, 1))


def test_a_signal_may_have_an_end(store: CheckpointStore) -> None:
    flow = begun(store, WaitForSignal("ok"))
    assert flow.wait_for_signal("ok", until=PAST) is True
    assert flow.outputs["ok"] == {"by": "timer"}
    with nothing_written(store), pytest.raises(NotWaiting):
        send_signal(store, flow.checkpoint_id, "ok", 1)
