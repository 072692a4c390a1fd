"""Rotation wraps every data key anew, whatever happens meanwhile, and touches no event."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from eventlog import CheckpointStore, KeysUnavailable, create_store, open_store
from eventlog.privacy import rotation
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.keys import WrappedKey
from eventlog.privacy.providers import provider_of
from eventlog.privacy.rotation import KeyCount, rotate, status
from tests.privacy.conftest import OpenStore, keys_of
from tests.store.samples import initial, stream


def versions(keys: DataKeys) -> set[str]:
    return {count.version for count in status(keys.table, keys.provider)}


def rotated(store: CheckpointStore) -> rotation.Rotated:
    return rotate(keys_of(store).table, keys_of(store).provider)


def test_every_key_is_wrapped_anew_while_others_read_and_the_log_stays_as_it_is(
    opening: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "BATCH", 3)
    store, other = opening(), opening()
    written = [stream(store, 2) for _ in range(8)]
    end = store.position()
    assert status(keys_of(store).table, keys_of(store).provider) == [KeyCount("", "1", True, 1), KeyCount("default", "1", True, 8)]
    read = 0

    def meanwhile(_: int) -> None:
        nonlocal read
        keys_of(other).clear()
        for each in written:
            assert other.load(each[0].id, revision=0) == each[0]
            read += 1

    done = rotate(keys_of(store).table, keys_of(store).provider, progress=meanwhile)
    assert (done.rewrapped, done.new_version) == (9, True)
    assert read == 24
    assert versions(keys_of(store)) == {"2"}
    assert store.position() == end
    following = initial()
    other.compare_and_swap(following, None)  # by a process that was open before
    assert versions(keys_of(store)) == {"2"}
    third = opening()
    assert third.load(following.id) == following
    assert [third.load(each[0].id) for each in written] == [each[-1] for each in written]
    assert rotated(third).new_version
    assert versions(keys_of(third)) == {"3"}


class Killed(Exception):
    pass


def test_one_that_was_cut_off_goes_on_with_the_same_version(opening: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "BATCH", 2)
    store = opening()
    written = [stream(store, 1)[0] for _ in range(5)]

    def stop(_: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        rotate(keys_of(store).table, keys_of(store).provider, progress=stop)
    assert versions(keys_of(store)) == {"1", "2"}
    other = opening()
    assert [other.load(each.id) for each in written] == written
    done = rotated(other)
    assert (done.rewrapped, done.new_version) == (4, False)
    assert versions(keys_of(other)) == {"2"}
    assert [opening().load(each.id) for each in written[:1]] == written[:1]


def test_a_key_that_is_destroyed_in_the_middle_stays_destroyed(opening: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store, eraser = opening(), opening()
    (gone,), (stays,) = stream(store, 1), stream(store, 1)
    table = keys_of(store).table
    replace = table.replace

    def destroyed_before(pairs: Sequence[tuple[WrappedKey, WrappedKey]]) -> int:
        assert any(old.checkpoint_id == gone.id for old, _ in pairs)
        keys_of(eraser).table.destroy(gone.id)
        return replace(pairs)

    monkeypatch.setattr(table, "replace", destroyed_before)
    assert rotated(store).rewrapped == 2  # the store's own, and that of the other checkpoint
    after = opening()
    assert not keys_of(after).table.of(gone.id)
    assert after.load(stays.id) == stays


def test_keys_in_a_token_are_rotated_for_each_tenant(token: str, tmp_path: Path) -> None:
    provider = provider_of(token)
    create_store(tmp_path / "store", encryption=provider)
    provider.close()
    with open_store(tmp_path / "store") as store:
        written = [initial({"of": tenant}, tenant=tenant) for tenant in ("north", "south", "north")]
        for each in written:
            store.compare_and_swap(each, None)
        keys = keys_of(store)
        before = status(keys.table, keys.provider)
        assert [(count.tenant, count.version.partition("/")[0], count.keys) for count in before] == [
            ("", "1", 1),
            ("north", "1", 2),
            ("south", "1", 1),
        ]
        assert rotated(store).rewrapped == 4
        assert [count.version.partition("/")[0] for count in status(keys.table, keys.provider)] == ["2", "2", "2"]
        keys.clear()
        assert [store.load(each.id) for each in written] == written


def test_a_variable_is_rotated_once_it_holds_a_new_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import base64
    import os

    name = "EVENTLOG_TEST_KEY"
    first, second = (base64.b64encode(os.urandom(32)).decode() for _ in range(2))
    monkeypatch.setenv(name, first)
    create_store(tmp_path / "store", encryption=provider_of(f"env:{name}"))
    with open_store(tmp_path / "store") as store:
        (written,) = stream(store, 1)
        with pytest.raises(KeysUnavailable, match="no version behind 1"):
            rotated(store)
    monkeypatch.setenv(name, f"1:{first},2:{second}")
    with open_store(tmp_path / "store") as store:
        assert rotated(store).rewrapped == 2
    monkeypatch.setenv(name, f"2:{second}")
    with open_store(tmp_path / "store") as store:
        assert store.load(written.id) == written
