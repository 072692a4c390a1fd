"""What every test may ask for: a real broker, a broker of its own, a fresh topic name, the sample data.

One broker serves the whole run, pytest-xdist's workers included. It starts when the first test asks for it. Whatever the run starts lives
in one temporary folder, and a watchdog process stops and removes all of it when the run ends, however it ends (tests/broker/watchdog.py).

Environment:
    EVENTLOG_TEST_KAFKA=host:port   use this running broker instead of starting one
    EVENTLOG_REQUIRE_BROKER=1       no Java or Maven: fail, where otherwise the tests that need a broker are skipped
    EVENTLOG_REQUIRE_STRACE=1       no strace: fail, where otherwise the tests that inject faults are skipped
    EVENTLOG_REQUIRE_SOFTHSM=1      no SoftHSM2: fail, where otherwise the tests of keys in a token are skipped
    EVENTLOG_REQUIRE_PROMTOOL=1     no promtool: fail, where otherwise the tests of alert rules are skipped
    EVENTLOG_SHARED=DIR             the folder with `data/` in it; default: `shared` beside the checkout
    EVENTLOG_REQUIRE_SHARED=1       no sample data: fail, where otherwise the tests that need it are skipped
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# kafka-python reads its schemas by two functions that Python 3.11 and 3.12 call deprecated (3.13 took that back).
# It also leaves the socket of a refused or reset connection to the garbage collector; such a one has no remote address. So it does
# with a TLS socket that fails in its handshake or later.
KAFKA_PYTHON_WARNINGS = (
    r"ignore:(read|open)_text is deprecated:DeprecationWarning",
    r"ignore:unclosed <socket.*laddr=\('(0\.0\.0\.0|127\.0\.0\.1)', \d+\)>:ResourceWarning",
    r"ignore:unclosed <ssl.*laddr=\('127\.0\.0\.1', \d+\).*>:ResourceWarning",
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from eventlog.kafka.local import LocalBroker, missing_tools

REPOSITORY = Path(__file__).resolve().parents[1]
WATCHDOG = REPOSITORY / "tests" / "broker" / "watchdog.py"

OWN_BROKERS = frozenset({"own_broker", "cleaning_broker", "cluster", "secured"})  # fixtures that start brokers, whether or not one is given

OwnBroker = Callable[..., LocalBroker]

_run_folder = pytest.StashKey[Path]()
_watchdog = pytest.StashKey["subprocess.Popen[bytes]"]()


# -- one folder and one watchdog a run -------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    for harmless in KAFKA_PYTHON_WARNINGS:
        config.addinivalue_line("filterwarnings", harmless)
    worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker_input is None:
        folder = Path(tempfile.mkdtemp(prefix="eventlog-tests-"))
        (folder / "workers").mkdir()
        # It reads until every copy of the pipe's other end is closed, which the kernel sees to when this process dies. A session of its own
        # keeps it from Ctrl-C; none of our output is left open in it, so that whoever reads that sees its end.
        config.stash[_watchdog] = subprocess.Popen(
            [sys.executable, str(WATCHDOG), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    else:
        folder = Path(worker_input["eventlog_run_folder"])
        (folder / "workers" / str(os.getpid())).touch()
    config.stash[_run_folder] = folder


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["eventlog_run_folder"] = str(node.config.stash[_run_folder])


def pytest_unconfigure(config: pytest.Config) -> None:
    watchdog = config.stash.get(_watchdog, None)
    if watchdog is not None:
        _, complaint = watchdog.communicate(timeout=60)
        if watchdog.returncode != 0:
            raise RuntimeError(f"the tests' watchdog failed; a broker may still run: {complaint.decode(errors='replace')}")


# -- what is missing: skipped loudly, or failed ----------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.path.is_relative_to(REPOSITORY / "tests" / "faults") or item.path.is_relative_to(REPOSITORY / "tests" / "chaos"):
            item.add_marker("faults")
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if "kafka" in parameters.values() and item.get_closest_marker("long_on_kafka") is not None:
            item.add_marker("faults")
        if fixtures & {"broker", *OWN_BROKERS}:
            item.add_marker("broker")
        if fixtures & {"softhsm", "token"}:
            item.add_marker("softhsm")
        if "shared_data" in fixtures:
            item.add_marker("shared_data")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("broker") is not None:
        own = OWN_BROKERS & set(getattr(item, "fixturenames", ()))
        missing = () if os.environ.get("EVENTLOG_TEST_KAFKA") and not own else missing_tools()
        if missing:
            _skip_or_fail("NO BROKER", f"{' and '.join(missing)} not found; install Java 17 and Maven", "EVENTLOG_REQUIRE_BROKER")
    if item.get_closest_marker("strace") is not None and shutil.which("strace") is None:
        _skip_or_fail("NO STRACE", "strace not found; install it to inject faults", "EVENTLOG_REQUIRE_STRACE")
    if item.get_closest_marker("softhsm") is not None and softhsm_module() is None:
        _skip_or_fail("NO SOFTHSM", "softhsm2-util or its module not found; install Debian's softhsm2", "EVENTLOG_REQUIRE_SOFTHSM")
    if item.get_closest_marker("promtool") is not None and shutil.which("promtool") is None:
        _skip_or_fail("NO PROMTOOL", "promtool not found; it comes with Debian's prometheus", "EVENTLOG_REQUIRE_PROMTOOL")
    if item.get_closest_marker("shared_data") is not None and not _shared_data().is_dir():
        _skip_or_fail("NO SAMPLE DATA", f"no folder {_shared_data()}; set EVENTLOG_SHARED", "EVENTLOG_REQUIRE_SHARED")


def _skip_or_fail(what: str, why: str, required_by: str) -> None:
    if os.environ.get(required_by) == "1":
        pytest.fail(f"{what}: {why} ({required_by}=1)", pytrace=False)
    pytest.skip(f"{what}: {why}")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple)]
    for what in ("NO BROKER", "NO STRACE", "NO SOFTHSM", "NO PROMTOOL", "NO SAMPLE DATA"):
        matching = [reason for reason in reasons if f"{what}: " in reason]
        if matching:
            terminalreporter.write_line(
                f"{matching[0].removeprefix('Skipped: ')} - {len(matching)} TESTS WERE NOT RUN", red=True, bold=True
            )


def softhsm_module() -> Path | None:
    """SoftHSM2's PKCS#11 library, if it is installed."""
    if shutil.which("softhsm2-util") is None:
        return None
    places = (*Path("/usr/lib").glob("**/libsofthsm2.so"), *Path("/usr/local/lib").glob("**/libsofthsm2.so"))
    return next(iter(places), None)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_running(run_folder: Path) -> Iterator[None]:
    """Kills what a test has started and left, and says so. Brokers in the run's folder, which workers may share, the watchdog stops."""
    yield
    left = {pid: line for pid, line in _children().items() if not any(each in line for each in (str(WATCHDOG), str(run_folder)))}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"tests have left processes behind: {left}"


