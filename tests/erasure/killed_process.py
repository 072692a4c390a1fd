"""Erases in a process of its own, which kills itself at a step. Usage: killed_process STORE STEP TIMES"""

from __future__ import annotations

import os
import signal
import sys

from eventlog import open_store
from eventlog.erasure.erasing import erase
from eventlog.erasure.selection import Selection
from eventlog.erasure.steps import Step, listening
from tests.erasure.planting import SUBJECT

if __name__ == "__main__":
    at, left = Step[sys.argv[2]], int(sys.argv[3])

    def die(step: Step) -> None:
        global left
        left -= step is at
        if step is at and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_store(sys.argv[1], actor="killed") as store, listening(die):
        erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason="request 4711")
