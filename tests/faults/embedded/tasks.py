"""What a process can be asked to do, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.embedded import archiving, backing_up, projecting, promises, workloads

TASKS: dict[str, Callable[..., Any]] = {
    "life": workloads.life,
    "prepared": workloads.prepared,
    "together": workloads.together,
    "rebuilding": workloads.rebuilding,
    "long_journal": workloads.long_journal,
    "asking": workloads.asking,
    "projecting": projecting.projecting,
    "archiving": archiving.archiving,
    "backing_up": backing_up.backing_up,
    "check": promises.check,
    "check_archiving": archiving.check_archiving,
    "check_backing_up": backing_up.check_backing_up,
    "check_projection": projecting.check_projection,
}
