"""The pages on recovery: their code runs, their payloads are as the schemas say, the example does what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.recovery import Refusal
from tests.docs.test_documents import REPOSITORY, environment, imported
from tests.recovery.schemas import FOLDER, conforms

RECOVERY = (REPOSITORY / "docs" / "recovery.md").read_text(encoding="utf-8")
PAYLOADS = (REPOSITORY / "docs" / "payloads.md").read_text(encoding="utf-8")
MIGRATIONS = (REPOSITORY / "docs" / "migrations.md").read_text(encoding="utf-8")
PURE = (
    "agent_phases",
    "boundaries",
    "carrying",
    "decided_runs",
    "decisions",
    "effect_phases",
    "fields",
    "identity",
    "migration_report",
    "migrations",
    "policy",
    "runifold",
    "runifold_agent",
    "runifold_fields",
    "runifold_workflow",
    "prospects",
    "settlement",
    "usage",
    "workflow_layout",
    "workflow_phases",
    "workflow_record",
)


def run(*arguments: str, folder: Path) -> str:
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_pages_programs_run(tmp_path: Path) -> None:
    (agent, workflow, decided) = re.findall(r"^```python\n(.*?)^```", RECOVERY, re.MULTILINE | re.DOTALL)
    run("-c", agent, folder=tmp_path)
    run("-c", workflow, folder=tmp_path)
    run("-c", decided, folder=tmp_path)


def test_the_programs_on_migrations_run(tmp_path: Path) -> None:
    for program in re.findall(r"^```python\n(.*?)^```", MIGRATIONS, re.MULTILINE | re.DOTALL):
        run("-c", program, folder=tmp_path)


def test_every_reason_to_refuse_a_migration_is_documented() -> None:
    (table,) = re.findall(r"^\| why \|.*?\n\n", MIGRATIONS, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(\w+)`", table.replace("`eventlog doctor`", ""))) == {each.value for each in Refusal}


def test_the_agents_program_runs_on_an_encrypted_store_too(tmp_path: Path) -> None:
    agent = re.findall(r"^```python\n(.*?)^```", RECOVERY, re.MULTILINE | re.DOTALL)[0]
    encrypted = 'import pathlib, eventlog\ncreate_store("orders", encryption=eventlog.KeyFile(path=pathlib.Path("key.json")))'
    assert 'create_store("orders")' in agent
    run("-c", agent.replace('create_store("orders")', encrypted), folder=tmp_path)
    assert b"charged" not in (tmp_path / "orders" / "log.sqlite3").read_bytes()


def test_the_tool_calling_agent_refunds_once(tmp_path: Path) -> None:
    said = run(str(REPOSITORY / "examples" / "tool_calling_agent.py"), str(tmp_path / "store"), folder=tmp_path).splitlines()
    assert said == [
        "turn 2: the power is cut",
        "refunds so far: [{'order': 4711, 'cents': 3900}]",
        "refused: turn 2 has been in flight; model completed, refund completed",
        "answer: I have refunded 39.00 EUR for the teapot.",
        "refunds: 1, usage: 1004 tokens",
    ]


def test_the_order_workflow_charges_once(tmp_path: Path) -> None:
    said = run(str(REPOSITORY / "examples" / "order_workflow.py"), str(tmp_path / "store"), folder=tmp_path).splitlines()
    assert said == [
        "waiting for approval; done: validate, fanout, quote",
        "ship: the power is cut; charged: [7]",
        "refused: step ship has been in flight; charge completed",
        "response: {'shipped': 7}, charged: [7]",
    ]


def test_two_workers_share_the_runs_and_one_takes_over_from_the_other(tmp_path: Path) -> None:
    said = run(str(REPOSITORY / "examples" / "shared_workflows.py"), str(tmp_path / "store"), folder=tmp_path).splitlines()
    assert said[-3:] == ["worker-1 ended with -9, worker-2 with 0", "completed: 6, claims: 7", "shipped: 6"]
    assert sorted(said[:-3]) == [
        "worker-2: order 1 is done, after claim 2",
        *(f"worker-2: order {number} is done" for number in range(2, 7)),
    ]


def test_the_documented_payloads_are_as_their_schemas_say() -> None:
    parts = re.split(r"^## `([\w.]+)` 1:.*$", PAYLOADS, flags=re.MULTILINE)[1:]
    documented = dict(zip(parts[::2], parts[1::2], strict=True))
    assert {f"{kind}.v1" for kind in documented} == {path.stem for path in FOLDER.glob("*.json")}
    for kind, text in documented.items():
        sample = re.sub(r'"[0-9a-f]{4}\.\.\."', f'"{"0" * 64}"', re.search(r"^    \{.*?^\n", text, re.MULTILINE | re.DOTALL)[0])  # type: ignore[index]
        conforms(f"{kind}.v1", json.loads(sample))
    for kind, count in {"eventlog.agent": 4, "eventlog.workflow": 7}.items():
        first = json.loads(re.search(r"^    \{.*?^\n", documented[kind], re.MULTILINE | re.DOTALL)[0])  # type: ignore[index]
        shown = re.findall(r"((?:^    .*\n)+)", documented[kind], re.MULTILINE)[1]
        phases = json.loads("[" + re.sub(r"\}\n    \{", "},{", shown) + "]")
        assert len({phase["state"] for phase in phases}) == count
        for phase in phases:
            conforms(f"{kind}.v1", {**first, "phase": phase})


@pytest.mark.parametrize("module", PURE)
def test_the_pure_part_does_no_io_and_has_no_clock(module: str) -> None:
    names = {name.split(".")[0] for name in imported(REPOSITORY / "eventlog" / "recovery" / f"{module}.py")}
    assert names.isdisjoint(
        {"kafka", "duckdb", "sqlite3", "projections", "asyncio", "socket", "time", "random", "os", "secrets", "threading"}
    )
