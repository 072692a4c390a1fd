"""A process that writes as fast as it can until it is killed or told to stop: `python busy_process.py DIRECTORY SECONDS THREADS IDS...`.

Each acknowledged event is a line on stdout, written only after the store has answered: `+ event id, checkpoint id, revision`; a conflict
is `- event id`. Each line is one write, so that a kill leaves no half of one but the last.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from eventlog import Conflict, Receipt, open_store


def main(directory: str, seconds: float, threads: int, ids: list[str]) -> None:
    until = time.monotonic() + seconds
    with open_store(directory, actor=str(os.getpid())) as store:

        def work() -> None:
            while time.monotonic() < until:
                loaded = store.load(random.choice(ids))
                following = loaded.next({"by": os.getpid(), "n": loaded.revision, "filler": "x" * random.randrange(3000)})
                (outcome,) = store.compare_and_swap_many([(following, loaded.revision)])
                if isinstance(outcome, Receipt):
                    say(f"+ {following.event_id} {following.id} {following.revision}\n")
                elif isinstance(outcome, Conflict):
                    say(f"- {following.event_id}\n")
                else:
                    raise outcome

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()


def say(line: str) -> None:
    os.write(1, line.encode())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
