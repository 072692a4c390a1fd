"""The rights that eventlog/kafka/rights.py lists are enough for each role, and without any one of them the error names it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlog import AuditUnavailable, KeyFile, MissingRight, create_store, open_store
from eventlog.address import KafkaAddress, parse_address
from eventlog.backup.making import backup
from eventlog.backup.restoring import restore
from eventlog.erasure.erasing import erase
from eventlog.erasure.selection import Selection
from eventlog.errors import CheckpointError, ErrorKind, Retry
from eventlog.kafka.client import admin, discard, plain_producer, translated
from eventlog.kafka.keys_topic import check_topics
from eventlog.kafka.rights import BRINGS, KafkaRole, Operation, Resource, Right, rights_of
from eventlog.kafka.tail import read_until
from eventlog.kafka.topic import TopicSpec, create_topic, describe
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.access_retention import prune_accesses
from eventlog.privacy.rotation import rotate
from tests.kafka_log.samples import initial
from tests.security.secured import SecuredBroker

_AT_ONCE = 8.0  # seconds: less than any time-out of the client's

Work = Callable[[], None]


class Store:
    """A store on the secured broker, as its administrator and one user reach it."""

    def __init__(self, broker: SecuredBroker, topic: str, folder: Path, *, encrypted: bool = False, recorded: bool = False) -> None:
        self.broker = broker
        self.topic = topic
        self.folder = folder
        self.encrypted = encrypted
        self.recorded = recorded
        self.user = f"user-{uuid.uuid4().hex[:8]}"
        self.password = broker.user(self.user)
        self.keys = KeyFile(path=folder / "keys.json") if encrypted else None

    def inside(self, topic: str | None = None) -> str:
        return self.broker.plain_address(topic or self.topic, door="INSIDE", state=self._state())

    def outside(self, topic: str | None = None) -> str:
        return self.broker.address(self.user, self.password, topic or self.topic, state=self._state())

    def at(self, suffix: str) -> KafkaAddress:
        where = parse_address(self.outside())
        assert isinstance(where, KafkaAddress)
        return replace(where, topic=self.topic + suffix)

    def make(self) -> None:
        access = AccessMode.STRICT if self.recorded else AccessMode.OFF
        create_store(self.inside(), partitions=1, encryption=self.keys, access=access)

    def _state(self) -> str:
        return str(self.folder / uuid.uuid4().hex)


def writing(store: Store) -> Work:
    def work() -> None:
        with open_store(store.outside()) as opened:
            checkpoint = initial({"phase": "ready"})
            opened.compare_and_swap(checkpoint, None)
            assert opened.load(checkpoint.id).payload == {"phase": "ready"}

    store.make()
    return work


def reading(store: Store) -> Work:
    store.make()
    checkpoint = initial({"phase": "ready"})
    with open_store(store.inside()) as opened:
        opened.compare_and_swap(checkpoint, None)

    def work() -> None:
        with open_store(store.outside()) as opened:
            assert opened.load(checkpoint.id).payload == {"phase": "ready"}
            assert opened.catalog.sql("SELECT count(*) FROM checkpoint_heads").rows == [(1,)]

    return work


def rotating(store: Store) -> Work:
    store.make()
    checkpoint = initial()
    with open_store(store.inside()) as opened:
        opened.compare_and_swap(checkpoint, None)

    def work() -> None:
        with open_store(store.outside()) as opened:
            assert opened.keys is not None
            assert rotate(opened.keys.table, opened.keys.provider).rewrapped == 2  # the checkpoint's, and the store's own

    return work


def pruning(store: Store) -> Work:
    store.make()
    soon = datetime.now(UTC) + timedelta(hours=1)

    def work() -> None:
        with open_store(store.inside()) as opened:
            opened.list()
        with open_store(store.outside()) as opened:
            assert prune_accesses(opened, soon).removed > 0

    return work


def erasing(store: Store) -> Work:
    store.make()

    def work() -> None:
        checkpoint = initial({"phase": "ready"})
        with open_store(store.inside()) as opened:
            opened.compare_and_swap(checkpoint, None)
        with open_store(store.outside()) as opened:
            erase(opened, Selection.of_checkpoints(checkpoint.id), actor="dpo", reason="request 4711")

    return work


def auditing(store: Store) -> Work:
    """By the parts that reading the access log is made of. There is no other topic at all."""
    inside = parse_address(store.inside(store.topic + ".access"))
    assert isinstance(inside, KafkaAddress)
    create_topic(inside, spec=TopicSpec(), partitions=1)
    _append(inside)

    def work() -> None:
        where = store.at(".access")
        client = admin(where)
        try:
            topic_id = describe(client, where).topic_id
        finally:
            client.close()
        assert [record.value for records, _ in read_until(where, topic_id, {0: 0}, {0: 1}) for record in records] == [b"accessed"]

    return work


def recording(store: Store) -> Work:
    """What a reader or a writer does with the access log besides."""
    inside = parse_address(store.inside(store.topic + ".access"))
    assert isinstance(inside, KafkaAddress)
    create_topic(inside, spec=TopicSpec(), partitions=1)

    def work() -> None:
        where = store.at(".access")
        client = admin(where)
        try:
            describe(client, where)
        finally:
            client.close()
        _append(where)

    return work


def _append(where: KafkaAddress) -> None:
    producer = plain_producer(where)
    try:
        with translated(where, Operation.WRITE):
            producer.send(where.topic, key=b"k", value=b"accessed", partition=0).get(timeout=11)
    finally:
        discard(producer)


def require_each(store: Store, rights: list[Right], work: Work) -> None:
    """With all of them the work is done; without any one of them the error says which."""
    store.broker.grant(store.user, rights)
    work()
    for right in rights:
        store.broker.revoke(store.user, [right])
        begun = time.monotonic()
        with pytest.raises((MissingRight, AuditUnavailable)) as caught:
            work()
        assert time.monotonic() - begun < _AT_ONCE, right
        error = caught.value.__cause__ if isinstance(caught.value, AuditUnavailable) else caught.value
        assert isinstance(error, MissingRight)
        assert caught.value.hint == error.hint
        require_named(error, right, store)
        store.broker.grant(store.user, [right])
    work()


def require_named(error: MissingRight, right: Right, store: Store) -> None:
    assert error.operation in (right.operation, BRINGS.get(right.operation)), (error, right)
    assert error.resource == right.resource, (error, right)
    assert error.name.startswith(right.name) if right.prefixed else error.name == right.name, (error, right)
    assert error.principal == f"User:{store.user}"
    assert (error.kind, error.retry) == (ErrorKind.DENIED, Retry.NEVER)
    assert f"--allow-principal 'User:{store.user}' --operation {error.operation} " in error.hint
    assert store.password not in f"{error} {error!r} {error.hint} {error.__cause__} {error.__cause__!r}"


@pytest.mark.parametrize(("encrypted", "recorded"), [(False, False), (True, False), (False, True)], ids=["clear", "encrypted", "recorded"])
@pytest.mark.parametrize(("role", "prepare"), [(KafkaRole.WRITER, writing), (KafkaRole.READER, reading)])
def test_a_writer_and_a_reader_need_each_of_their_rights_and_no_more(
    secured: SecuredBroker, topic: str, tmp_path: Path, role: KafkaRole, prepare: Callable[[Store], Work], encrypted: bool, recorded: bool
) -> None:
    store = Store(secured, topic, tmp_path, encrypted=encrypted, recorded=recorded)
    require_each(store, rights_of(role, topic, encrypted=encrypted, recorded=recorded), prepare(store))


def test_whoever_prunes_the_access_log_needs_each_of_its_rights_and_no_more(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    store = Store(secured, topic, tmp_path, recorded=True)
    require_each(store, rights_of(KafkaRole.PRUNER, topic, recorded=True), pruning(store))


@pytest.mark.parametrize("encrypted", [False, True], ids=["clear", "encrypted"])
def test_an_operator_needs_each_of_its_rights_and_no_more(secured: SecuredBroker, topic: str, tmp_path: Path, encrypted: bool) -> None:
    """For every work a topic of its own, so that each begins with nothing."""
    store = Store(secured, topic, tmp_path, encrypted=encrypted)
    made = 0

    def attempt(missing: Right | None) -> None:
        nonlocal made
        made += 1
        store.topic = f"{topic}-{made}"
        rights = rights_of(KafkaRole.OPERATOR, store.topic, encrypted=encrypted)
        if missing is not None:
            missing = missing._replace(name=missing.name.replace(topic, store.topic))
            rights.remove(missing)
        secured.grant(store.user, rights)
        where = parse_address(store.outside())
        assert isinstance(where, KafkaAddress)

        def work() -> None:
            create_store(where, partitions=1, encryption=store.keys)
            assert check_topics(where) == []

        if missing is None:
            work()
            return
        with pytest.raises(MissingRight) as caught:
            work()
        require_named(caught.value, missing, store)

    attempt(None)
    for right in rights_of(KafkaRole.OPERATOR, topic, encrypted=encrypted):
        attempt(right)


def test_whoever_rotates_keys_needs_each_of_its_rights_and_no_more(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    store = Store(secured, topic, tmp_path, encrypted=True)
    require_each(store, rights_of(KafkaRole.KEYS, topic, encrypted=True), rotating(store))


def test_whoever_erases_has_the_rights_of_a_writer_of_keys_and_of_an_auditor(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    store = Store(secured, topic, tmp_path, encrypted=True, recorded=True)
    work = erasing(store)
    roles = (KafkaRole.WRITER, KafkaRole.KEYS, KafkaRole.AUDITOR)
    secured.grant(store.user, [right for role in roles for right in rights_of(role, topic, encrypted=True, recorded=True)])
    work()


def test_whoever_restores_needs_each_of_its_rights_and_no_more(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    """Each time into topics of their own. What is deleted is what a restore has left that could not be finished."""
    store = Store(secured, topic, tmp_path, encrypted=True, recorded=True)
    store.make()
    with open_store(store.inside()) as opened:
        opened.compare_and_swap(initial({"phase": "ready"}), None)
        backup(opened, tmp_path / "backup", keys_to=tmp_path / "wrapped-keys")
    rights = rights_of(KafkaRole.RESTORER, topic, encrypted=True, recorded=True)
    made = 0

    def attempt(missing: Right | None, *, anew: bool = True) -> CheckpointError | None:
        nonlocal made
        made += anew
        store.topic = f"{topic}-{made}"
        given = [right._replace(name=right.name.replace(topic, store.topic)) for right in rights if right != missing]
        secured.grant(store.user, given)
        try:
            restore(tmp_path / "backup", store.outside(), without_register="nothing was erased", keys_from=tmp_path / "wrapped-keys")
        except (MissingRight, AuditUnavailable) as error:
            return error
        finally:
            secured.revoke(store.user, given)
        return None

    unfinished = next(right for right in rights if (right.name, right.operation) == (topic, Operation.ALTER_CONFIGS))
    for right in rights:
        if right.operation is Operation.DELETE:
            assert attempt(unfinished) is not None
        error = attempt(right, anew=right.operation is not Operation.DELETE)
        found = error.__cause__ if isinstance(error, AuditUnavailable) else error
        assert isinstance(found, MissingRight), right
        require_named(found, right._replace(name=right.name.replace(topic, store.topic)), store)
    assert attempt(None) is None


def test_an_auditor_reads_the_access_log_with_no_right_on_any_other_topic(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    store = Store(secured, topic, tmp_path)
    rights = rights_of(KafkaRole.AUDITOR, topic, recorded=True)
    assert {right.name for right in rights} == {f"{topic}.access"}
    require_each(store, rights, auditing(store))


def test_whoever_uses_a_store_that_records_accesses_may_write_them_and_not_read_them(
    secured: SecuredBroker, topic: str, tmp_path: Path
) -> None:
    store = Store(secured, topic, tmp_path)
    every = [rights_of(role, topic, recorded=True) for role in (KafkaRole.WRITER, KafkaRole.READER, KafkaRole.KEYS)]
    recorded = [[right for right in rights if right.name == f"{topic}.access"] for rights in every]
    assert recorded[0] == recorded[1] == recorded[2]
    require_each(store, recorded[0], recording(store))


def test_an_operator_makes_the_access_log(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    store = Store(secured, topic, tmp_path)
    rights = [right for right in rights_of(KafkaRole.OPERATOR, topic, recorded=True) if right.name == f"{topic}.access"]
    with pytest.raises(MissingRight) as caught:
        create_topic(store.at(".access"), spec=TopicSpec(), partitions=1)
    assert (caught.value.operation, caught.value.name) == (Operation.CREATE, f"{topic}.access")
    secured.grant(store.user, rights)
    create_topic(store.at(".access"), spec=TopicSpec(), partitions=1)


def test_an_encrypted_store_whose_topic_of_keys_may_not_be_seen_is_not_taken_for_one_in_clear_text(
    secured: SecuredBroker, topic: str, tmp_path: Path
) -> None:
    store = Store(secured, topic, tmp_path, encrypted=True)
    store.make()
    secured.grant(store.user, [right for right in rights_of(KafkaRole.WRITER, topic) if right.name != f"{topic}.keys"])
    with pytest.raises(MissingRight) as caught:
        open_store(store.outside())
    assert (caught.value.operation, caught.value.resource, caught.value.name) == ("Describe", Resource.TOPIC, f"{topic}.keys")


def test_a_client_is_let_in_by_its_certificate_and_has_the_rights_of_its_name(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    store = Store(secured, topic, tmp_path)
    store.make()
    secured.grant("CN=client", rights_of(KafkaRole.WRITER, topic))
    address = secured.plain_address(
        topic,
        door="MUTUAL",
        security_protocol="SSL",
        ssl_cafile=str(secured.authority),
        ssl_certfile=str(secured.folder / "client.pem"),
        state=str(tmp_path / "state"),
    )
    with open_store(address) as opened:
        assert opened.compare_and_swap(initial(), None).revision == 0
