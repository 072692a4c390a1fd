"""Backs a store up and restores it for ever, in a process of its own, until it is killed. Usage: killed_process STORE FOLDER FIRST"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from eventlog import open_store
from eventlog.backup.making import backup
from eventlog.backup.restoring import restore
from tests.archive.samples import grown
from tests.backup.samples import NO_REGISTER

folder = Path(sys.argv[2])
with open_store(sys.argv[1], actor="killed") as store:
    for number in itertools.count(int(sys.argv[3])):
        grown(store, 6, size=9_000)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        backup(store, folder / f"backup-{number}")
        restore(folder / f"backup-{number}", folder / f"restored-{number}", without_register=NO_REGISTER)
