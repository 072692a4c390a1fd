"""The request that ends a transaction, or its answer, is lost or late: what callers are told is what the log says, each time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointId, RunId, open_store
from eventlog.testing import MemoryJournal, Recorder
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.load import judge
from tests.faults.cluster.proxy import KafkaProxy
from tests.faults.cluster.rules import Api, Fate, Rule, Way
from tests.waiting import eventually


class Stream:
    """One checkpoint, advanced by one caller, and the proxies between it and its partition."""

    def __init__(self, cluster: Cluster, topic: str, store: Recorder) -> None:
        self.store = store
        self.current = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.end", 1, {})
        store.compare_and_swap(self.current, None)
        # Behind the first commit: until then a broker that an earlier test has started again may still take its partitions back.
        self.coordinator: KafkaProxy = cluster.proxies[cluster.coordinator(f"{topic}-writer-0")]
        self.leader: KafkaProxy = cluster.proxies[cluster.leader(topic)]

    def advance(self) -> bool:
        """Commits one more revision; whether its receipt is that of a retry."""
        following = self.current.next({})
        receipt = self.store.compare_and_swap(following, self.current.revision)
        assert receipt.revision == following.revision
        self.current = following
        return bool(receipt.duplicate)

    @property
    def takeovers(self) -> int:
        return int(self.store.store.log.ownership.takeovers)


@pytest.fixture
def stream(cluster: Cluster, topic_name: str, address: str, tmp_path: Path) -> Iterator[Stream]:
    journal = MemoryJournal()
    with Recorder(open_store(f"{address}?state={tmp_path / 'state'}", timeout=60), journal) as store:
        made = Stream(cluster, topic_name, store)
        yield made
        for _ in range(3):
            made.advance()
        assert store.load(made.current.id) == made.current
    summary = judge(journal, address, tmp_path / "judge")
    sys.stdout.write(f"take-overs {made.takeovers}; {summary}\n")
    assert summary.committed == summary.revisions == made.current.revision + 1


@pytest.mark.parametrize(
    ("way", "fate"), [(Way.ANSWERS, Fate.CUT), (Way.REQUESTS, Fate.CUT), (Way.ANSWERS, Fate.STALL), (Way.REQUESTS, Fate.STALL)]
)
def test_the_end_of_a_transaction_that_is_lost_on_its_way_is_settled(stream: Stream, way: Way, fate: Fate) -> None:
    """CUT: the client sees its connection break and asks again. STALL: it sees nothing until its time-out, and the request of the one
    that gave up arrives when another transaction has been made."""
    rule = stream.coordinator.add(Rule(way, Api.END_TXN, fate, skip=1))
    for _ in range(3):
        stream.advance()
    stream.coordinator.release()
    assert rule.hits == 1


def test_a_caller_is_answered_by_the_tail_although_the_answer_to_the_end_never_comes(stream: Stream) -> None:
    before = stream.takeovers
    rule = stream.coordinator.add(Rule(Way.ANSWERS, Api.END_TXN, Fate.STALL))
    stream.advance()
    assert rule.hits == 1
    assert stream.takeovers == before, "the caller had to wait until the partition was taken over"


_IN_THE_NEXT = [(Way.REQUESTS, Api.ADD_PARTITIONS_TO_TXN), (Way.REQUESTS, Api.PRODUCE), (Way.ANSWERS, Api.PRODUCE)]


@pytest.mark.parametrize(("way", "when"), _IN_THE_NEXT)
def test_a_late_end_of_a_transaction_hits_the_next_one_and_no_answer_is_false(stream: Stream, way: Way, when: Api) -> None:
    """KAFKA-17754. The client asked twice, since its connection broke, and was answered once; the other request arrives within the
    next transaction of the same producer: before its partition is known, before its record is written, or before it is acknowledged."""
    late = stream.coordinator.add(Rule(Way.REQUESTS, Api.END_TXN, Fate.LATE))
    stream.advance()
    assert late.hits == 1
    proxy = stream.leader if when is Api.PRODUCE else stream.coordinator
    hit = proxy.add(Rule(way, when, Fate.PASS, then=stream.coordinator.released))
    stream.advance()
    eventually(lambda: hit.hits == 1)
    for _ in range(3):
        stream.advance()
