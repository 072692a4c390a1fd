"""Three brokers, two copies of three before an answer: whoever is lost, commits go on, and nothing acknowledged is lost."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from eventlog import Checkpoint, CheckpointError, CheckpointId, OutcomeUnknown, RunId, Unavailable, open_store
from eventlog.testing import MemoryJournal, RecordedHistory, Recorder
from tests.faults.cluster.cluster import NODES, Cluster
from tests.faults.cluster.fault import cluster_faults, fault
from tests.faults.cluster.load import Load, judge
from tests.faults.cluster.load_process import LoadProcess
from tests.waiting import eventually

SEED = 3
BACK_SECONDS = 60.0


def test_leader_coordinator_and_controller_are_killed_in_turn_and_commits_go_on(
    cluster: Cluster, topic_name: str, address: str, tmp_path: Path
) -> None:
    """Two processes write, and take the partition from one another meanwhile."""
    sys.stdout.write(f"seed {SEED}\n")
    faults = cluster_faults(cluster, topic_name, SEED)
    load = Load(f"{address}?state={tmp_path / 'state-0'}")
    try:
        with LoadProcess(f"{address}?state={tmp_path / 'state-1'}", load.shared, tmp_path / "journal-1") as other:
            load.go_on()
            for name in ("kill the leader", "kill the coordinator", "kill the controller"):
                node = fault(faults, name).begin()
                first, every = load.resumed(time.monotonic(), seconds=BACK_SECONDS)
                load.go_on()
                fault(faults, name).end()
                back, again = load.resumed(time.monotonic(), seconds=BACK_SECONDS)
                sys.stdout.write(
                    f"{name} (node {node}): commits again after {first:.1f} s, of every writer after {every:.1f} s; "
                    f"once it was back, after {back:.1f} and {again:.1f} s\n"
                )
                cluster.heal(topic_name)
    finally:
        load.end()
    everybody = [*load.operations, *RecordedHistory([other.journal])]
    summary = judge(everybody, address, tmp_path / "judge")
    sys.stdout.write(f"{summary}\n")
    load.check_answers()
    summary.require(committed=100, conflicts=10, sessions=2)


def test_without_enough_copies_nothing_is_acknowledged_and_the_caller_learns_it_in_time(
    cluster: Cluster, topic_name: str, address: str, tmp_path: Path
) -> None:
    """min.insync.replicas is three here, so that one broker that hangs is one too few while all others work."""
    cluster.set_topic(topic_name, min_insync_replicas="3")
    journal = MemoryJournal()
    with Recorder(open_store(f"{address}?state={tmp_path / 'state'}"), journal) as store:
        current = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.copies", 1, {})
        store.compare_and_swap(current, None)
        follower = next(node for node in cluster.followers(topic_name) if node != cluster.coordinator(f"{topic_name}-writer-0"))
        cluster.brokers[follower].pause()
        following = current.next({})
        started = time.monotonic()
        refused: CheckpointError | None = None
        try:
            store.compare_and_swap(following, current.revision, timeout=3)
        except (OutcomeUnknown, Unavailable) as error:
            refused = error
        waited = time.monotonic() - started
        assert refused is not None, "acknowledged with a copy too few"
        assert waited < 6, f"the caller waited {waited:.1f} s for a time-out of 3 s"
        eventually(lambda: len(cluster.in_sync(topic_name)) == len(NODES) - 1)
        try:
            store.compare_and_swap(following, current.revision, timeout=3)
            raise AssertionError("acknowledged with a copy too few")
        except (OutcomeUnknown, Unavailable):
            cluster.brokers[follower].resume()
        back = time.monotonic()
        store.compare_and_swap(following, current.revision, timeout=60)
        sys.stdout.write(f"told after {waited:.1f} s; committed {time.monotonic() - back:.1f} s after the copy was back\n")
    summary = judge(journal, address, tmp_path / "judge")
    sys.stdout.write(f"{summary}\n")
    assert summary.revisions == 2
    summary.require(unknown=1)


def test_when_two_of_three_hang_nobody_is_told_anything_false(cluster: Cluster, topic_name: str, address: str, tmp_path: Path) -> None:
    """Neither the controllers nor the copies have a majority."""
    load = Load(f"{address}?state={tmp_path / 'state'}")
    try:
        load.go_on()
        hanging = cluster.followers(topic_name)
        for node in hanging:
            cluster.brokers[node].pause()
        paused, done = time.monotonic(), load.commits
        eventually(lambda: time.monotonic() > paused + 7)
        meanwhile = load.commits - done
        for node in hanging:
            cluster.brokers[node].resume()
        first, every = load.resumed(time.monotonic(), seconds=BACK_SECONDS)
        sys.stdout.write(
            f"{meanwhile} commits without a majority; afterwards the first in {first:.1f} s, of every writer in {every:.1f} s\n"
        )
        load.go_on()
    finally:
        load.end()
    summary = judge(load.operations, address, tmp_path / "judge")
    sys.stdout.write(f"{summary}\n")
    assert meanwhile <= 2 * len(load.threads), "committed on one copy"
    load.check_answers()
