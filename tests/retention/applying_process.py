"""A process that applies a plan and is killed at one of its writes: `python applying_process.py ADDRESS PLAN before|after NUMBER`.

It says `unkilled` when it came to its end: there were fewer writes.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from eventlog import open_store
from eventlog.retention import Plan, apply_plan, applying


def main() -> None:
    address, plan, when, number = sys.argv[1:]
    applying._BATCH = 3
    with open_store(address, actor="victim") as store:
        append, writes = store.log.append, 0

        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == int(number) and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            outcomes = append(*arguments, **options)
            if writes == int(number) and when == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return outcomes

        store.log.append = counted  # type: ignore[method-assign]
        apply_plan(store, Plan.read(Path(plan)), reason="clean-up")
    sys.stdout.write("unkilled\n")


if __name__ == "__main__":
    main()