def _children() -> dict[int, str]:
    """The command lines of this process's children that still run, by pid. Those of Python's own bookkeeping end by themselves."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()[:2]
            line = path.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if int(parent) == os.getpid() and state != "Z" and "multiprocessing" not in line:
            found[int(path.parent.name)] = line
    return found


# -- fixtures --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest) -> Path:
    """The run's temporary folder. A LocalBroker in a folder directly under it is ended by the watchdog, if by nothing else."""
    return request.config.stash[_run_folder]


@pytest.fixture(scope="session")
def broker(run_folder: Path) -> str:
    """The address of the run's broker. Shared: name your own topics and transactional ids, do not stop it."""
    given = os.environ.get("EVENTLOG_TEST_KAFKA")
    if given:
        return given
    # Every worker calls this; the first one starts the broker, the others wait for its lock and find it running.
    shared = LocalBroker(directory=run_folder / "shared", fast_start=True)
    shared.up()
    return shared.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that nothing has used. It is not created, nor deleted afterwards: the broker's data goes with the run."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name.removeprefix("test_"))[:60].strip("-")
    return f"{name}-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def own_broker(run_folder: Path) -> Iterator[OwnBroker]:
    """Starts brokers that belong to this test alone, to be killed, paused or restarted. Arguments are LocalBroker's.

    `own_broker()` returns a LocalBroker that answers; `own_broker(start=False)` one that was not started.
    """
    brokers: list[LocalBroker] = []

    def make(*, start: bool = True, **arguments: Any) -> LocalBroker:
        made = LocalBroker(**{"directory": run_folder / f"own-{uuid.uuid4().hex[:12]}", "fast_start": True, **arguments})
        brokers.append(made)
        if start:
            made.up()
        return made

    try:
        yield make
    finally:
        for made in brokers:
            made.kill()
            shutil.rmtree(made.directory, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the sample data. Read only."""
    return _shared_data()


def _shared_data() -> Path:
    return Path(os.environ.get("EVENTLOG_SHARED") or REPOSITORY.parent / "shared") / "data"
