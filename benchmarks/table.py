"""The table on the terminal: where we lose stands out as much as where we win."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.results import Result
from benchmarks.row import Row, Side


def show(console: Console, results: Sequence[Result]) -> None:
    """Prints every row, then the latencies behind them."""
    figures = Table(title="Benchmarks" + (" (quick: these figures mean nothing)" if any(each.quick for each in results) else ""))
    for name in ("what", "ours", "against", "ratio", "spread", "target", "met"):
        figures.add_column(name, justify="left" if name in ("what", "target") else "right")
    for result in results:
        for row in result.rows:
            figures.add_row(*cells(row), style={True: "", False: "bold red", None: "dim"}[row.met])
        figures.add_section()
    console.print(figures)
    latencies = Table(title="Milliseconds a call (median of the rounds)")
    for name in ("what", "side", "p50", "p99", "p99.9", "noise"):
        latencies.add_column(name, justify="left" if name in ("what", "side") else "right")
    for what, side in _timed(results):
        assert side.latency is not None
        latencies.add_row(what, side.name, *(f"{each:.3f}" for each in side.latency), f"{side.spread:.0%}")
    console.print(latencies)
    for result in results:
        for note in result.notes:
            console.print(f"NOTE ({result.benchmark}): {note}", style="yellow", markup=False)
        for row in result.rows:
            if row.missing is not None:
                console.print(f"NOT MEASURED: {row.what}: {row.missing}", style="bold yellow", markup=False)
    console.print(verdict([row for result in results for row in result.rows]), style="bold")


def cells(row: Row) -> list[str]:
    """A row as text: what, ours, against, ratio, spread of the ratio, target, met."""
    ours = f"{figure(row.ours)} {row.unit}" if row.ours.samples else "-"
    against = f"{figure(row.against)} ({row.against.name})" if row.against.samples else f"- ({row.against.name})"
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    spread = f"{min(row.ratios):.2f}-{max(row.ratios):.2f}" if len(row.ratios) > 1 else ""
    met = {True: "yes", False: "NO", None: "not measured" if row.ratio is None else ""}[row.met]
    return [row.what, ours, against, ratio, spread, "" if row.target is None else str(row.target), met]


def figure(side: Side) -> str:
    """A side's median, with three digits."""
    value = side.value
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def verdict(rows: Sequence[Row]) -> str:
    """How many targets were met."""
    judged = [row for row in rows if row.met is not None]
    return f"{sum(bool(row.met) for row in judged)} of {len(judged)} targets met" + (
        f"; {sum(row.missing is not None for row in rows)} rows not measured" if any(row.missing for row in rows) else ""
    )


def _timed(results: Sequence[Result]) -> list[tuple[str, Side]]:
    """Each side with latencies once, though several rows may share it."""
    found: dict[tuple[str, Side], str] = {}
    for result in results:
        for row in result.rows:
            for side in (row.ours, row.against):
                if side.latency is not None:
                    found.setdefault((result.benchmark, side), row.what)
    return [(what, side) for (_, side), what in found.items()]
