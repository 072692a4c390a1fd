"""Every benchmark, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from benchmarks import (
    embedded_callers,
    embedded_commit,
    embedded_disk,
    embedded_encryption,
    embedded_history,
    embedded_load,
    embedded_rebuild,
    embedded_turn,
    kafka_callers,
    kafka_catch_up,
    kafka_commit,
    kafka_memory,
    kafka_trouble,
    projection_disk,
    projection_load,
    projection_reports,
)
from benchmarks.bench import Bench
from benchmarks.row import Row


class Benchmark(Protocol):
    """A module of this package: its name on the command line, its title, and what it does."""

    NAME: str
    TITLE: str

    def run(self, bench: Bench) -> list[Row]: ...


BENCHMARKS: tuple[Benchmark, ...] = cast(
    tuple[Benchmark, ...],
    (
        embedded_commit,
        embedded_encryption,
        embedded_callers,
        embedded_load,
        embedded_history,
        embedded_disk,
        embedded_rebuild,
        embedded_turn,
        kafka_commit,
        kafka_callers,
        kafka_catch_up,
        kafka_trouble,
        projection_load,
        projection_disk,
        projection_reports,
        kafka_memory,
    ),
)


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """All of them, or those whose names begin with one of `names`. Raises `ValueError` for a name that fits none."""
    for name in names:
        if not any(each.NAME.startswith(name) for each in BENCHMARKS):
            raise ValueError(f"no benchmark is called {name}; there are {', '.join(each.NAME for each in BENCHMARKS)}")
    return [each for each in BENCHMARKS if not names or any(each.NAME.startswith(name) for name in names)]
