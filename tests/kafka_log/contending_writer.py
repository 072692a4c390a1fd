"""A process with several writers on shared checkpoints; what each was told goes to a file, one JSON line an attempt."""

from __future__ import annotations

import json
import sys
import threading
import time

from eventlog import CheckpointError, Conflict, OutcomeUnknown, open_store


def main(address: str, actor: str, ids: list[str], writers: int, seconds: float, out: str) -> None:
    lines: list[str] = []
    lock = threading.Lock()
    stop = time.monotonic() + seconds
    with open_store(address, actor=actor, timeout=20) as store:
        store.position()  # caught up: the time that follows is for writing
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        stop = time.monotonic() + seconds

        def write(number: int) -> None:
            turn = number
            current = {each: store.load(each) for each in ids}
            while time.monotonic() < stop:
                turn += 1
                before = current[ids[turn % len(ids)]]
                proposed = before.next({"writer": f"{actor}-{number}", "turn": turn})
                told: dict[str, object]
                try:
                    receipt = store.compare_and_swap(proposed, before.revision)
                    told = {"outcome": "committed", "position": str(receipt.position)}
                    current[before.id] = proposed
                except Conflict as error:
                    told = {"outcome": "conflict", "actual": error.actual}
                    current[before.id] = store.load(before.id, at_least=store_position)
                except OutcomeUnknown:
                    told = {"outcome": "unknown"}
                    current[before.id] = store.load(before.id)
                except CheckpointError as error:
                    told = {"outcome": "refused", "error": str(error)}
                with lock:
                    lines.append(json.dumps({"id": before.id, "revision": proposed.revision, "event": proposed.event_id, **told}))

        from eventlog import Position

        store_position = Position()  # whatever this process has seen: it has seen the revision that it lost against
        threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with open(out, "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4]), float(sys.argv[5]), sys.argv[6])
