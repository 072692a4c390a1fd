"""Putting new forms of wrapped keys into their topic: one process at a time, and never a key that was destroyed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from eventlog.address import KafkaAddress
from eventlog.errors import Unavailable
from eventlog.kafka import keys_record as record
from eventlog.kafka.client import REQUEST_TIMEOUT_MS, TransactionalProducer, begin_commit, discard, producer, translated
from eventlog.kafka.rights import Operation
from eventlog.privacy.keys import WrappedKey

_ANSWER_SECONDS = 11.0  # the client gives up by itself after 10
_RECORD_BYTES = 1 << 16


def fenced(address: KafkaAddress) -> TransactionalProducer:
    """The only transactional producer of a topic of keys. Raises `Unavailable`.

    Whoever had it before cannot append anything any more; what it had not committed is undone.
    """
    owner = producer(address, transactional_id=_transactional_id(address), max_event_bytes=_RECORD_BYTES)
    try:
        with translated(address, Operation.WRITE, transactional_id=_transactional_id(address)):
            owner.init_transactions()
    except BaseException:
        discard(owner)
        raise
    return owner


class Rotation:
    """Replaces wrapped keys. Holds the topic's transactional producer, and what was committed when it got it, from the first call on."""

    def __init__(self, *, address: KafkaAddress, committed: Callable[[], dict[bytes, WrappedKey]]) -> None:
        self._address = address
        self._read_committed = committed
        self._owner: TransactionalProducer | None = None
        self._committed: dict[bytes, WrappedKey] = {}
        self._lock = threading.Lock()

    def replace(self, pairs: Sequence[tuple[WrappedKey, WrappedKey]]) -> int:
        """One transaction: every new form whose old one is still there. Raises `KafkaError` or `Unavailable`: then it may be tried again.

        The steps stand in this order: take the producer, so that nobody else replaces anything, then read what is committed, then write. A
        key that was destroyed before is not there to be replaced; one that is destroyed after has fenced this producer first, or its null
        value stands behind what is written here.
        """
        with self._lock:
            try:
                if self._owner is None:
                    self._owner = fenced(self._address)
                    self._committed = self._read_committed()
                keys = [(record.key_of(old), old, new) for old, new in pairs]
                self._write({key: new for key, old, new in keys if self._committed.get(key) == old})
                return sum(self._committed.get(key) == new for key, _, new in keys)
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _write(self, changed: dict[bytes, WrappedKey]) -> None:
        owner = self._owner
        if owner is None or not changed:
            return
        with translated(self._address, Operation.WRITE, transactional_id=_transactional_id(self._address)):
            owner.begin_transaction()
            sends = [owner.send(self._address.topic, key=key, value=record.encode(new), partition=0) for key, new in changed.items()]
            for send in sends:
                send.get(timeout=_ANSWER_SECONDS)
            answered = threading.Event()
            result = begin_commit(owner, lambda _: answered.set())
            if not answered.wait(REQUEST_TIMEOUT_MS / 1000 + 1) or not result.succeeded:
                raise Unavailable(str(self._address), f"the commit was not confirmed: {result.exception or 'no answer'}")
        self._committed.update(changed)

    def _drop(self) -> None:
        owner, self._owner = self._owner, None
        self._committed = {}
        if owner is not None:
            discard(owner)


def _transactional_id(address: KafkaAddress) -> str:
    return f"{address.topic}-rotation"
