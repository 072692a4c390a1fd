"""The benchmarks run, measure every row that they promise, and write what they found. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

SIZES = ("1kb", "20kb", "200kb")
OTHERS = ("plain", "eventsourcing", "postgres", "postgres-saver", "redis", "umadb")
PEERS = ("saver", *OTHERS)
CALLERS = ("16-threads", "16-async-callers", "100-async-callers", "1000-async-callers")
ROWS = {
    "embedded-commit": [f"embedded-commit-{size}-{other}" for size in SIZES for other in (*PEERS, "floor")],
    "embedded-callers": [
        *(f"embedded-callers-{callers}" for callers in CALLERS),
        *(f"embedded-callers-{callers}-{peer}" for peer in PEERS for callers in (16, 100)),
    ],
    "embedded-load": [f"embedded-load-{size}{other}" for size in SIZES for other in ("", *(f"-{peer}" for peer in OTHERS))],
    "embedded-history": [f"embedded-history-{size}{other}" for size in SIZES for other in ("", *(f"-{peer}" for peer in OTHERS))],
    "embedded-disk": [f"embedded-disk-{what}" for what in ("live", "closed", *PEERS)],
    "embedded-encryption": [f"embedded-encryption-{size}" for size in SIZES],
    "embedded-rebuild": ["embedded-rebuild"],
    "embedded-turn": [f"embedded-turn-{size}" for size in SIZES],
    "embedded-access": [
        f"embedded-access-{what}-{mode}-{callers}" for what in ("load", "commit") for mode in ("buffered", "strict") for callers in (1, 16)
    ],
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=300
    )


def test_a_quick_run_measures_every_embedded_row(tmp_path: Path) -> None:
    finished = run("--quick", "--only", "embedded", "--out", str(tmp_path), "--directory", str(tmp_path))

    assert finished.returncode == 0, finished.stdout + finished.stderr
    found: dict[str, Any] = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")}
    assert {name: [row["key"] for row in result["rows"]] for name, result in found.items()} == ROWS
    for result in found.values():
        assert result["quick"] is True
        assert result["machine"]["cores"] >= 1
        assert result["versions"]["sqlite"]
        assert result["date"]
        for row in result["rows"]:
            assert row["ours"]["rounds"], row["key"]
            assert all(each["value"] > 0 for each in row["ours"]["rounds"])
            if row["missing"] is None:
                assert row["ratio"] > 0
                assert row["against"]["rounds"]
            else:  # the bench extra or a server is not installed here: said, not left out
                assert row["ratio"] is None
                assert "is not installed" in row["missing"]
                assert row["missing"] in " ".join(finished.stdout.split())


def test_an_unknown_benchmark_is_refused_with_the_names_that_exist() -> None:
    finished = run("--only", "nonsense")

    assert finished.returncode == 2
    assert "embedded-commit" in finished.stdout
