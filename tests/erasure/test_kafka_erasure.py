"""The same on Kafka: at once from everything but the topic, and from the topic when it is compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from eventlog import CheckpointStore, Deleted, create_store, open_store
from eventlog.archive.checking import check_archive
from eventlog.erasure.applying import apply_register
from eventlog.erasure.erasing import erase
from eventlog.erasure.finishing import finish
from eventlog.erasure.selection import Selection
from eventlog.no_payload import PAYLOAD_ERASED
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.verification import verify
from projections.snapshot import snapshot
from tests.conftest import OwnBroker
from tests.erasure.planting import SUBJECT, Planted, archived, plant, sealed_bodies, secrets, shown
from tests.store.samples import initial
from tests.waiting import eventually

_HOLD_MS = 100
_AT_ONCE = {
    "min.compaction.lag.ms": str(_HOLD_MS),
    "max.compaction.lag.ms": str(2 * _HOLD_MS),
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "100",
}


def make_impatient(bootstrap: str, *topics: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.alter_configs([ConfigResource("TOPIC", topic, configs=_AT_ONCE) for topic in topics])
    finally:
        admin.close()


def is_clear(data: Path, wanted: dict[str, bytes], scratch: Path) -> bool:
    """Whether no file of a running broker shows any of these. False while it deletes one that is being looked at."""
    try:
        return shown(data, wanted, scratch) == {}
    except FileNotFoundError:
        return False


def others_are_whole(store: CheckpointStore, planted: Planted) -> None:
    for each in planted.others:
        assert store.load(each.id).payload == each.payload
        assert len(list(store.history(each.id))) == each.revision + 1


@pytest.mark.parametrize("encrypted", [False, True], ids=["in clear text", "encrypted"])
def test_a_topic_lets_go_of_what_was_erased_when_it_is_compacted(tmp_path: Path, own_broker: OwnBroker, encrypted: bool) -> None:
    broker = own_broker()
    (tmp_path / "keys").mkdir()
    key_file = KeyFile(path=tmp_path / "keys" / "key.json") if encrypted else None
    state, kept_in = tmp_path / "state", tmp_path / "archive"
    where = f"kafka://{broker.bootstrap}/orders"
    address = f"{where}?state={state}"
    create_store(address, partitions=1, replication=1, encryption=key_file)
    data = broker.data
    with open_store(address, actor="writer") as store:
        planted = plant(store)
        archive = archived(store, kept_in)
        snapshot(store.catalog.projection(), state / "snapshot.duckdb")
        wanted = secrets(store, planted) | sealed_bodies(store, planted)
        if encrypted:
            wanted = {name: each for name, each in wanted.items() if not name.startswith("key")}
        planted_there = {name for name in wanted if not encrypted or name.startswith(("body", "wrapped"))}
        assert set(shown(data, wanted, tmp_path)) == planted_there, "it can see"
        assert shown(state, wanted, tmp_path)
        assert shown(kept_in, wanted, tmp_path)

        certificate = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason="request 4711")

        assert certificate.revisions == 11
        assert certificate.bytes_gone_at is None
        assert certificate.bytes_due_at is not None
        assert (certificate.keys_destroyed_at is not None) == encrypted
        assert shown(state, wanted, tmp_path) == {}
        assert shown(kept_in, wanted, tmp_path) == {}
        assert [(each.records > 0, each.certificate) for each in finish(store)] == [(True, None)]
        for each in planted.victims:
            with pytest.raises(Deleted):
                store.load(each.id)
            assert [one.checkpoint.payload for one in store.history(each.id)][:-1] == [PAYLOAD_ERASED] * (each.revision + 1)  # type: ignore[union-attr]
        others_are_whole(store, planted)
        found = verify(store, archive=archive)
        assert found.is_clean, found.faults
        assert check_archive(archive).erased == certificate.revisions
        store.catalog.rebuild()  # while the topic still holds it
        store.catalog.rebuild(archive=archive)
        found = verify(store, archive=archive)
        assert found.is_clean, found.faults
    assert shown(state, wanted, tmp_path) == {}
    for path in (*state.glob("projection.duckdb*"), *state.glob("snapshot*")):
        path.unlink()
    with open_store(address) as store:  # reads the topic from its beginning
        assert store.history(planted.victims[0].id)
        store.list()
        others_are_whole(store, planted)
    assert shown(state, wanted, tmp_path) == {}

    elsewhere = tmp_path / "elsewhere"  # another state directory, which knows nothing of it
    with open_store(f"{where}?state={elsewhere}") as store:
        store.list()
    assert bool(shown(elsewhere, wanted, tmp_path)), "as the certificate says"
    (elsewhere / "erasures.jsonl").write_bytes((state / "erasures.jsonl").read_bytes())
    with open_store(f"{where}?state={elsewhere}") as store:
        assert apply_register(store).emptied > 0
    assert shown(elsewhere, wanted, tmp_path) == {}

    make_impatient(broker.bootstrap, "orders")
    with open_store(f"{address}&hold_ms={_HOLD_MS}", actor="writer") as store:  # else it would take what is compacted for tampered with
        if encrypted:
            make_impatient(broker.bootstrap, "orders.keys")

        def gone() -> bool:
            store.compare_and_swap(initial({"filler": 1}), None)
            return all(each.certificate for each in finish(store))

        eventually(gone, seconds=120)
        eventually(lambda: is_clear(data, wanted, tmp_path), seconds=60)
        assert finish(store) == []
        for each in planted.victims:
            with pytest.raises(Deleted):
                store.load(each.id)
        others_are_whole(store, planted)
        assert verify(store, archive=archive).is_clean
