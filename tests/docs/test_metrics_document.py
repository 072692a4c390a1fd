"""docs/metrics.md and the registry have the same metrics, with the same labels; its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from eventlog.metrics import registry
from eventlog.metrics.survey import families
from tests.docs.test_documents import REPOSITORY, environment

PAGE = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(eventlog_\w+)` \| (.*)$", PAGE, re.MULTILINE))


def test_every_metric_is_on_the_page_and_nothing_else() -> None:
    there = {metric.name + ("_total" if metric.type == "counter" else "") for metric in [*registry().collect(), *families()]}
    assert set(ROWS) == there


def test_every_label_is_explained_where_it_is_used() -> None:
    for metric in registry().collect():
        row = ROWS[metric.name + ("_total" if metric.type == "counter" else "")]
        for sample in metric.samples:
            for label, value in sample.labels.items():
                if label not in ("log", "le"):
                    assert f"`{label}`" in row, metric.name
                    assert f"`{value}`" in row, metric.name


def test_every_metric_says_what_to_do() -> None:
    for name, row in ROWS.items():
        meaning, advice = row.strip(" |").split(" | ")
        assert len(meaning) > 20, name
        assert len(advice) > 20, name


def test_the_pages_program_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("http://127.0.0.1:")
