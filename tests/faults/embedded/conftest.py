"""A warm process a run, the folder of a test, and the states that workloads begin with."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.embedded.injection import WarmProcess

_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    """The process that workloads and checks are forked from."""
    with WarmProcess() as process:
        yield process


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """In memory where there is such a place: what a killed process wrote is there all the same, and a flush takes no time."""
    place = Path(tempfile.mkdtemp(prefix="eventlog-faults-", dir=_MEMORY if _MEMORY.is_dir() else None))
    yield place
    shutil.rmtree(place)


Begun = tuple[Path, list[str]]  # a directory, and what was said while it was made


@pytest.fixture(scope="session")
def begun(warm: WarmProcess, folder: Path) -> Callable[[str | None], Begun]:
    """Makes the state that a workload begins with, once: by the task named, or empty."""
    made: dict[str | None, Begun] = {}

    def make(task: str | None) -> Begun:
        if task not in made:
            place = folder / f"begun-{task}"
            place.mkdir()
            said: list[str] = []
            if task is not None:
                ended = warm.run(task, place)
                assert ended.code == 0, ended.heard.violations
                said = ended.said
            made[task] = (place, said)
        return made[task]

    return make
