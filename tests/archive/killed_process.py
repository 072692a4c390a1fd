"""Writes, archives and compacts for ever, in a process of its own, until it is killed. Usage: killed_process STORE ARCHIVE"""

from __future__ import annotations

import sys
from pathlib import Path

from eventlog import open_store
from eventlog.archive.compacting import compact
from eventlog.archive.directory import Archive
from eventlog.archive.running import Limits, run_archive
from tests.archive.samples import grown

with open_store(sys.argv[1], actor="killed") as store:
    archive = Archive(directory=Path(sys.argv[2]))
    while True:
        grown(store, 6, size=9_000)
        sys.stdout.write("written\n")
        sys.stdout.flush()
        run_archive(store, archive, limits=Limits(rows=4))
        compact(store, archive, hold_ms=0)
