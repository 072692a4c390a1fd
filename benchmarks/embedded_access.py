"""Embedded: what it costs to record every access: a load and a commit of a principal's store, by mode, alone and 16 at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.bench import Bench, Contestant, Stopwatch
from benchmarks.row import Row, Sample, Target
from benchmarks.stores import ACTOR, KIND, successor_committer
from eventlog import AccessMode, Checkpoint, CheckpointId, CheckpointStore, Principal, RunId, create_store, open_store

NAME = "embedded-access"
TITLE = "Embedded, accesses on record"

_CALLERS = (1, 16)
_COUNTS = {"load": 8_000, "commit": 4_000}
# Nobody should have to leave the record of reads off for its cost; strict pays for a flush, and shares it.
_TARGETS: dict[tuple[str, AccessMode, int], Target] = {("commit", AccessMode.BUFFERED, 1): Target("at least", 0.8)}

Prepare = Callable[[CheckpointStore, dict[str, Any]], Callable[[], object]]


def run(bench: Bench) -> list[Row]:
    state = bench.payloads.of(1)
    prepared: dict[str, Prepare] = {"load": _loader, "commit": successor_committer}
    contestants: dict[str, Contestant] = {
        _name(what, mode, callers): partial(_measured, bench, prepare, state, mode, callers, bench.count(_COUNTS[what], 64))
        for what, prepare in prepared.items()
        for mode in AccessMode
        for callers in _CALLERS
    }
    sides = bench.interleave(contestants)
    return [
        Row(
            f"{NAME}-{what}-{mode}-{callers}",
            f"embedded {what}, accesses {mode}, {_callers(callers)}, 1 KB",
            f"{what}s/s",
            sides[_name(what, mode, callers)],
            sides[_name(what, AccessMode.OFF, callers)],
            _TARGETS.get((what, mode, callers)),
        )
        for what in prepared
        for mode in (AccessMode.BUFFERED, AccessMode.STRICT)
        for callers in _CALLERS
    ]


def _name(what: str, mode: AccessMode, callers: int) -> str:
    return f"{what}, {mode}, {_callers(callers)}"


def _callers(callers: int) -> str:
    return "1 caller" if callers == 1 else f"{callers} threads"


def _loader(store: CheckpointStore, state: dict[str, Any]) -> Callable[[], object]:
    checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state)
    store.compare_and_swap(checkpoint, None)
    return partial(store.load, checkpoint.id)


def _measured(bench: Bench, prepare: Prepare, state: dict[str, Any], mode: AccessMode, callers: int, calls: int) -> Sample:
    """Roles are decided in every mode; `off` writes nothing down."""
    with bench.folder() as folder:
        create_store(folder / "store", access=mode)
        with open_store(folder / "store", principal=Principal(ACTOR, None, ["writer"])) as store:
            made = [prepare(store, state) for _ in range(callers)]
            watch = Stopwatch()
            if callers == 1:
                watch.repeat(made[0], calls)
            else:
                watch.at_once(made, calls // callers)
            return watch.per_second()
