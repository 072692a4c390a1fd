"""What others rely on, held in text files: a change of it shows in a diff, and is made on purpose.

After a change that is meant: `EVENTLOG_UPDATE_SNAPSHOTS=1 python -m pytest tests/test_snapshots.py`, then read the diff of the files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import os
import re
import sqlite3
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import eventlog
import eventlog.testing
from eventlog import errors, recovery, retention
from eventlog.embedded_files import create
from eventlog.errors import CheckpointError
from eventlog.metrics import registry
from eventlog.metrics.survey import families

SNAPSHOTS = Path(__file__).parent / "snapshots"
SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"


def exports(module: ModuleType = eventlog) -> Iterator[str]:
    """Every public name, what it is, and how it is called."""
    for name in sorted(module.__all__):
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            yield f"def {name}{inspect.signature(thing)}"
        elif not inspect.isclass(thing):
            yield f"{name} = {thing}"
        elif issubclass(thing, Enum):
            yield f"enum {name}: {', '.join(f'{each.name}={each.value}' for each in thing)}"
        else:
            yield from _class(name, thing)


def _class(name: str, cls: Any) -> Iterator[str]:
    yield f"class {name}({', '.join(base.__name__ for base in cls.__bases__)})"
    if hasattr(cls, "model_fields"):
        for field, info in cls.model_fields.items():
            annotation = re.sub(r" at 0x[0-9a-f]+", "", repr(info.annotation))  # of a validator's function
            yield f"    {field}: {annotation}, {'required' if info.is_required() else 'optional'}"
    elif hasattr(cls, "_fields"):
        for field in cls._fields:
            note = cls.__annotations__[field]
            yield f"    {field}: {getattr(note, '__forward_arg__', note)}"
    elif dataclasses.is_dataclass(cls):
        for each in dataclasses.fields(cls):
            given = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
            yield f"    {each.name}: {each.type}, {'required' if given else 'optional'}"
    elif issubclass(cls, CheckpointError):
        yield f"    __init__{inspect.signature(cls.__init__)}"
    for member, value in sorted(_members(cls).items()):
        if member.startswith("_") or (member in getattr(cls, "_fields", ())):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function) and member != "model_post_init":
            kind = "classmethod " if isinstance(value, classmethod) else ""
            yield f"    {kind}{member}{inspect.signature(function)}"
        elif isinstance(value, property):
            yield f"    property {member}"


def _members(cls: Any) -> dict[str, Any]:
    """Its own, and what it has from bases that are not public themselves."""
    hidden = [base for base in cls.__mro__[1:] if base.__module__.startswith("eventlog.recovery") and base.__name__ not in recovery.__all__]
    return {name: value for base in (*reversed(hidden), cls) for name, value in vars(base).items()}


def error_table() -> Iterator[str]:
    """Class, what it is a kind of, kind, retry rule, hint."""

    def lines(cls: type[CheckpointError], depth: int) -> Iterator[str]:
        yield f"{'  ' * depth}{cls.__name__} | {cls.kind.value} | {cls.retry.value} | {cls.hint}"
        for child in sorted(cls.__subclasses__(), key=lambda each: each.__name__):
            if child.__module__ in (errors.__name__, recovery.errors.__name__):
                yield from lines(child, depth + 1)

    return lines(CheckpointError, 0)


def avro_schemas() -> Iterator[str]:
    """Released schemas are never edited, not even a comment: a change is a new version beside them."""
    for path in sorted(SCHEMAS.glob("*.avsc")):
        yield f"{path.name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    for path in sorted((SCHEMAS / "golden").glob("*.bin")):
        yield f"golden/{path.name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"


def embedded_format() -> Iterator[str]:
    """The tables and settings of an embedded log, as they stand in its file."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        create(Path(directory))
        connection = sqlite3.connect(Path(directory) / "log.sqlite3")
        for pragma in ("application_id", "user_version", "journal_mode", "page_size", "encoding", "auto_vacuum"):
            yield f"{pragma} = {connection.execute(f'PRAGMA {pragma}').fetchone()[0]}"
        for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"):
            yield from sql.splitlines()
        yield "meta: " + ", ".join(key for (key,) in connection.execute("SELECT key FROM meta ORDER BY key"))
        connection.close()


def metrics() -> Iterator[str]:
    """Every metric: its type, labels and their values, and the bounds of its buckets; dashboards and alerts are made of them."""
    for metric in sorted([*registry().collect(), *families()], key=lambda each: each.name):
        yield f"{metric.type} {metric.name}: {metric.documentation}"
        if metric.type == "gauge":
            continue  # their series are those of the stores that happen to be open
        seen = dict.fromkeys((each.name, tuple(each.labels.items())) for each in metric.samples if not each.name.endswith("_created"))
        for name, labels in seen:
            yield f"    {name}{{{', '.join(f'{label}={value}' for label, value in labels)}}}"


TAKEN = {
    "exports": exports,
    "testing_exports": lambda: exports(eventlog.testing),
    "recovery_exports": lambda: exports(recovery),
    "retention_exports": lambda: exports(retention),
    "errors": error_table,
    "schemas": avro_schemas,
    "embedded_format": embedded_format,
    "metrics": metrics,
}


@pytest.mark.parametrize("name", TAKEN)
def test_it_is_what_it_was(name: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    found = "\n".join(line.rstrip() for line in TAKEN[name]()) + "\n"
    if os.environ.get("EVENTLOG_UPDATE_SNAPSHOTS") == "1":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"see {Path(__file__).name} for how to change {path.name} on purpose"
