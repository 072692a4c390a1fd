"""Stops and removes what a test run has started, once the run is over: `python watchdog.py RUN_FOLDER < pipe held by the run`.

The pipe ends when the run's process has ended, be it by kill -9. Then every broker under the folder is killed, the run's workers are given
time to notice that they are alone (each may be starting another broker just now), and the folder is removed.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

# pytest-xdist's workers end themselves up to 10 s after their controller; then nothing starts brokers any more.
WORKERS_SECONDS = 30.0


def load_process_module() -> Any:
    """eventlog.kafka.local_process alone: the whole package costs memory, and may be broken by whoever edits it while the tests run."""
    path = Path(__file__).resolve().parents[2] / "eventlog" / "kafka" / "local_process.py"
    spec = importlib.util.spec_from_file_location("local_process", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(folder: Path) -> None:
    identity = load_process_module().ProcessIdentity
    sys.stdin.buffer.read()
    deadline = time.monotonic() + WORKERS_SECONDS
    workers = [found for name in (folder / "workers").iterdir() if (found := identity.of(int(name.name))) is not None]
    while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
        stop_brokers(folder, identity)
        time.sleep(0.1)
    stop_brokers(folder, identity)
    shutil.rmtree(folder)


def stop_brokers(folder: Path, identity: Any) -> None:
    for path in folder.glob("*/broker.json"):
        state = json.loads(path.read_text(encoding="utf-8"))
        if state["pid"] is not None:
            process = identity(state["pid"], state["started"])
            process.send(signal.SIGKILL)
            process.wait(15)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
