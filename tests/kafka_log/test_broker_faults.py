"""A broker that is stopped, killed and started again under load: nothing acknowledged is lost, and no answer is false."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from eventlog import Checkpoint, CheckpointError, Conflict, OutcomeUnknown, Revision, Unavailable, create_store, open_store
from tests.conftest import OwnBroker
from tests.kafka_log.samples import initial
from tests.waiting import eventually

WRITERS = 4


class Load:
    """Writers on streams of their own and on a shared one, and what they were told."""

    def __init__(self, address: str) -> None:
        self.store = open_store(address, timeout=25)
        self.committed: dict[str, tuple[str, int]] = {}
        self.refused: set[str] = set()
        self.unknown: set[str] = set()
        self.unexpected: list[BaseException] = []
        self.shared = initial({"shared": True})
        self.store.compare_and_swap(self.shared, None)
        self.ids = {self.shared.id}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        try:
            own = initial({"writer": number})
            self.ids.add(own.id)
            self._commit(own, None)
            while not self._stop.is_set():
                current = self.store.load(own.id)
                self._commit(current.next({"writer": number}), current.revision)
                shared = self.store.load(self.shared.id)
                self._commit(shared.next({"writer": number}), shared.revision)
        except Unavailable:
            self._write_again(number)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.unexpected.append(error)

    def _write_again(self, number: int) -> None:
        if not self._stop.is_set():
            self._write(number)

    def _commit(self, checkpoint: Checkpoint, expected: int | None) -> None:
        try:
            receipt = self.store.compare_and_swap(checkpoint, expected)
            self.committed[checkpoint.event_id] = (checkpoint.id, receipt.revision)
        except Conflict:
            self.refused.add(checkpoint.event_id)
        except OutcomeUnknown:
            self.unknown.add(checkpoint.event_id)
        except CheckpointError as error:
            if not isinstance(error, Unavailable):
                raise
            self.refused.add(checkpoint.event_id)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        assert self.unexpected == []
        in_log: dict[str, tuple[str, int]] = {}
        for checkpoint_id in self.ids:
            revisions = [each.checkpoint for each in self.store.history(checkpoint_id) if isinstance(each, Revision)]
            assert [each.revision for each in revisions] == list(range(len(revisions)))
            in_log.update({each.event_id: (each.id, each.revision) for each in revisions})
        missing = {event: place for event, place in self.committed.items() if in_log.get(event) != place}
        assert missing == {}, "acknowledged and not in the log"
        assert self.refused & set(in_log) == set(), "refused and in the log"
        for event in self.unknown:
            assert (self.store.resolve(event) is not None) == (event in in_log)


def test_a_broker_killed_three_times_under_load_loses_nothing(own_broker: OwnBroker, tmp_path: Path) -> None:
    broker = own_broker()
    address = f"kafka://{broker.bootstrap}/orders"
    create_store(address, partitions=2)
    load = Load(f"{address}?state={tmp_path}")
    try:
        for _ in range(3):
            done = len(load.committed)
            eventually(lambda done=done: len(load.committed) > done + 20 or load.unexpected)  # type: ignore[misc]
            broker.kill()
            broker.up()
        done = len(load.committed)
        started = time.monotonic()
        eventually(lambda: len(load.committed) > done + 20 or load.unexpected)
        sys.stdout.write(f"commits again {time.monotonic() - started:.1f} s after the broker was back; unknown {len(load.unknown)}\n")
        load.end()
        load.check()
    finally:
        load.end()
        load.store.close()


def test_a_broker_that_hangs_makes_nobody_wait_for_ever(own_broker: OwnBroker, tmp_path: Path) -> None:
    broker = own_broker(config={"broker.session.timeout.ms": "60000"})
    address = f"kafka://{broker.bootstrap}/orders"
    create_store(address, partitions=1)
    with open_store(f"{address}?state={tmp_path}") as store:
        checkpoint = initial()
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
