"""docs/testing-a-store.md as written: its examples run, and what a store lacks is said loudly."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from eventlog.testing import Rule

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "docs" / "testing-a-store.md").read_text(encoding="utf-8")
CONTRACT, LACKING, HISTORY = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); exec(sys.argv.pop(1))", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def pytest_run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_mine.py").write_text(program)
    return run(folder, "import pytest; sys.exit(pytest.main(sys.argv[1:]))", "-q", "-p", "no:cacheprovider", str(folder))


def test_the_five_lines_are_enough(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, CONTRACT)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"^(\d+) passed in", done.stdout, re.MULTILINE)
    assert passed is not None, done.stdout
    assert int(passed[1]) > 80


def test_what_a_store_lacks_is_skipped_and_said_in_every_run(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "import pytest\nfrom tests.testing.small_store import SmallStore\n" + LACKING)
    assert done.returncode == 0, done.stdout
    assert "NotChecked: TestSmallStore lacks DELETE, its tests are not run: rows are never removed" in done.stdout
    assert done.stdout.count("NotChecked: TestSmallStore lacks") == 5
    assert re.search(r"[1-9]\d* skipped", done.stdout), done.stdout


def test_what_is_there_cannot_be_called_lacking_nor_what_is_missing_be_left_unsaid(tmp_path: Path) -> None:
    done = pytest_run(
        tmp_path,
        CONTRACT.replace("    @pytest.fixture", '    lacks = {Feature.MANY: "?"}\n\n    @pytest.fixture').replace(
            "import StoreContract", "import Feature, StoreContract"
        )
        + "\n\nfrom tests.testing.small_store import SmallStore\n"
        + CONTRACT.split("\n\n\n")[1].replace("TestMyStore", "TestTheOther").replace("MemoryStore()", "SmallStore()"),
    )
    failed = re.findall(r"^FAILED .*::(\w+)::test_what_a_store_has_is_checked\[(\w+)\]", done.stdout, re.MULTILINE)
    assert sorted(failed) == [("TestMyStore", "MANY"), *[("TestTheOther", name) for name in ("AS_OF", "DELETE", "MANY", "RESOLVE")]]


def test_the_recorded_history_is_checked(tmp_path: Path) -> None:
    done = run(tmp_path, HISTORY)
    assert done.returncode == 0, done.stderr
    assert "no violation" in done.stdout
    assert "conflicts 2" in done.stdout


def test_the_violation_that_is_shown_has_a_rule_and_its_words() -> None:
    (shown,) = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    name = shown.split()[0]
    assert Rule[name].value in shown


def test_recorder_and_checker_need_no_pytest() -> None:
    program = "import sys; sys.modules['pytest'] = None; import eventlog.testing, eventlog.testing.memory, eventlog.testing.workload"
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True, timeout=60)
