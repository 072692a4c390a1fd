"""One list of boundaries: what the library writes, and where the tests kill, are both held to it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from eventlog.recovery.boundaries import Boundary
from tests.recovery import agent_kill_table, migration_kill_table, workflow_kill_table
from tests.recovery.agent_kill_table import ENDS
from tests.recovery.order_workflow import UNDISTURBED
from tests.recovery.victims import DECISION_KILLS

LIBRARY = Path(__file__).resolve().parents[2] / "eventlog" / "recovery"
WRITES = {"compare_and_swap_many", "import_revision", "delete"}


AGENT = agent_kill_table.all_kills()
WORKFLOW = workflow_kill_table.all_kills()
MIGRATION = migration_kill_table.all_kills()


@pytest.mark.parametrize("kills", [AGENT, WORKFLOW, DECISION_KILLS, MIGRATION], ids=["agent", "workflow", "decision", "migration"])
def test_the_kills_are_before_and_after_each_write(kills: list[str]) -> None:
    assert len(set(kills)) == len(kills)
    for write in writes(kills):
        assert {f"before {write}", f"after {write}"} <= set(kills)


def test_the_kills_are_at_every_boundary_and_in_every_call() -> None:
    assert {write.split()[0] for write in writes([*AGENT, *WORKFLOW, *DECISION_KILLS, *MIGRATION])} == set(Boundary)
    assert within(AGENT) == {"model", "hold_stock again", *ENDS}
    assert within(WORKFLOW) == set(UNDISTURBED)


def writes(kills: list[str]) -> set[str]:
    return {kill.split(" ", 1)[1] for kill in kills if not kill.startswith("in ")}


def within(kills: list[str]) -> set[str]:
    return {kill.removeprefix("in ") for kill in kills if kill.startswith("in ")}


def called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def test_the_library_writes_nowhere_but_at_its_boundaries() -> None:
    """Only the drivers call a store's writing method; each step that writes names a boundary; each boundary is written somewhere."""
    named: set[str] = set()
    for path in LIBRARY.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            function = called(node)
            assert function not in WRITES, path
            assert function not in {"compare_and_swap", "migrate_revision"} or path.name == "steps.py", path
            if function in {"Commit", "Advance", "_commit", "end_steps", "create_steps", "commit_each"}:
                arguments = [ast.unparse(each) for each in node.args]
                boundaries = [name for each in arguments for name in re.findall(r"\bBoundary\.(\w+)", each)]
                assert boundaries or "boundary" in arguments or "write.boundary" in arguments, (
                    f"{path.name}:{node.lineno} names no boundary"
                )
                named.update(boundaries)
    assert named == set(Boundary.__members__)
