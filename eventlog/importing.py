"""Import of checkpoints from Runifold, a Rust agent runtime: SQLite, one row a checkpoint, the latest revision only.

    runifold_checkpoints(checkpoint_id TEXT PRIMARY KEY, revision INTEGER, record_json TEXT)

Id, run, revision, kind, schema version and payload are kept; the stream starts here with an IMPORTED event at that revision. The event
id is derived from the content, so that a second run finds everything already there.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from eventlog.checkpoint import DEFAULT_TENANT, LAST_REVISION, Checkpoint, from_millis, phase_of
from eventlog.errors import CheckpointError, ConfigurationError, ErrorKind, InvalidPayload, InvalidRequest, SchemaMismatch, StorageError
from eventlog.ids import CheckpointId, EventId, RunId, content_id
from eventlog.store import CheckpointStore

USER_VERSION = 2  # what Runifold 0.4 stamps
LABELS = {"imported_from": "runifold"}
# What is wrong with one checkpoint and not with the store: it is reported, and the others go on.
REFUSALS = frozenset(
    {
        ErrorKind.NOT_FOUND,
        ErrorKind.CONFLICT,
        ErrorKind.INVALID_PAYLOAD,
        ErrorKind.INVALID_REQUEST,
        ErrorKind.TOO_LARGE,
        ErrorKind.QUARANTINED,
        ErrorKind.HISTORY_REMOVED,
    }
)
_PAGE = 100  # rows of one short read, so that a Runifold that is running is never kept from cleaning up its journal
_LAST_MILLIS = 253_402_300_799_999  # the end of the year 9999, where datetime ends
_FIELDS = {"id": str, "revision": int, "run_id": str, "kind": str, "schema_version": int, "payload": object, "updated_at_ms": int}


class RejectedRow(NamedTuple):
    """A row that could not be imported, and why."""

    checkpoint_id: str
    revision: int | None
    reason: str


@dataclass
class ImportSummary:
    """What an import did."""

    imported: int = 0
    already_there: int = 0
    rejected: list[RejectedRow] = field(default_factory=list)


def import_runifold(store: CheckpointStore, path: Path, *, progress: Callable[[int, int], None] | None = None) -> ImportSummary:
    """Copies every checkpoint of a Runifold SQLite file into a store. The file is only read.

    Arguments:
        progress: called after each row with the rows done and the rows there are.

    A row that this store cannot hold is reported and does not stop the others. Raises `ConfigurationError` or `SchemaMismatch` when the
    file is not Runifold's, `StorageError` when it cannot be read, and what the store raises when nothing can be written at all.
    """
    summary = ImportSummary()
    total, rows = _read(path)
    for done, (checkpoint_id, revision, text) in enumerate(rows, 1):
        try:
            receipt = store.import_revision(_checkpoint(checkpoint_id, revision, text, store.tenant or DEFAULT_TENANT))
            if receipt.duplicate:
                summary.already_there += 1
            else:
                summary.imported += 1
        except CheckpointError as error:
            if error.kind not in REFUSALS:
                raise  # the log, not the row; running the import again is safe
            number = revision if isinstance(revision, int) else None
            summary.rejected.append(RejectedRow(str(checkpoint_id)[:80], number, str(error)))
        if progress is not None:
            progress(done, total)
    return summary


def parse_json(text: str | bytes) -> Any:
    """JSON from somewhere else, strictly: no NaN, no number beyond a float, no key twice; integers of any size stay exact.

    Raises `InvalidPayload`.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise InvalidPayload("$", f"is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise InvalidPayload("$", "is nested too deeply") from error
    except ValueError as error:
        raise InvalidPayload("$", f"is not JSON: {error}") from error


def _read(path: Path) -> tuple[int, Iterator[tuple[Any, Any, Any]]]:
    if not path.is_file():
        raise InvalidRequest("file", f"{path} is not a file")
    try:
        with closing(_connect(path)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            columns = [row[1] for row in connection.execute("PRAGMA table_info(runifold_checkpoints)")]
            if columns != ["checkpoint_id", "revision", "record_json"]:
                found = f"its columns are {', '.join(columns)}" if columns else "there is none"
                raise ConfigurationError(
                    f"{path} is not a Runifold store: no table runifold_checkpoints(checkpoint_id, revision, record_json), {found}",
                    hint="Name the SQLite file of a Runifold runtime.",
                )
            if version != USER_VERSION:
                raise SchemaMismatch(f"{path} has format {version}; this version reads Runifold's format {USER_VERSION}")
            (total,) = connection.execute("SELECT count(*) FROM runifold_checkpoints").fetchone()
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    return total, _rows(path)


def _rows(path: Path) -> Iterator[tuple[Any, Any, Any]]:
    after = ""
    page = "SELECT checkpoint_id, revision, record_json FROM runifold_checkpoints WHERE checkpoint_id > ? ORDER BY checkpoint_id LIMIT ?"
    try:
        with closing(_connect(path)) as connection:
            while rows := connection.execute(page, (after, _PAGE)).fetchall():
                yield from rows
                after = rows[-1][0]
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=10, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _translated(error: sqlite3.Error, path: Path) -> CheckpointError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return ConfigurationError(f"{path} is not a sound SQLite database: {error}", hint="Name the SQLite file of a Runifold runtime.")
    return StorageError(str(path), f"cannot be read: {error}")


def _checkpoint(checkpoint_id: Any, revision: Any, text: Any, tenant: str) -> Checkpoint:
    """A row as a checkpoint of ours. Raises `InvalidRequest` or `InvalidPayload`."""
    record = parse_json(text) if isinstance(text, str | bytes) else None
    if not isinstance(record, dict):
        raise InvalidRequest("record_json", "is not a JSON object")
    for name, wanted in _FIELDS.items():
        if name not in record:
            raise InvalidRequest(f"record_json.{name}", "is missing")
        if not isinstance(record[name], wanted) or (isinstance(record[name], bool) and wanted is int):
            raise InvalidRequest(f"record_json.{name}", f"is a {type(record[name]).__name__}, not {wanted.__name__}")
    identity = CheckpointId(record["id"])
    if CheckpointId(str(checkpoint_id)) != identity or revision != record["revision"]:
        raise InvalidRequest("record_json", f"says checkpoint {identity} revision {record['revision']}; its columns say otherwise")
    if record["revision"] > LAST_REVISION:
        raise InvalidRequest("revision", f"{record['revision']} is not within 0 to 2^63-1")
    if not 0 <= record["updated_at_ms"] <= _LAST_MILLIS:
        raise InvalidRequest("updated_at_ms", f"{record['updated_at_ms']} is no time of the years 1970 to 9999")
    canonical = json.dumps({name: record[name] for name in _FIELDS}, sort_keys=True, ensure_ascii=True)
    return Checkpoint(
        id=identity,
        run_id=RunId(record["run_id"]),
        revision=record["revision"],
        kind=record["kind"],
        schema_version=record["schema_version"],
        payload=record["payload"],
        updated_at=from_millis(record["updated_at_ms"]),
        event_id=EventId(content_id("runifold", tenant, canonical)),
        tenant=tenant,
        labels=dict(LABELS),
        phase=phase_of(record["payload"]),
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond what a number can hold")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)[:80]!r} occurs twice")
    return parsed
