"""A run says what got worse since the committed results: by ratio, since machines differ."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.regressions import changes, show
from benchmarks.results import Result
from benchmarks.row import Row, Sample, Side, Target


def row(key: str, ours: float, against: float, *, unit: str = "commits/s", target: Target | None = None) -> Row:
    return Row(key, key, unit, Side("ours", (Sample(ours),)), Side("peer", (Sample(against),)), target)


def result(*rows: Row) -> Result:
    return Result("some", "Some", "2026-01-01", False, 1, 1.0, {}, {}, list(rows))


@pytest.mark.parametrize(
    ("unit", "target", "before", "now", "said"),
    [
        pytest.param("commits/s", None, 100, 60, "WORSE", id="fewer a second"),
        pytest.param("commits/s", None, 100, 160, "better", id="more a second"),
        pytest.param("ms", None, 10, 16, "WORSE", id="longer"),
        pytest.param("ms", None, 10, 6, "better", id="shorter"),
        pytest.param("MB", Target("at most", 0.2), 10, 16, "WORSE", id="a target says which way is better"),
        pytest.param("commits/s", None, 100, 95, "no ratio of 1 differs", id="noise"),
    ],
)
def test_a_ratio_that_got_worse_is_named(unit: str, target: Target | None, before: float, now: float, said: str) -> None:
    written = io.StringIO()

    found = changes({"one": row("one", before, 100, unit=unit, target=target)}, [result(row("one", now, 100, unit=unit, target=target))])
    show(Console(file=written, width=200), found)

    assert said in written.getvalue()


def test_a_machine_twice_as_slow_is_no_regression() -> None:
    (change,) = changes({"one": row("one", 100, 50)}, [result(row("one", 50, 25))])

    assert change.factor == pytest.approx(1.0)


def test_a_new_row_has_nothing_to_be_compared_with() -> None:
    assert changes({}, [result(row("one", 1, 1))]) == []
