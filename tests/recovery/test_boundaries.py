"""One list of boundaries: what the library writes, and where the tests kill, are both held to it."""

from __future__ import annotations

import ast
from pathlib import Path

from eventlog.recovery.boundaries import Boundary
from tests.recovery.agent_kill_table import ENDS, all_kills

LIBRARY = Path(__file__).resolve().parents[2] / "eventlog" / "recovery"
WRITES = {"compare_and_swap_many", "import_revision", "delete"}


def test_the_kills_are_before_and_after_every_boundary_and_in_every_call() -> None:
    kills = all_kills()
    assert len(set(kills)) == len(kills)
    writes = {kill.split(" ", 1)[1] for kill in kills if not kill.startswith("in ")}
    for write in writes:
        assert {f"before {write}", f"after {write}"} <= set(kills)
    assert {write.split()[0] for write in writes} == set(Boundary)
    assert {kill for kill in kills if kill.startswith("in ")} == {"in model", "in hold_stock again", *(f"in {tool}" for tool in ENDS)}


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
            assert function != "compare_and_swap" or path.name == "steps.py", path
            if function in {"Commit", "Advance", "_commit", "end_steps"}:
                arguments = [ast.unparse(each) for each in node.args]
                boundaries = [each.removeprefix("Boundary.") for each in arguments if each.startswith("Boundary.")]
                assert boundaries or "boundary" in arguments or "write.boundary" in arguments, (
                    f"{path.name}:{node.lineno} names no boundary"
                )
                named.update(boundaries)
    assert named == set(Boundary.__members__)
