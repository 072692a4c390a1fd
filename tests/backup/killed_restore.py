"""Restores a backup and is killed when it has begun to verify. Usage: killed_restore BACKUP KEYS ADDRESS"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from eventlog.backup.restoring import restore
from tests.backup.samples import NO_REGISTER


def die(what: str, _: int) -> None:
    if what == "verifying":
        os.kill(os.getpid(), signal.SIGKILL)


restore(Path(sys.argv[1]), sys.argv[3], keys_from=Path(sys.argv[2]), without_register=NO_REGISTER, progress=die)
