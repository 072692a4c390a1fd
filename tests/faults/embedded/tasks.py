"""What a process can be asked to do, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.embedded import projecting, promises, workloads

TASKS: dict[str, Callable[..., Any]] = {
    "life": workloads.life,
    "prepared": workloads.prepared,
    "together": workloads.together,
    "rebuilding": workloads.rebuilding,
    "long_journal": workloads.long_journal,
    "asking": workloads.asking,
    "projecting": projecting.projecting,
    "check": promises.check,
    "check_projection": projecting.check_projection,
}
