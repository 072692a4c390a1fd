"""A process that reads and writes until it is killed: `python reading_process.py ADDRESS SUBJECT ID ...`.

Each line of its output is what it was handed: `read ID REVISION` or `wrote ID REVISION`, printed when the call has returned.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def start(address: str, subject: str, *ids: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.access.reading_process", address, subject, *ids],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )


def _main() -> None:
    from eventlog import Principal, open_store

    address, subject, *ids = sys.argv[1:]
    store = open_store(address, principal=Principal(subject, None, ["writer"]))
    saying = threading.Lock()

    def say(line: str) -> None:
        with saying:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def work(checkpoint_id: str) -> None:
        while True:
            found = store.load(checkpoint_id)
            say(f"read {checkpoint_id} {found.revision}")
            store.compare_and_swap(found.next({"by": subject}), found.revision)
            say(f"wrote {checkpoint_id} {found.revision + 1}")

    threads = [threading.Thread(target=work, args=(each,)) for each in ids]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


if __name__ == "__main__":
    _main()
