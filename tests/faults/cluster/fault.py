"""Faults by name, each with a begin and an end: for a test that wants a certain one, and for chaos, which takes any."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.cluster.cluster import NODES, Cluster
from tests.faults.cluster.rules import Fate, Rule, Way


@dataclass
class Fault:
    """Something that goes wrong between `begin()` and `end()`. Who is hit is decided in `begin`: it differs from time to time."""

    name: str
    strike: Callable[[], int]  # returns the node that it struck
    mend: Callable[[int], None]
    node: int | None = None

    def begin(self) -> int:
        self.node = self.strike()
        return self.node

    def end(self) -> None:
        """Undoes it; when it returns, the machinery is back, clients may not be. Harmless when it was not begun."""
        node, self.node = self.node, None
        if node is not None:
            self.mend(node)


def cluster_faults(cluster: Cluster, topic: str, seed: int) -> list[Fault]:
    """Everything that can happen to a cluster, one at a time, without loss of its majority."""
    chosen = random.Random(seed)

    def leader() -> int:
        return cluster.leader(topic)

    def coordinator() -> int:
        return cluster.coordinator(f"{topic}-writer-0")

    def anyone() -> int:
        return chosen.choice(NODES)

    def on_broker(name: str, whom: Callable[[], int], strike: Callable[[int], None], mend: Callable[[int], None]) -> Fault:
        def begin() -> int:
            node = whom()
            strike(node)
            return node

        return Fault(name, begin, mend)

    def start(node: int) -> None:
        cluster.brokers[node].up(timeout=120)

    def restore(node: int) -> None:
        cluster.proxies[node].restore()

    def reset_at_random(node: int) -> None:
        for way in Way:
            cluster.proxies[node].add(Rule(way, None, Fate.CUT, times=None, chance=0.02, random=chosen))

    return [
        on_broker("kill the leader", leader, lambda node: cluster.brokers[node].kill(), start),
        on_broker("kill the coordinator", coordinator, lambda node: cluster.brokers[node].kill(), start),
        on_broker("kill the controller", cluster.controller, lambda node: cluster.brokers[node].kill(), start),
        on_broker("stop a broker in good order", anyone, lambda node: cluster.brokers[node].down(), start),
        on_broker("freeze the leader", leader, lambda node: cluster.brokers[node].pause(), lambda node: cluster.brokers[node].resume()),
        on_broker("freeze a broker", anyone, lambda node: cluster.brokers[node].pause(), lambda node: cluster.brokers[node].resume()),
        on_broker("cut off the coordinator", coordinator, lambda node: cluster.proxies[node].cut(), restore),
        on_broker("cut off the leader", leader, lambda node: cluster.proxies[node].cut(), restore),
        on_broker("lose what is sent to the leader", leader, lambda node: cluster.proxies[node].stall(Way.REQUESTS), restore),
        on_broker("lose what the leader sends", leader, lambda node: cluster.proxies[node].stall(Way.ANSWERS), restore),
        on_broker("lose what the coordinator sends", coordinator, lambda node: cluster.proxies[node].stall(Way.ANSWERS), restore),
        on_broker("swallow everything at the leader", leader, lambda node: cluster.proxies[node].stall(*Way), restore),
        on_broker("slow down a broker", anyone, lambda node: cluster.proxies[node].delay(0.2), restore),
        on_broker("reset connections at random", anyone, reset_at_random, restore),
    ]


def fault(faults: list[Fault], name: str) -> Fault:
    """The one of that name."""
    return next(each for each in faults if each.name == name)
