"""A file that an earlier version wrote is brought up to date where it is: it may hold history that no log has any more.

`files/format-N*.duckdb.gz` were written by the code of format N: what `applied` applies.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from projections import identity
from projections.engine import Projection
from projections.errors import ProjectionError
from projections.rows import Batch, GapRow, QuarantineRow, RevisionRow
from tests.read_side.samples import START, batch_of, batches, everything, growing, identifier, log, opened, settle_all

FILES = Path(__file__).parent / "files"
BATCH = 7


def unpacked(name: str, directory: Path) -> Path:
    path = directory / "old.duckdb"
    path.write_bytes(gzip.decompress((FILES / name).read_bytes()))
    return path


def applied(projection: Projection) -> list[RevisionRow]:
    """What was applied to the file when it was made."""
    rows = log(6, 5, event_size=200)
    for batch in batches(rows, BATCH):
        projection.apply(batch)
    end = 1 + max(item.offset for item in rows if item.partition == 0)
    gap = GapRow(0, end, identifier("checkpoint", 0), 5, 6, "compaction")
    bad = QuarantineRow(0, end + 1, START, identifier("checkpoint", 4), "foreign writer", b"k", b"v")
    projection.apply(Batch({0: end + 3}, gaps=[gap], quarantined=[bad]))
    return rows


@pytest.mark.parametrize(
    ("name", "keep_events"),
    [(f"format-{number}{what}.duckdb.gz", not what) for number in (1, 2) for what in ("", "-without-events")],
)
def test_a_file_of_an_earlier_format_answers_as_one_of_today(tmp_path: Path, name: str, keep_events: bool) -> None:
    old = unpacked(name, tmp_path)
    with opened(tmp_path / "new.duckdb", keep_events=keep_events) as today:
        rows = applied(today)
        with opened(old, keep_events=keep_events) as upgraded:
            assert everything(upgraded) == everything(today)
            settle_all(upgraded)
            assert everything(upgraded) == everything(today)
            upgraded.apply(batch_of(rows))  # replay is harmless
            more = growing(3, checkpoint=99, start=100)
            upgraded.apply(batch_of(more))
            today.apply(batch_of(more))
            after = everything(upgraded)
            assert after == everything(today)
        with opened(old, keep_events=keep_events) as upgraded:
            assert everything(upgraded) == after


def test_an_upgrade_that_is_cut_off_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = unpacked("format-1.duckdb.gz", tmp_path)
    with monkeypatch.context() as patched:
        whole = (Path(identity.__file__).parent / "upgrade_from_1.sql").read_text()
        patched.setattr(identity, "script", lambda _: whole + "SELECT no_such_column;")
        with pytest.raises(ProjectionError):
            opened(old).open()
    with opened(old) as upgraded, opened(tmp_path / "new.duckdb") as today:
        applied(today)
        assert everything(upgraded) == everything(today)
