"""A broker that is killed, frozen or stopped under load, and comes back: nothing acknowledged is lost, and no answer is false."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from eventlog import Checkpoint, CheckpointId, OutcomeUnknown, RunId, Unavailable, create_store, open_store
from tests.conftest import OwnBroker
from tests.faults.cluster.load import Load, judge
from tests.waiting import eventually

BACK_SECONDS = 30.0


def test_a_broker_killed_three_times_under_load_loses_nothing(own_broker: OwnBroker, tmp_path: Path) -> None:
    """Killed three times, stopped in good order once, frozen for less and for more than the client's time-outs."""
    broker = own_broker()
    address = f"kafka://{broker.bootstrap}/orders"
    create_store(address, partitions=2)

    def frozen(seconds: float) -> None:
        broker.pause()
        until = time.monotonic() + seconds
        eventually(lambda: time.monotonic() > until)

    faults: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        *[("killed", broker.kill, broker.up)] * 3,
        ("stopped", broker.down, broker.up),
        ("frozen for 1 s", lambda: frozen(1), broker.resume),
        ("frozen for 8 s", lambda: frozen(8), broker.resume),
    ]
    load = Load(f"{address}?state={tmp_path / 'state'}")
    try:
        for name, strike, mend in faults:
            load.go_on()
            strike()
            mend()
            first, every = load.resumed(time.monotonic(), seconds=BACK_SECONDS)
            sys.stdout.write(f"{name}: commits again {first:.1f} s after the broker was back, of every writer {every:.1f} s\n")
        load.go_on()
    finally:
        load.end()
    summary = judge(load.operations, address, tmp_path / "judge")
    sys.stdout.write(f"{summary}\n")
    load.check_answers()
    summary.require(committed=20 * (len(faults) + 1), conflicts=10)


def test_a_broker_that_hangs_makes_nobody_wait_for_ever(own_broker: OwnBroker, tmp_path: Path) -> None:
    broker = own_broker(config={"broker.session.timeout.ms": "60000"})
    address = f"kafka://{broker.bootstrap}/orders"
    create_store(address, partitions=1)
    with open_store(f"{address}?state={tmp_path}") as store:
        checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.hang", 1, {})
        store.compare_and_swap(checkpoint, None)
        following = checkpoint.next({"step": 1})
        broker.pause()
        started = time.monotonic()
        try:
            store.compare_and_swap(following, 0, timeout=2)
            raise AssertionError("a broker that hangs cannot have committed")
        except (OutcomeUnknown, Unavailable) as error:
            waited = time.monotonic() - started
            assert waited < 8, f"the caller waited {waited:.1f} s for a time-out of 2 s"
            undecided = isinstance(error, OutcomeUnknown)
        broker.resume()
        receipt = store.resolve(following)
        if not undecided:
            assert receipt is None
        assert store.compare_and_swap(following, 0).duplicate == (receipt is not None)
        assert store.load(checkpoint.id).payload == {"step": 1}
