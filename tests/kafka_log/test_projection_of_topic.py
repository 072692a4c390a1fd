"""The projection of a topic: disposable, resumed, rebuilt while it is used, and the only place that has all history."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from eventlog import ConfigurationError, HistoryRemoved, Position, Revision, create_store, open_store
from eventlog.address import KafkaAddress
from eventlog.kafka.log import KafkaLog
from eventlog.kafka.topic import create_topic
from tests.conftest import OwnBroker
from tests.kafka_log.conftest import OpenStore
from tests.kafka_log.samples import initial
from tests.waiting import eventually

EVERYTHING = 'SELECT * EXCLUDE (recorded_at) FROM checkpoint_history ORDER BY partition, "offset"'


def test_a_store_goes_on_where_its_projection_ended(opening: OpenStore) -> None:
    with opening("kept") as store:
        checkpoint = initial()
        store.compare_and_swap(checkpoint, None)
        before = store.catalog.sql(EVERYTHING).rows
    with opening("kept") as store:
        assert store.catalog.sql(EVERYTHING).rows == before
        store.compare_and_swap(checkpoint.next({"after": "restart"}), 0)
        assert store.load(checkpoint.id).payload == {"after": "restart"}


def test_a_rebuilt_projection_gives_the_same_answers_and_loads_go_on_meanwhile(opening: OpenStore) -> None:
    store = opening()
    checkpoints = [initial({"number": number}) for number in range(50)]
    store.compare_and_swap_many([(each, None) for each in checkpoints])
    store.compare_and_swap_many([(each.next({"number": -1}), 0) for each in checkpoints])
    before = store.catalog.sql(EVERYTHING).rows
    failures: list[BaseException] = []
    loads = 0
    stop = threading.Event()

    def load() -> None:
        nonlocal loads
        try:
            while not stop.is_set():
                assert store.load(checkpoints[loads % 50].id).revision >= 1
                loads += 1
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    loader = threading.Thread(target=load)
    loader.start()
    eventually(lambda: loads > 5)
    store.catalog.rebuild()
    after_rebuild = loads
    eventually(lambda: loads > after_rebuild + 5 or failures)
    stop.set()
    loader.join()
    assert failures == []
    assert store.catalog.sql(EVERYTHING).rows == before
    store.compare_and_swap(store.load(checkpoints[0].id).next({}), 1)


def test_a_growing_history_is_settled_while_nobody_writes_and_stays_exact(opening: OpenStore) -> None:
    store = opening("grown")
    said = random.Random(5).randbytes(60_000).hex()
    checkpoint = initial({"said": said[:2_000]})
    store.compare_and_swap(checkpoint, None)
    for revision in range(1, 40):
        checkpoint = checkpoint.next({"said": said[: 2_000 * (revision + 1)]})
        store.compare_and_swap(checkpoint, revision - 1)
    before = list(store.history(checkpoint.id))
    projection = store.catalog.projection()
    eventually(lambda: projection.unsettled_bytes == 0)
    kept = "SELECT count(base), sum(octet_length(event)) FILTER (base IS NOT NULL) < 38 * 600 FROM superseded"
    assert projection.query(kept) == [(38, True)]  # all but the last of a block, and the head
    assert list(store.history(checkpoint.id)) == before
    assert [each.checkpoint.payload["said"] for each in before if isinstance(each, Revision)][7] == said[:16_000]
    assert [each.hash for each in store.subscribe(Position(), idle_timeout=0.0)] == [
        each.hash for each in before if isinstance(each, Revision)
    ]
    store.close()
    store = opening("grown")
    assert list(store.history(checkpoint.id)) == before
    assert store.load(checkpoint.id, revision=3).payload == {"said": said[:8_000]}


def test_a_second_process_cannot_have_the_same_projection(opening: OpenStore, address: str, tmp_path: Path) -> None:
    opening("mine")
    program = "import sys; from eventlog import open_store, Busy\ntry: open_store(sys.argv[1])\nexcept Busy as e: print(e)"
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, f"{address}?state={tmp_path / 'mine'}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "in use by process" in told.stdout


def test_a_store_killed_before_its_projection_was_written_has_lost_nothing(opening: OpenStore, address: str, tmp_path: Path) -> None:
    program = """
import os, sys
from eventlog import Checkpoint, CheckpointId, RunId, open_store
store = open_store(sys.argv[1])
for number in range(20):
    each = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.killed", 1, {"number": number})
    store.compare_and_swap(each, None)
    print(each.id, flush=True)
os.kill(os.getpid(), 9)
"""
    killed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, f"{address}?state={tmp_path / 'shared'}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -9
    acknowledged = killed.stdout.split()
    assert len(acknowledged) == 20
    store = opening("shared")
    assert [store.load(each).payload["number"] for each in acknowledged] == list(range(20))


def test_a_projection_of_another_topic_is_refused(broker: str, topic: str, opening: OpenStore, tmp_path: Path) -> None:
    opening("first").close()
    create_topic(KafkaAddress((broker,), f"{topic}-other"), partitions=2)
    with pytest.raises(ConfigurationError, match="has store_id"):
        open_store(f"kafka://{broker}/{topic}-other?state={tmp_path / 'first'}")


def test_what_compaction_removed_is_a_gap_and_a_rebuild_does_not_give_it_up_silently(own_broker: OwnBroker, tmp_path: Path) -> None:
    broker = own_broker(config={"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"})
    address = f"kafka://{broker.bootstrap}/compacted?hold_ms=1000&state="
    create_store(f"{address}{tmp_path / 'state'}", partitions=1)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.alter_configs([ConfigResource("TOPIC", "compacted", configs={"segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"})])
    admin.close()
    with open_store(f"{address}{tmp_path / 'state'}") as store:
        log = store.log
        assert isinstance(log, KafkaLog)
        checkpoint = initial({"revision": 0})
        store.compare_and_swap(checkpoint, None)
        for revision in range(1, 6):
            checkpoint = checkpoint.next({"revision": revision})
            store.compare_and_swap(checkpoint, revision - 1)
        other = initial()
        store.compare_and_swap(other, None)

        def compacted() -> bool:
            nonlocal other
            following = other.next({})  # a segment is rolled by what is appended to it
            store.compare_and_swap(following, other.revision)
            other = following
            kept = [record for records, _ in log.read(Position()) for record in records if record.key == checkpoint.id.encode()]
            return len(kept) == 1

        eventually(compacted, seconds=60)
        assert [each.checkpoint.revision for each in store.history(checkpoint.id) if isinstance(each, Revision)] == list(range(6))
        with pytest.raises(HistoryRemoved, match="only this projection holds"):
            store.catalog.rebuild()
        assert store.load(checkpoint.id, revision=2).payload == {"revision": 2}

    with open_store(f"{address}{tmp_path / 'fresh'}") as store:
        found = list(store.history(checkpoint.id))
        assert not isinstance(found[0], Revision)
        assert (found[0].first_revision, found[0].last_revision, found[0].reason) == (0, 4, "compaction")
        assert [each.checkpoint.revision for each in found[1:] if isinstance(each, Revision)] == [5]
        with pytest.raises(HistoryRemoved, match="compaction"):
            store.load(checkpoint.id, revision=2)
        following = checkpoint.next({"revision": 6})
        store.compare_and_swap(following, 5)
        assert store.load(checkpoint.id).payload == {"revision": 6}
