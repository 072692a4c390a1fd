"""The list of boundaries is the code's: each is passed, in the stated order, and nothing but the list is."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

import eventlog
from eventlog import CheckpointStore
from eventlog.kafka.boundaries import Boundary, listening
from tests.faults.kafka.points import IN_FLIGHT, KILLS, STOPS
from tests.kafka_log.conftest import address, opening, store
from tests.kafka_log.samples import initial

__all__ = ["address", "opening", "store"]

ORDER = list(Boundary)


def _calls() -> list[tuple[str, ast.Call]]:
    found = []
    for path in sorted(Path(eventlog.__file__).parent.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        if not any(isinstance(node, ast.ImportFrom) and node.module == "eventlog.kafka.boundaries" for node in nodes):
            continue  # an erasure has steps of its own
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "passed":
                found.append((f"{path.name}:{node.lineno}", node))
    return found


def test_every_boundary_stands_in_the_code_once_and_by_its_name() -> None:
    named = [ast.unparse(call.args[0]) for _, call in _calls()]
    assert sorted(named) == sorted(f"Boundary.{each.name}" for each in Boundary), [place for place, _ in _calls()]


def test_nothing_in_the_product_listens() -> None:
    for path in Path(eventlog.__file__).parent.rglob("*.py"):
        if path.name != "boundaries.py":
            assert "listening" not in {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}, path


def test_every_boundary_is_a_point_to_kill_and_to_stop_at() -> None:
    assert {point.boundary for point in KILLS} == {point.boundary for point in STOPS} == set(IN_FLIGHT) == set(Boundary)
    assert len(set(KILLS)) == len(KILLS)


@pytest.mark.usefixtures("broker")
def test_a_take_over_and_a_commit_pass_every_boundary_in_the_stated_order(store: CheckpointStore) -> None:
    passed: list[tuple[Boundary, int]] = []
    with listening(lambda boundary: passed.append((boundary, threading.get_ident()))):
        store.compare_and_swap(initial(), None)
        store.catalog.sql("SELECT count(*) FROM checkpoint_history")  # waits for the projection
    assert [boundary for boundary, _ in passed if boundary not in _SIDE] == [each for each in ORDER if each not in _SIDE]
    for thread in {thread for _, thread in passed}:
        inside = [ORDER.index(boundary) for boundary, each in passed if each == thread]
        assert inside == sorted(inside)
    place = {boundary: index for index, (boundary, _) in enumerate(passed)}
    assert len(place) == len(passed) == len(ORDER)
    for earlier, later in _ACROSS_THREADS:
        assert place[earlier] < place[later]


# Threads of their own: the client's, the tail's, the projection's. Each has its place only after and before certain others.
_SIDE = {Boundary.ACKNOWLEDGED, Boundary.COMMIT_ANSWERED, Boundary.TAIL_READ, Boundary.PROJECTING, Boundary.PROJECTED}
_ACROSS_THREADS = [
    (Boundary.BEGUN, Boundary.ACKNOWLEDGED),
    (Boundary.ACKNOWLEDGED, Boundary.COMMIT_ANSWERED),
    (Boundary.ACKNOWLEDGED, Boundary.TAIL_READ),
    (Boundary.TAIL_READ, Boundary.TAIL_SEEN),
    (Boundary.TAIL_READ, Boundary.PROJECTING),
]


def test_there_is_one_listener_at_a_time() -> None:
    with listening(lambda _: None), pytest.raises(RuntimeError), listening(lambda _: None):
        pass
