"""A picture of the committed results: how we stand beside each peer, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import Result
from benchmarks.row import Row

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.svg"

_PICTURED = ("embedded-commit", "embedded-callers", "embedded-load", "embedded-history", "embedded-disk")
_SMALLEST, _LARGEST = 1 / 30, 30.0


def draw(results: Sequence[Result], path: Path = PICTURE) -> bool:
    """Draws the ratios to peers; right of 1 we are better. Returns False, and draws nothing, without matplotlib or without results."""
    try:
        import matplotlib
    except ImportError:
        return False
    rows = [row for result in results if result.benchmark in _PICTURED for row in result.rows if row.ratio]
    if not rows:
        return False
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "benchmarks"  # the same results give the same bytes
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text: a third of the size
    import matplotlib.pyplot as plt

    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.what, []).append(row)
    labels = [(what, row) for what, group in groups.items() for row in group]
    figure, axes = plt.subplots(figsize=(9, 0.19 * len(labels) + 1.2))
    for place, (_, row) in enumerate(labels):
        better = _better(row)
        axes.plot([1, better], [place, place], color="tab:green" if better >= 1 else "tab:red", linewidth=2)
        axes.plot([better], [place], "o", color="tab:green" if better >= 1 else "tab:red", markersize=4)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(_SMALLEST, _LARGEST)
    axes.set_yticks(range(len(labels)), [f"{what} / {row.against.name}" for what, row in labels], fontsize=6)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel("times better (right) or worse (left) than the peer")
    axes.grid(axis="x", linewidth=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return True


def _better(row: Row) -> float:
    assert row.ratio is not None
    ratio = row.ratio if row.unit.endswith("/s") else 1 / row.ratio
    return min(max(ratio, _SMALLEST), _LARGEST)
