"""docs/benchmarks.md from the committed results and the written explanations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import Result
from benchmarks.row import Row, Side
from benchmarks.table import cells, verdict

EXPLANATIONS = Path(__file__).parent / "explanations.md"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

_HEAD = """# Benchmarks

<!-- Made by `python -m benchmarks --report` from benchmarks/results/ and benchmarks/explanations.md. Edit those, not this page. -->

`make bench` measures all of this again on your machine. Every comparison is made in one run, in interleaved rounds; a ratio is the median
of the rounds' own ratios, and its spread is the lowest and the highest of them. Rounds that differ widely mean a busy machine. A run is
compared with these results, and says which ratios have changed by more than 15 %.

![Ratios to each peer](benchmarks.svg)
"""


def explanations(path: Path = EXPLANATIONS) -> dict[str, str]:
    """The written text of each row, by its key: what stands under `## key`."""
    parts = re.split(r"^## +(\S+) *$", path.read_text(encoding="utf-8"), flags=re.MULTILINE) if path.exists() else [""]
    return {key: text.strip() for key, text in zip(parts[1::2], parts[2::2], strict=True)}


def render(results: Sequence[Result], texts: dict[str, str]) -> str:
    """The page. Says which rows fall short, and which of those nobody has explained."""
    rows = [row for result in results for row in result.rows]
    short = [row for row in rows if row.met is False or row.missing is not None]
    lines = [_HEAD, f"**{verdict(rows)}.**\n"]
    if "introduction" in texts:
        lines.append(texts["introduction"] + "\n")
    for result in results:
        lines += [f"## {result.title}\n", *_table(result.rows), ""]
        load = f"{result.machine['load_before']} before, {result.machine.get('load_after', 'not noted')} after"
        measured = f"Measured {result.date}, {result.rounds} rounds, load average {load}."
        lines += [" ".join([measured, *(f"Note: {note}." for note in result.notes)]) + "\n"]
        more = [row for row in result.rows if row.key in texts and row not in short]
        lines += [f"{row.what}, against {row.against.name}: {texts[row.key]}\n" for row in more]
    lines += ["## Where we fall short\n"]
    lines += [f"- {_shortfall(row)} {' '.join(texts.get(row.key, '**Not explained yet.**').split())}" for row in short] or [
        "Nowhere on this machine."
    ]
    lines += ["\n## Machine\n", *_machine(results)]
    unknown = sorted(set(texts) - {row.key for row in rows} - {"introduction"})
    if unknown:
        lines += [f"\n<!-- explanations of rows that are not there: {', '.join(unknown)} -->"]
    return "\n".join(lines).rstrip() + "\n"


def _shortfall(row: Row) -> str:
    if row.ratio is None:
        return f"{row.what}, against {row.against.name}: not measured, {row.missing}."
    return f"{row.what}, against {row.against.name}: {row.ratio:.2f}, wanted {row.target}."


def _table(rows: Sequence[Row]) -> list[str]:
    lines = ["| what | ours | against | ratio | spread | target | met |", "|---|---:|---:|---:|---:|---|---|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    sides = [(row.what, side) for row in rows for side in (row.ours, row.against) if side.latency is not None]
    if sides:
        lines += ["", "| ms a call | p50 | p99 | p99.9 | noise |", "|---|---:|---:|---:|---:|"]
    seen: set[Side] = set()
    for what, side in sides:
        if side not in seen and side.latency is not None:
            seen.add(side)
            percentiles = " | ".join(f"{each:.3f}" for each in side.latency)
            lines.append(f"| {what}: {side.name} | {percentiles} | {side.spread:.0%} |")
    return lines


def _machine(results: Sequence[Result]) -> list[str]:
    lines: list[str] = []
    for result in results:
        machine = {name: value for name, value in result.machine.items() if not name.startswith("load_")}
        text = ", ".join(f"{name} {value}" for name, value in (machine | result.versions).items() if name != "flush_ms")
        if text not in lines:
            lines.append(text)
    return lines
