"""What the documents say is true: examples run, named tests exist, the house stands as it is drawn."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TESTS = {
    name
    for path in [*(REPOSITORY / "tests").rglob("test_*.py"), *(REPOSITORY / "eventlog" / "testing" / "suite").glob("*.py")]
    for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
}
CHECKER = tuple(f"testing/{name}" for name in ("history", "stream", "sessions", "tally", "verdict", "checker"))
PURE = (
    "merkle",
    "no_payload",
    "privacy/envelope",
    "retention/policy",
    "holds/targets",
    "position",
    "ids",
    "payload",
    "event",
    "codec",
    "rules",
    "errors",
    "checkpoint",
    "retry",
    "revision",
    "privacy/principals",
    *CHECKER,
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 200


def test_the_readmes_program_runs(tmp_path: Path) -> None:
    (program,) = blocks("python")
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_readmes_commands_run(tmp_path: Path) -> None:
    (session,) = blocks("console")
    commands = [line.removeprefix("$ ") for line in session.splitlines() if line.startswith("$ ")]
    assert len(commands) > 10
    script = "\n".join(["set -eu", *(f"echo {shlex.quote('$ ' + command)}\n{command}" for command in commands)])
    run = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert '"phase": "done"' in run.stdout
    assert "acme.order" in run.stdout


def environment() -> dict[str, str]:
    """This checkout, with the command `eventlog` of the environment that runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "PATH": f"{COMMAND_FOLDER}:{Path(sys.executable).parent}:{kept['PATH']}"}


COMMAND_FOLDER = REPOSITORY / "tests" / "docs" / "bin"


DOCUMENTS = ("guarantees", "cases", "decisions", "archive", "testing-a-store", "privacy", "kafka-security", "retention", "erasure")


@pytest.mark.parametrize("document", [f"docs/{name}.md" for name in DOCUMENTS])
def test_every_test_that_a_document_names_exists(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    missing = {name for name in re.findall(r"`(test_\w+)`", text) if name not in TESTS}
    assert missing == set()
    files = set(re.findall(r"`((?:tests|docs|eventlog|schemas|projections)/[\w./]+)`", text))
    assert {path for path in files if not (REPOSITORY / path).exists()} == set()


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names.add(node.module)
    return names


def test_an_import_only_ever_points_down() -> None:
    for path in (REPOSITORY / "projections").rglob("*.py"):
        floors = {name.split(".")[0] for name in imported(path)}
        assert floors.isdisjoint({"eventlog", "kafka", "fastavro", "sqlite3", "pydantic"}), path


@pytest.mark.parametrize("module", PURE)
def test_the_pure_core_imports_no_client_library(module: str) -> None:
    names = imported(REPOSITORY / "eventlog" / f"{module}.py")
    assert {name.split(".")[0] for name in names}.isdisjoint({"kafka", "duckdb", "sqlite3", "projections", "asyncio", "socket"}), names


@pytest.mark.parametrize("module", ["rules", "privacy/principals", *CHECKER])
def test_rules_have_no_clock_and_no_chance(module: str) -> None:
    assert imported(REPOSITORY / "eventlog" / f"{module}.py").isdisjoint({"time", "random", "datetime", "os", "secrets", "pathlib"})


def test_only_the_suite_needs_pytest() -> None:
    needing = {path.parent.name for path in (REPOSITORY / "eventlog").rglob("*.py") if "pytest" in imported(path)}
    assert needing == {"suite"}


def test_a_file_reads_in_a_minute() -> None:
    long = {
        str(path.relative_to(REPOSITORY)): lines
        for floor in ("eventlog", "projections", "tests", "benchmarks")
        for path in (REPOSITORY / floor).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}, "where is the seam?"


def test_a_foreign_package_of_the_same_name_is_refused_at_once_naming_its_file(tmp_path: Path) -> None:
    (tmp_path / "projections").mkdir()
    (tmp_path / "projections" / "__init__.py").write_text("")
    run = subprocess.run(
        [sys.executable, "-c", "import eventlog"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": f"{tmp_path}:{REPOSITORY}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode != 0
    assert str(tmp_path / "projections" / "__init__.py") in run.stderr
