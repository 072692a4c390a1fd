"""Today's ratios against those of the last committed results: what got worse, what got better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from benchmarks.results import Result, load_all
from benchmarks.row import Bound, Row

NOTABLE = 0.15  # two runs on one quiet machine differ by up to this much

# Rows without a target have no direction of their own: more a second is better, and less of anything else.
_MORE_IS_BETTER = "/s"


class Change(NamedTuple):
    """One row, then and now. `factor` above 1 is better."""

    row: Row
    before: float
    now: float
    factor: float


def committed(results: Path, names: Sequence[str]) -> dict[str, Row]:
    """The rows of the results that are there, by key. Read them before a run replaces them."""
    return {row.key: row for result in load_all(results, names) for row in result.rows}


def changes(before: dict[str, Row], results: Sequence[Result]) -> list[Change]:
    """Every row that both have, the worst first."""
    found: list[Change] = []
    for row in (row for result in results for row in result.rows):
        old = before.get(row.key)
        if old is None or not old.ratio or not row.ratio:
            continue
        factor = row.ratio / old.ratio
        found.append(Change(row, old.ratio, row.ratio, factor if _direction(row) == "at least" else 1 / factor))
    return sorted(found, key=lambda change: change.factor)


def show(console: Console, found: Sequence[Change]) -> None:
    """Prints what changed by more than the noise; says so when nothing did."""
    notable = [each for each in found if not 1 - NOTABLE <= each.factor <= 1 / (1 - NOTABLE)]
    for each in notable:
        what = f"{each.row.what}, against {each.row.against.name}: {each.before:.2f} before, {each.now:.2f} now"
        console.print(f"{'WORSE' if each.factor < 1 else 'better'}: {what}", style="bold red" if each.factor < 1 else "green", markup=False)
    if found and not notable:
        console.print(f"no ratio of {len(found)} differs by more than {NOTABLE:.0%} from the committed one")


def _direction(row: Row) -> Bound:
    if row.target is not None:
        return row.target.bound
    return "at least" if row.unit.endswith(_MORE_IS_BETTER) else "at most"
