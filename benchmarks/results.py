"""Results as files: one a benchmark, with every round, the machine, the versions and the date; and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.row import Latency, Row, Sample, Side, Target

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found in one run."""

    benchmark: str
    title: str
    date: str  # UTC, ISO 8601
    quick: bool
    rounds: int
    seconds: float
    machine: dict[str, Any]
    versions: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def save(result: Result, directory: Path) -> Path:
    """Writes a result; it replaces the benchmark's earlier one."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.benchmark}.json"
    text = json.dumps(
        {
            "benchmark": result.benchmark,
            "title": result.title,
            "date": result.date,
            "quick": result.quick,
            "rounds": result.rounds,
            "seconds": round(result.seconds, 1),
            "machine": result.machine,
            "versions": result.versions,
            "notes": result.notes,
            "rows": [_row_to_json(row) for row in result.rows],
        },
        indent=2,
    )
    path.write_text(text + "\n", encoding="utf-8")
    return path


def load_all(directory: Path, order: Sequence[str]) -> list[Result]:
    """The results in a directory, in the order of the benchmarks' names."""
    found = {}
    for path in directory.glob("*.json"):
        each = json.loads(path.read_text(encoding="utf-8"))
        found[each["benchmark"]] = Result(**{**each, "rows": [_row_from_json(row) for row in each["rows"]]})
    return [found[name] for name in order if name in found]


def _row_to_json(row: Row) -> dict[str, Any]:
    target = row.target
    return {
        "key": row.key,
        "what": row.what,
        "unit": row.unit,
        "ours": _side_to_json(row.ours),
        "against": _side_to_json(row.against),
        "ratio": row.ratio,
        "ratios": row.ratios,
        "target": None if target is None else {"bound": target.bound, "ratio": target.ratio, "aim": target.aim},
        "met": row.met,
        "missing": row.missing,
    }


def _row_from_json(found: dict[str, Any]) -> Row:
    target = found["target"]
    return Row(
        found["key"],
        found["what"],
        found["unit"],
        _side_from_json(found["ours"]),
        _side_from_json(found["against"]),
        None if target is None else Target(**target),
        found["missing"],
    )


def _side_to_json(side: Side) -> dict[str, Any]:
    return {"name": side.name, "rounds": [_sample_to_json(sample) for sample in side.samples]}


def _sample_to_json(sample: Sample) -> dict[str, Any]:
    found: dict[str, Any] = {"value": _short(sample.value)}
    if sample.latency is not None:
        found["ms"] = {name: _short(value) for name, value in sample.latency._asdict().items()}
    return found


def _side_from_json(found: dict[str, Any]) -> Side:
    samples = [Sample(each["value"], Latency(**each["ms"]) if "ms" in each else None) for each in found["rounds"]]
    return Side(found["name"], tuple(samples))


def _short(value: float) -> float:
    """Six digits: more would be noise."""
    return float(f"{value:.6g}")
