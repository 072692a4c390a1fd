"""Clients that are cut off from one broker of three, in both directions or in one, or have a bad line: under load, with a history."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster.cluster import NODES, Cluster
from tests.faults.cluster.fault import cluster_faults, fault
from tests.faults.cluster.load import TIMEOUT, Load, judge
from tests.faults.cluster.rules import Fate, Rule, Way
from tests.waiting import eventually

SEED = 4
SHORT = 2.0  # seconds: within every time-out of the client
LONG = 7.0  # beyond its time-out for requests
BACK_SECONDS = 20.0  # bound for the first commit of every writer after a fault; the goal is 3 s on a machine that does nothing else


@pytest.fixture
def load(cluster: Cluster, topic_name: str, address: str, tmp_path: Path) -> Iterator[Load]:
    """Is going on when the test begins; afterwards everybody has been answered in time, and the history is right."""
    sys.stdout.write(f"seed {SEED}\n")
    running = Load(f"{address}?state={tmp_path / 'state'}")
    try:
        running.go_on()
        yield running
        running.go_on()
    finally:
        running.end()
    cluster.heal(topic_name)
    summary = judge(running.operations, address, tmp_path / "judge")
    sys.stdout.write(f"{summary}\n")
    running.check_answers()
    summary.require(committed=40, conflicts=1, reads=40)


def last(load: Load, seconds: float) -> int:
    """Lets a fault last; the commits meanwhile."""
    done, until = load.commits, time.monotonic() + seconds
    eventually(lambda: time.monotonic() > until or load.unexpected)
    assert load.unexpected == []
    return load.commits - done


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("cut off the coordinator", SHORT),
        ("cut off the leader", LONG),
        ("lose what is sent to the leader", LONG),
        ("lose what the leader sends", SHORT),
        ("lose what the coordinator sends", LONG),
        ("swallow everything at the leader", SHORT),
    ],
)
def test_cut_off_from_what_it_needs_nothing_is_committed_and_soon_after_everything(
    cluster: Cluster, topic_name: str, load: Load, name: str, seconds: float
) -> None:
    cut = fault(cluster_faults(cluster, topic_name, SEED), name)
    node = cut.begin()
    began = load.commits
    last(load, seconds / 2)
    stuck = last(load, seconds / 2)
    passed = cluster.proxies[node].seen.total()
    cut.end()
    first, every = load.resumed(time.monotonic(), seconds=BACK_SECONDS)
    sys.stdout.write(
        f"{name}, {seconds:.0f} s: {stuck} commits; after its end the first in {first:.1f} s, of every writer in {every:.1f} s\n"
    )
    assert stuck == 0, "it was not cut off"
    assert passed > 0
    assert load.commits > began


def test_two_hundred_milliseconds_each_way_are_only_slow(cluster: Cluster, load: Load) -> None:
    for proxy in cluster.proxies.values():
        proxy.delay(0.2)
    began = time.monotonic()
    load.go_on(least=8)
    sys.stdout.write(f"eight commits in {time.monotonic() - began:.1f} s\n")
    for proxy in cluster.proxies.values():
        proxy.delay(0)
    assert load.slowest_write < TIMEOUT


def test_connections_that_break_at_random_cost_time_only(cluster: Cluster, load: Load) -> None:
    rules = [cluster.proxies[node].add(Rule(way, None, Fate.CUT, times=None, chance=0.02)) for node in NODES for way in Way]
    commits = 0
    until = time.monotonic() + 60
    while sum(rule.hits for rule in rules) < 10 and time.monotonic() < until:
        commits += last(load, 1)
    broken = sum(rule.hits for rule in rules)
    for proxy in cluster.proxies.values():
        proxy.restore()
    first, every = load.resumed(time.monotonic(), seconds=BACK_SECONDS)
    sys.stdout.write(f"{broken} connections broken, {commits} commits meanwhile; afterwards {first:.1f} to {every:.1f} s\n")
    assert broken >= 10
    assert commits > 0
