"""After an erasure no byte of any file yields the payload, nor a key to it; before it, the same search finds everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import Deleted, HistoryRemoved, open_store
from eventlog.archive.anchors import take_anchor
from eventlog.archive.checking import check_archive
from eventlog.archive.compacting import compact
from eventlog.erasure.erasing import erase
from eventlog.erasure.selection import Selection
from eventlog.no_payload import PAYLOAD_ERASED
from eventlog.revision import Revision
from eventlog.verification import verify
from projections.snapshot import snapshot
from tests.erasure.planting import LARGE, LATE, SMALL, SUBJECT, archived, plant, sealed_bodies, secrets, shown


@pytest.mark.parametrize("compacted", [False, True], ids=["", "compacted"])
def test_no_byte_of_any_file_yields_what_was_erased(tmp_path: Path, directory: Path, encrypted: bool, compacted: bool) -> None:
    archive_directory = tmp_path / "archive"
    with open_store(directory, actor="writer") as store:
        planted = plant(store)
        archive = archived(store, archive_directory)
        wanted = secrets(store, planted) | sealed_bodies(store, planted)
        if compacted:
            compact(store, archive, hold_ms=0)
        projection = store.catalog.projection()
        snapshot(projection, directory / "snapshot.duckdb")
        before = shown(directory, wanted, tmp_path) | shown(archive_directory, wanted, tmp_path)
        if encrypted:  # sealed bodies and wrapped keys are there, neither plain text nor a key in hand is
            assert set(before) == {name for name in wanted if name.startswith(("body", "wrapped"))}
        else:
            assert set(before) == set(wanted)
        anchor = take_anchor(store.log)
        kept = {each.id: store.load(each.id) for each in planted.others}

        certificate = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason="request 4711")

        assert shown(directory, wanted, tmp_path) == {}, "while it is open, write-ahead logs included"
        assert shown(archive_directory, wanted, tmp_path) == {}
        assert sorted(end.checkpoint_id for end in certificate.checkpoints) == sorted(each.id for each in planted.victims)
        assert certificate.revisions == 5 + 4 + 2
        assert {place.place for place in certificate.places} == {"log", "memory", "projection", "archive"} | (
            {"keys"} if encrypted else set()
        )
        for each in planted.victims:
            with pytest.raises(Deleted):
                store.load(each.id)
            with pytest.raises(HistoryRemoved, match="erased"):
                store.load(each.id, revision=0)
            trail = list(store.history(each.id))
            assert all(isinstance(one, Revision) for one in trail)
            assert [one.checkpoint.payload for one in trail] == [PAYLOAD_ERASED] * (len(trail) - 1) + [None]  # type: ignore[union-attr]
            assert trail[-1].type == "DELETED"  # type: ignore[union-attr]
        assert {each.id: store.load(each.id) for each in planted.others} == kept
        for each in planted.others:
            assert len(list(store.history(each.id))) == each.revision + 1
        found = verify(store, archive=archive, anchor=anchor)
        assert found.is_clean, found.faults
        assert found.erased == certificate.revisions
        assert check_archive(archive).erased == certificate.revisions
        store.catalog.rebuild(archive=archive)
        found = verify(store, archive=archive, anchor=anchor)
        assert found.is_clean, found.faults
    assert shown(directory, wanted, tmp_path) == {}, "closed, snapshot written"
    with open_store(directory) as store:
        assert verify(store, archive=archive, anchor=anchor).is_clean
    assert {SMALL, LARGE, LATE} <= set(wanted)
