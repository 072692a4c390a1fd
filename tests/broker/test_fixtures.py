"""The tests' own footing: what a run starts ends with it, and what it could not run is said aloud."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog.kafka.local import LocalBroker
from eventlog.kafka.local_process import ProcessIdentity

REPOSITORY = Path(__file__).resolve().parents[2]

NEEDS_A_BROKER = """
def test_it(broker):
    assert broker
"""
# Reports where the run's broker lives, then waits to be ended.
WAITS = """
import pathlib, time

def test_it(broker, run_folder):
    pathlib.Path("report.new").write_text(str(run_folder))
    pathlib.Path("report.new").replace("report")
    time.sleep(300)
"""


def start(folder: Path, source: str, *options: str, **environment: str) -> subprocess.Popen[str]:
    """A test run of its own, with this run's conftest and configuration, over one file."""
    (folder / "test_inner.py").write_text(source)
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("EVENTLOG_", "PYTEST_"))}
    configuration = ["-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", ".", "-p", "conftest", "-p", "no:cacheprovider"]
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *configuration, *options, "test_inner.py"],
        cwd=folder,
        env={**ours, "PYTHONPATH": f"{REPOSITORY / 'tests'}{os.pathsep}{REPOSITORY}", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A parent may have been started with interrupts ignored, as `make test &` in a script is; that would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.broker
@pytest.mark.parametrize(
    ("options", "blow"),
    [(("-n", "1"), signal.SIGKILL), (("-n", "1"), signal.SIGINT), ((), signal.SIGTERM)],
    ids=["workers-killed", "workers-interrupted", "terminated"],
)
def test_a_test_run_that_is_ended_leaves_no_broker(tmp_path: Path, options: tuple[str, ...], blow: signal.Signals) -> None:
    with start(tmp_path, WAITS, *options) as run:
        assert wait_until((tmp_path / "report").exists, 120), run.communicate()[0]
        folder = Path((tmp_path / "report").read_text())
        pid = LocalBroker(directory=folder / "shared").status().pid
        assert pid is not None
        broker = ProcessIdentity.of(pid)
        assert broker is not None

        run.send_signal(blow)

        assert broker.wait(30)
        assert wait_until(lambda: not folder.exists(), 60)
        run.kill()


@pytest.mark.broker
def test_every_worker_gets_the_runs_one_broker(tmp_path: Path) -> None:
    source = "\n".join(f"def test_{n}(broker): print(broker)" for n in range(4))
    with start(tmp_path, source, "-n", "2", "-rP") as run:
        output = run.communicate(timeout=180)[0]
    assert run.returncode == 0, output
    assert len({line for line in output.splitlines() if line.startswith("127.0.0.1:")}) == 1, output


def test_a_given_broker_is_used_and_none_is_started(tmp_path: Path) -> None:
    with start(tmp_path, "def test_it(broker): assert broker == 'somewhere:1'", EVENTLOG_TEST_KAFKA="somewhere:1", PATH="/nowhere") as run:
        output = run.communicate(timeout=60)[0]
    assert run.returncode == 0, output


def without_tools(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder / "no-tools"), "JAVA_HOME": "", "XDG_CACHE_HOME": str(folder / "no-cache")}


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "workers"])
def test_without_java_what_was_not_run_is_said_aloud(tmp_path: Path, options: tuple[str, ...]) -> None:
    with start(tmp_path, NEEDS_A_BROKER, *options, **without_tools(tmp_path)) as run:
        output = run.communicate(timeout=60)[0]
    assert run.returncode == 0, output
    assert "NO BROKER: java and mvn not found; install Java 17 and Maven - 1 TESTS WERE NOT RUN" in output


def test_without_java_a_run_that_requires_a_broker_fails(tmp_path: Path) -> None:
    with start(tmp_path, NEEDS_A_BROKER, EVENTLOG_REQUIRE_BROKER="1", **without_tools(tmp_path)) as run:
        output = run.communicate(timeout=60)[0]
    assert run.returncode == 1, output
    assert "EVENTLOG_REQUIRE_BROKER=1" in output


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("1", 1)])
def test_missing_sample_data_is_said_aloud_or_fails(tmp_path: Path, required: str, code: int) -> None:
    source = "def test_it(shared_data): assert shared_data.is_dir()"
    with start(tmp_path, source, EVENTLOG_SHARED=str(tmp_path / "none"), EVENTLOG_REQUIRE_SHARED=required) as run:
        output = run.communicate(timeout=60)[0]
    assert run.returncode == code, output
    assert "NO SAMPLE DATA" in output


def test_topic_names_are_fresh_and_say_whose_they_are(topic: str) -> None:
    assert topic.startswith("topic-names-are-fresh-and-say-whose-they-are-")
    assert len(topic) < 249


def test_sample_data_is_there(shared_data: Path) -> None:
    assert any(shared_data.iterdir())
