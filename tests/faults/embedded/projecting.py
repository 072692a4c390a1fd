"""A projection by itself, with no store: applied to, checkpointed, copied and exchanged; and what must hold however that ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from projections.engine import Projection
from projections.rows import Batch, RevisionRow
from projections.snapshot import private_copy, snapshot
from projections.stream import since
from tests.faults.embedded.notes import DONE, Notes, told
from tests.read_side.samples import batches, everything, log, opened

_FILE, _NEW, _SNAPSHOT = "p.duckdb", "new.duckdb", "s.duckdb"
_TIDY = {_FILE, f"{_FILE}.lock", f"{_NEW}.lock", _SNAPSHOT}


def _rows() -> list[RevisionRow]:
    return log(20, 5, event_size=3_000)


def _batches() -> Iterator[Batch]:
    return batches(_rows(), 20)


def projecting(notes: Notes, directory: str) -> None:
    place = Path(directory)
    with opened(place / _FILE) as projection:
        for number, batch in enumerate(_batches()):
            projection.apply(batch)
            notes.step(f"applied {sum(projection.positions().values())}", DONE)
            if number == 1:
                projection.checkpoint()
                snapshot(projection, place / _SNAPSHOT)
        snapshot(projection, place / _SNAPSHOT)
        notes.step("snapshot", DONE)
        new = opened(place / _NEW).open()
        for batch in _batches():
            new.apply(batch)
        projection.replace_with(new)
        notes.step("exchanged", DONE)


def check_projection(notes: Notes, directory: str, said: list[str]) -> None:
    """What was applied is there once, what a file's positions say is what it holds, and it goes on to the same answers."""
    place = Path(directory)
    heard = told(said)
    acknowledged = max((int(step.name.split()[1]) for step in heard.steps if step.name.startswith("applied")), default=0)
    if (place / _SNAPSHOT).exists():
        with opened(private_copy(place / _SNAPSHOT, place / "private")) as copied:
            _holds_what_it_says(copied, _rows())
        for each in (place / "private").iterdir():
            each.unlink()
        (place / "private").rmdir()
    else:
        assert not heard.done("snapshot")
    for left in (_NEW, f"{_NEW}.wal", f"{_NEW}.new", f"{_NEW}.new.wal"):
        (place / left).unlink(missing_ok=True)  # whoever rebuilds does so first: `Projector.rebuild`
    with opened(place / _FILE) as projection, opened(None) as undisturbed:
        reached = _holds_what_it_says(projection, _rows())
        assert reached >= acknowledged, f"{acknowledged} rows were acknowledged, {reached} are there"
        for batch in _batches():
            projection.apply(batch)
            undisturbed.apply(batch)
        assert everything(projection) == everything(undisturbed)
        snapshot(projection, place / _SNAPSHOT)
        notes.counted("rows reached", reached)
    left_over = {each.name for each in place.iterdir()} - _TIDY
    assert not left_over, f"left behind: {sorted(left_over)}"


def _holds_what_it_says(projection: Projection, rows: Sequence[RevisionRow]) -> int:
    positions = projection.positions()
    expected = [row for row in rows if row.offset < positions[row.partition]]
    found = [
        (each.partition, each.offset, each.event)
        for number, end in positions.items()
        for each in since(projection, number, 0, end, len(rows))
    ]
    assert sorted(found) == sorted((row.partition, row.offset, row.event) for row in expected)
    named = projection.query('SELECT partition, "offset", event_id::VARCHAR FROM revisions')
    assert sorted(named) == sorted((row.partition, row.offset, row.event_id) for row in expected)
    latest = {row.checkpoint_id: row for row in expected}
    heads = projection.heads(list(latest))
    assert {key: (head.revision, head.event) for key, head in heads.items()} == {
        key: (row.revision, row.event) for key, row in latest.items()
    }
    assert projection.query("SELECT count(*) FROM heads") == [(len(latest),)]
    return len(expected)
