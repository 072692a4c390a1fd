"""The process whose memory is measured: opens a Kafka store, waits for its projection, loads and writes scattered checkpoints."""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from pathlib import Path

from benchmarks.kafka_events import checkpoint_id
from benchmarks.stores import ACTOR, wait_until_current
from eventlog import Receipt, open_store

_AT_ONCE = 500


def main(address: str, checkpoints: int, writes: int) -> None:
    """Prints what it needed as JSON."""
    started = time.perf_counter()
    with open_store(address, actor=ACTOR, timeout=120) as store:
        wait_until_current(store)
        wanted = random.sample(range(checkpoints), min(writes, checkpoints))
        for start in range(0, len(wanted), _AT_ONCE):
            loaded = [store.load(checkpoint_id(number)) for number in wanted[start : start + _AT_ONCE]]
            outcomes = store.compare_and_swap_many([(each.next(each.payload), each.revision) for each in loaded])
            refused = next((outcome for outcome in outcomes if not isinstance(outcome, Receipt)), None)
            if refused is not None:
                raise refused
    print(json.dumps({"seconds": time.perf_counter() - started, "peak_mb": peak_megabytes()}))


def peak_megabytes() -> float:
    """The largest resident size of this process. Not ru_maxrss where it can be helped: Linux starts that with the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1000 * 1.024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1000 * 1.024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
