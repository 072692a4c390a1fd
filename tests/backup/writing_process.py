"""Commits for ever, in a process of its own, and says each receipt. Usage: writing_process STORE"""

from __future__ import annotations

import sys

from eventlog import open_store
from tests.store.samples import initial

with open_store(sys.argv[1], actor="writer") as store:
    while True:
        checkpoint = initial({"n": 0, "text": "x" * 500})
        store.compare_and_swap(checkpoint, None)
        sys.stdout.write(f"{checkpoint.id} 0\n")
        for number in (1, 2):
            checkpoint = checkpoint.next({"n": number, "text": "x" * 500})
            store.compare_and_swap(checkpoint, number - 1)
            sys.stdout.write(f"{checkpoint.id} {number}\n")
            sys.stdout.flush()
