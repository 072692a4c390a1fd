"""Reports: one SQL file each in this folder, whose comment header says what it answers and what it can be asked.

    -- title: Audit
    -- answers: Who wrote which revision of what, and when, in the log's order.
    -- parameter tenant text: only this tenant

Every parameter is optional; one that is not given is NULL in the SQL and does not filter. A new report is a new file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from projections.database import Table
from projections.engine import Projection
from projections.errors import InvalidQuery
from projections.question import require_uuid

_PYTHON_TYPES = {"uuid": str, "text": str, "integer": int, "time": int}
_TITLE = re.compile(r"^-- title: (.+)$", re.MULTILINE)
_ANSWERS = re.compile(r"^-- answers: (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"^-- parameter (\w+) (uuid|text|integer|time): (.+)$", re.MULTILINE)


class Parameter(NamedTuple):
    """One parameter: its type (uuid | text | integer | time, the latter in milliseconds since 1970 UTC) and what it does."""

    type: str
    purpose: str


class Report(NamedTuple):
    """One report, as its file describes it."""

    name: str
    title: str
    answers: str
    parameters: dict[str, Parameter]
    sql: str


def _read(path: Path) -> Report:
    sql = path.read_text(encoding="utf-8")
    title, answers = _TITLE.search(sql), _ANSWERS.search(sql)
    if title is None or answers is None:
        raise ValueError(f"{path} lacks its title or answers line")
    parameters = {name: Parameter(kind, purpose) for name, kind, purpose in _PARAMETER.findall(sql)}
    return Report(path.stem, title[1], answers[1], parameters, sql)


REPORTS: dict[str, Report] = {path.stem: _read(path) for path in sorted(Path(__file__).parent.glob("*.sql"))}


def run(projection: Projection, name: str, parameters: Mapping[str, object] | None = None) -> Table:
    """Run a report and return its table.

    Args:
        projection: an open projection.
        name: one of `REPORTS`.
        parameters: values by name; what is absent or None does not filter.

    Raises:
        InvalidQuery: the report or a parameter is unknown, or a value has the wrong type.
    """
    report = REPORTS.get(name)
    if report is None:
        raise InvalidQuery(f"unknown report {name!r}: known are {', '.join(REPORTS)}")
    values: dict[str, object] = dict.fromkeys(report.parameters)
    for key, value in (parameters or {}).items():
        if key not in report.parameters:
            raise InvalidQuery(f"report {name} has no parameter {key!r}: known are {', '.join(report.parameters)}")
        values[key] = _checked(key, report.parameters[key].type, value)
    return projection.table(report.sql, values)


def _checked(name: str, kind: str, value: object) -> object:
    if value is None:
        return None
    if not isinstance(value, _PYTHON_TYPES[kind]) or isinstance(value, bool):
        raise InvalidQuery(f"parameter {name} must be {kind}, not {value!r}")
    return require_uuid(name, value) if kind == "uuid" and isinstance(value, str) else value
