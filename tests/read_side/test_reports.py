"""Reports, the documented views, and SQL that people type."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from projections.engine import Projection
from projections.errors import InvalidQuery
from projections.reports import REPORTS, run
from projections.rows import Batch, GapRow, QuarantineRow
from tests.read_side.samples import START, batch_of, log, opened, row


@pytest.fixture
def projection(tmp_path: Path) -> Iterator[Projection]:
    with opened(tmp_path / "p.duckdb") as opened_one:
        yield opened_one


def test_every_report_says_what_it_answers_and_runs_without_parameters(projection: Projection) -> None:
    assert {"audit", "growth", "retention"} <= set(REPORTS)
    for report in REPORTS.values():
        assert report.title
        assert report.answers.endswith(".")
        table = run(projection, report.name)
        assert len(table.columns) == len(table.types) > 0
        for name in report.parameters:
            assert f"${name}" in report.sql


def test_growth_counts_revisions_by_kind_and_day(projection: Projection) -> None:
    day = 86_400_000
    midnight = START // day * day
    projection.apply(
        Batch(
            {0: 5},
            rows=[
                row(1, 0, offset=0, recorded_at=midnight + 1),
                row(1, 1, offset=1, recorded_at=midnight + day - 1),
                row(1, 2, offset=2, recorded_at=midnight + day, event_type="DELETED"),
                row(2, 0, offset=3, recorded_at=midnight + day, kind="acme.bill"),
                row(3, 7, offset=4, recorded_at=midnight + 2 * day, event_type="IMPORTED"),
            ],
        )
    )
    first = datetime.datetime.fromtimestamp(midnight / 1000, datetime.UTC).date()
    table = run(projection, "growth")
    kind = row(1).kind
    assert [line[:6] for line in table.rows] == [
        (first, kind, 2, 1, 1, 0),
        (first + datetime.timedelta(1), "acme.bill", 1, 1, 1, 0),
        (first + datetime.timedelta(1), kind, 1, 1, 0, 1),
        (first + datetime.timedelta(2), kind, 1, 1, 1, 0),
    ]
    assert table.rows[0][6:] == (2 * row(1).payload_size, 2 * row(1).stored_size)
    assert len(run(projection, "growth", {"since": midnight + day, "until": midnight + 2 * day, "kind": "acme.bill"}).rows) == 1


def test_the_audit_says_who_wrote_which_revision_in_the_logs_order(projection: Projection) -> None:
    projection.apply(
        Batch(
            {0: 3, 1: 2},
            rows=[
                row(1, 0, offset=0, recorded_at=START + 10, actor="alice"),
                row(1, 1, offset=1, recorded_at=START + 5, actor="bob"),  # the broker's clock went back: still second
                row(2, 0, offset=2, recorded_at=START + 30, tenant="north", kind="acme.bill"),
                row(3, 0, partition=1, offset=0, recorded_at=START + 20, actor=None),
            ],
        )
    )
    table = run(projection, "audit")
    place = [table.columns.index(name) for name in ("actor", "revision", "partition", "offset")]
    assert [tuple(line[column] for column in place) for line in table.rows] == [
        ("alice", 0, 0, 0),
        ("bob", 1, 0, 1),
        (None, 0, 1, 0),
        ("alice", 0, 0, 2),
    ]
    for parameters, expected in (
        ({"checkpoint": row(1).checkpoint_id}, 2),
        ({"run": row(3).run_id}, 1),
        ({"actor": "alice"}, 2),
        ({"kind": "acme.bill"}, 1),
        ({"tenant": "north"}, 1),
        ({"since": START + 10}, 3),
        ({"until": START + 10}, 1),
        ({"since": START + 10, "until": START + 30, "tenant": None}, 2),
        ({"limit": 1}, 1),
        ({"actor": "' OR 1=1 --"}, 0),
    ):
        assert len(run(projection, "audit", parameters).rows) == expected, parameters


def test_retention_says_what_is_held_by_tenant_kind_and_phase(projection: Projection) -> None:
    rows = [
        row(1, 0, offset=0, event_size=10),
        row(1, 1, offset=1, event_size=30, phase="done"),
        row(2, 0, offset=2, event_size=5, tenant="north"),
        row(3, 0, offset=3, event_size=7),
        row(3, 1, offset=4, event_size=0, event_type="DELETED", phase=None),
    ]
    projection.apply(batch_of(rows))
    table = run(projection, "retention")
    lines = [dict(zip(table.columns, line, strict=True)) for line in table.rows]
    assert [(line["tenant"], line["phase"], line["deleted"], line["checkpoints"], line["revisions"]) for line in lines] == [
        ("default", "done", False, 1, 2),
        ("default", None, True, 1, 2),
        ("north", "ready", False, 1, 1),
    ]
    assert (lines[0]["payload_bytes"], lines[0]["stored_bytes"]) == (80, 40)
    start = datetime.datetime.fromtimestamp(START / 1000, datetime.UTC)
    assert (lines[0]["oldest"], lines[0]["newest"]) == (start, start + datetime.timedelta(seconds=1))
    assert len(run(projection, "retention", {"tenant": "north"}).rows) == 1
    assert run(projection, "retention", {"kind": "none"}).rows == []


def test_recovery_lists_unfinished_runs_since_they_left_their_last_stable_phase(projection: Projection) -> None:
    agent: dict[str, Any] = {"kind": "eventlog.agent"}
    workflow: dict[str, Any] = {"kind": "eventlog.workflow"}
    rows = [
        row(1, 0, offset=0, phase="ready_for_turn", **agent),
        row(1, 1, offset=1, phase="turn_in_flight", **agent),
        row(1, 2, offset=2, phase="ready_for_turn", **agent),
        row(2, 0, offset=3, phase="waiting", tenant="north", **workflow),
        row(3, 0, offset=4, phase="turn_in_flight"),  # of another kind: no run
        row(4, 0, offset=5, phase="step_in_flight", **workflow),
        row(4, 1, offset=6, phase="step_in_flight", event_type="DELETED", **workflow),
        row(5, 0, offset=7, phase="ready", **workflow),
        row(1, 3, offset=8, phase="turn_in_flight", **agent),
        row(1, 4, offset=9, phase="turn_in_flight", **agent),
        row(6, 0, offset=10, phase="failed", **workflow),
    ]
    projection.apply(batch_of(rows))

    def found(**parameters: object) -> list[tuple[str, int, int]]:
        table = run(projection, "recovery", parameters)
        lines = [dict(zip(table.columns, line, strict=True)) for line in table.rows]
        return [(str(line["checkpoint_id"]), line["revision"], round(line["since"].timestamp() * 1000) - START) for line in lines]

    waiting, turn = (row(2).checkpoint_id, 0, 3000), (row(1).checkpoint_id, 4, 8000)
    assert found() == [waiting, turn]
    assert found(limit=1) == found(kind="eventlog.workflow") == found(tenant="north") == found(older_than=START + 8000) == [waiting]
    assert found(older_than=START + 8001) == [waiting, turn]


@pytest.mark.parametrize(
    ("name", "parameters", "named"),
    [
        ("growth2", {}, "growth2"),
        ("audit", {"colour": "blue"}, "colour"),
        ("audit", {"checkpoint": "x"}, "checkpoint"),
        ("audit", {"limit": "5"}, "limit"),
        ("audit", {"since": True}, "since"),
        ("retention", {"tenant": 5}, "tenant"),
    ],
)
def test_an_unknown_report_or_parameter_is_refused_by_name(
    projection: Projection, name: str, parameters: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidQuery, match=named):
        run(projection, name, parameters)


def test_people_can_query_the_views(projection: Projection) -> None:
    gap = GapRow(0, 9, row(1).checkpoint_id, 5, 6, "compaction")
    bad = QuarantineRow(1, 0, START, None, "bad", b"12", b"123")
    projection.apply(Batch({0: 10, 1: 1}, rows=[row(1, labels={"a": "b"})._replace(updated_at=2**62)], gaps=[gap], quarantined=[bad]))
    table = projection.sql("SELECT recorded_at, updated_at, labels['a'], usage['turns'], event_hash, deleted FROM checkpoint_heads")
    (line,) = table.rows
    assert table.types[0] == "TIMESTAMP WITH TIME ZONE"
    assert line == (datetime.datetime.fromtimestamp(START / 1000, datetime.UTC), None, "b", 0, row(1).event_hash.hex(), False)
    assert projection.sql("SELECT first_revision, reason FROM checkpoint_gaps").rows == [(5, "compaction")]
    assert projection.sql("SELECT reason, key_size, value_size, blocks FROM quarantined_records").rows == [("bad", 2, 3, True)]
    assert projection.sql("SELECT * FROM access_trail").rows == []
    assert projection.sql("FROM log_positions ORDER BY 1").rows[0] == (0, 10)
    assert "event" not in projection.sql("SELECT * FROM checkpoint_history").columns
    assert projection.sql("WITH x AS (SELECT 1 AS y) SELECT y FROM x, range(3)").rows == [(1,)] * 3
    assert projection.sql("DESCRIBE checkpoint_history").rows
    assert projection.sql("SELECT count(*) FROM information_schema.tables").rows


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM heads",
        "SELECT 1; SELECT 2",
        "",
        "SELECT 1; DROP TABLE heads",
        "SET threads = 1",
        "ATTACH '/tmp/x.duckdb'",
        "COPY heads TO '/tmp/x.parquet'",
        "CHECKPOINT",
        "PRAGMA version",
        "CALL checkpoint()",
        "SELECT * FROM checkpoint()",
        "SELECT * FROM query('DROP TABLE heads')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT (SELECT count(*) FROM glob('/*'))",
        "SELECT * FROM json_execute_serialized_sql('{}')",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT nonsense",
        "SELEKT 1",
        "SELECT * FROM nowhere",
        "INSERT INTO heads SELECT * FROM heads RETURNING *",
    ],
)
def test_people_can_only_select_from_this_projection(projection: Projection, statement: str) -> None:
    with pytest.raises(InvalidQuery):
        projection.sql(statement)
    projection.apply(batch_of([row(1)]))


def test_no_select_opens_the_projections_own_file(projection: Projection) -> None:
    # DuckDB allows it, and closing the descriptor would drop the process's lock on the file.
    for question in (
        "SELECT content FROM read_blob('{}')",
        "FROM '{}'",
        "FROM read_duckdb('{}')",
        "WITH a AS (FROM read_text('{}')) FROM a",
    ):
        with pytest.raises(InvalidQuery):
            projection.sql(question.format(projection.path))


def test_reports_read_the_same_from_every_build(tmp_path: Path) -> None:
    rows = log(60, 4)
    with opened(tmp_path / "a.duckdb") as one, opened(tmp_path / "b.duckdb") as other:
        one.apply(batch_of(rows))
        for item in rows:
            other.apply(batch_of([item]))
        for name in REPORTS:
            assert run(one, name) == run(other, name)
