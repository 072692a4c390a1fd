"""How strictly accesses are recorded: chosen when a store is made, remembered, tightened at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import AccessMode, CheckpointStore, ConfigurationError, InvalidRequest, create_store, open_store
from eventlog.address import KafkaAddress, parse_address
from eventlog.embedded_files import ACCESS_FILE
from eventlog.kafka.access import create_access_topic
from tests.access.samples import trail
from tests.store.samples import initial, stream


def mode(store: CheckpointStore) -> AccessMode:
    return AccessMode.OFF if store.recorder is None else store.recorder.mode


@pytest.mark.parametrize("chosen", AccessMode)
def test_a_store_remembers_its_mode(tmp_path: Path, chosen: AccessMode) -> None:
    create_store(tmp_path / "store", access=chosen)
    with open_store(tmp_path / "store") as store:
        assert mode(store) is chosen


@pytest.mark.parametrize("chosen", AccessMode)
@pytest.mark.parametrize("wanted", AccessMode)
def test_it_can_be_tightened_at_open_and_not_loosened(tmp_path: Path, chosen: AccessMode, wanted: AccessMode) -> None:
    create_store(tmp_path / "store", access=chosen)
    if wanted.strictness < chosen.strictness:
        with pytest.raises(ConfigurationError, match="would be less"):
            open_store(tmp_path / "store", access=wanted)
        return
    with open_store(tmp_path / "store", access=wanted) as store:
        assert mode(store) is wanted
        last = stream(store, 1)[-1]
        if wanted is not AccessMode.OFF:
            assert len(trail(store, checkpoint=str(last.id))) == 1


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="mode"):
        create_store(tmp_path / "store", access="sometimes")
    create_store(tmp_path / "store")
    with pytest.raises(InvalidRequest, match="mode"):
        open_store(tmp_path / "store", access="sometimes")


def test_an_access_log_that_is_gone_or_another_file_is_refused_by_name(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="buffered")
    access = tmp_path / "store" / ACCESS_FILE
    kept = access.read_bytes()
    access.unlink()
    with pytest.raises(ConfigurationError, match=ACCESS_FILE):
        open_store(tmp_path / "store")
    access.write_bytes((tmp_path / "store" / "log.sqlite3").read_bytes())
    with pytest.raises(ConfigurationError, match=ACCESS_FILE):
        open_store(tmp_path / "store")
    access.write_bytes(kept)
    open_store(tmp_path / "store").close()


def test_another_access_log_is_not_taken_for_the_one_that_was_followed(tmp_path: Path) -> None:
    for name in ("store", "other"):
        create_store(tmp_path / name, access="strict")
        with open_store(tmp_path / name) as store:
            stream(store, 2)
            assert trail(store)
    (tmp_path / "store" / ACCESS_FILE).write_bytes((tmp_path / "other" / ACCESS_FILE).read_bytes())
    with open_store(tmp_path / "store") as store, pytest.raises(ConfigurationError, match="access log"):
        trail(store)


def test_a_store_whose_making_was_cut_off_before_its_log_was_there_can_be_made_again(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="strict")
    (tmp_path / "store" / "log.sqlite3").unlink()
    create_store(tmp_path / "store", access="buffered")
    with open_store(tmp_path / "store") as store:
        store.compare_and_swap(initial(), None)
        assert mode(store) is AccessMode.BUFFERED
        assert len(trail(store)) == 1


def test_an_access_log_whose_log_is_gone_is_nobodys_to_write_over(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="strict")
    with open_store(tmp_path / "store") as store:
        stream(store, 2)
    for each in (tmp_path / "store").glob("log.sqlite3*"):
        each.unlink()
    kept = (tmp_path / "store" / ACCESS_FILE).read_bytes()
    for access in ("strict", "off"):
        with pytest.raises(ConfigurationError, match=ACCESS_FILE):
            create_store(tmp_path / "store", access=access)
    assert (tmp_path / "store" / ACCESS_FILE).read_bytes() == kept


def test_an_access_topic_that_a_creation_left_is_used_by_the_next_one_alone(broker: str, topic: str, tmp_path: Path) -> None:
    address = f"kafka://{broker}/{topic}?state={tmp_path}"
    where = parse_address(address)
    assert isinstance(where, KafkaAddress)
    create_access_topic(where, mode=AccessMode.STRICT, replication=1)  # killed here: there is no log yet, so nothing to open unrecorded
    for access in ("off", "buffered"):
        with pytest.raises(ConfigurationError, match=f"{topic}.access"):
            create_store(address, partitions=1, access=access)
    create_store(address, partitions=1, access="strict")
    with open_store(address) as store:
        stream(store, 2)
        assert trail(store)


def test_two_processes_share_an_access_log(tmp_path: Path) -> None:
    from tests.store.other_process import calling

    create_store(tmp_path / "store", access="strict")
    with open_store(tmp_path / "store", actor="root") as store:
        last = stream(store, 1)[-1]
        assert calling(str(tmp_path / "store"), ("load", (last.id,), {})) == [last]
        assert [row["subject"] for row in trail(store, checkpoint=str(last.id))] == ["root", "another process"]


def test_a_topic_remembers_its_mode_and_cannot_be_loosened(broker: str, topic: str, tmp_path: Path) -> None:
    addresses = {}
    for chosen in (AccessMode.OFF, AccessMode.BUFFERED, AccessMode.STRICT):
        addresses[chosen] = f"kafka://{broker}/{topic}-{chosen}?state={tmp_path / chosen}"
        create_store(addresses[chosen], partitions=1, access=chosen)
        with open_store(addresses[chosen]) as store:
            assert mode(store) is chosen
    with pytest.raises(ConfigurationError, match="would be less"):
        open_store(addresses[AccessMode.STRICT], access="buffered")
    with pytest.raises(ConfigurationError, match="no access topic"):
        open_store(addresses[AccessMode.OFF], access="strict")
    with open_store(addresses[AccessMode.BUFFERED], access="strict") as store:
        assert mode(store) is AccessMode.STRICT


def test_a_projection_that_has_followed_an_access_topic_misses_it(broker: str, topic: str, tmp_path: Path) -> None:
    from kafka import KafkaAdminClient

    address = f"kafka://{broker}/{topic}?state={tmp_path}"
    create_store(address, partitions=1, access="buffered")
    with open_store(address) as store:
        stream(store, 1)
        assert trail(store)
    admin = KafkaAdminClient(bootstrap_servers=broker)
    try:
        admin.delete_topics([f"{topic}.access"])
    finally:
        admin.close()
    with pytest.raises(ConfigurationError, match="was deleted"):
        open_store(address)


def test_an_access_topic_with_other_settings_is_refused_listing_every_difference(broker: str, topic: str, tmp_path: Path) -> None:
    from kafka import KafkaAdminClient

    create_store(f"kafka://{broker}/{topic}?state={tmp_path}", partitions=1)
    admin = KafkaAdminClient(bootstrap_servers=broker)
    try:
        wrong = {"cleanup.policy": "compact", "retention.ms": "1000", "flush.messages": "7", "message.timestamp.type": "CreateTime"}
        admin.create_topics({f"{topic}.access": {"num_partitions": 2, "replication_factor": 1, "configs": wrong}})
    finally:
        admin.close()
    with pytest.raises(ConfigurationError) as refused:
        open_store(f"kafka://{broker}/{topic}?state={tmp_path}")
    told = "\n".join(refused.value.differences)
    for name in ("cleanup.policy", "retention.ms", "flush.messages", "partitions", "message.timestamp.type"):
        assert name in told
