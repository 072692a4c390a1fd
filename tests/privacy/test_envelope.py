"""A sealed payload opens where it was sealed for and nowhere else."""

from __future__ import annotations

import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import Corrupted
from eventlog.privacy.envelope import Place, associated_data, seal, unseal
from eventlog.privacy.keys import DataKey, KeyCache

KEY = bytes(range(32))
NONCE = bytes(12)
PLACE = Place("default", "checkpoint", 3, "acme.order", 1, "event", "json+zstd", 4711, "key")
OTHER: dict[str, Any] = {
    "tenant": "north",
    "checkpoint_id": "another",
    "revision": 4,
    "kind": "acme.invoice",
    "schema_version": 2,
    "event_id": "later",
    "encoding": "json",
    "payload_size": 4712,
    "key_id": "spare",
}
PLACES = st.builds(
    Place,
    st.text(),
    st.text(),
    st.integers(0, 2**63 - 1),
    st.text(),
    st.integers(0, 2**31),
    st.text(),
    st.text(),
    st.integers(0, 2**40),
    st.text(),
)


@given(st.binary(), PLACES)
def test_it_opens_where_it_was_sealed(payload: bytes, place: Place) -> None:
    sealed = seal(AESGCM(KEY), NONCE, place, payload)
    assert len(sealed) == len(payload) + 16
    assert unseal(AESGCM(KEY), NONCE, place, sealed) == payload


def test_every_field_of_a_place_is_tried() -> None:
    assert set(OTHER) == set(Place._fields)


@pytest.mark.parametrize("field", OTHER)
def test_it_opens_nowhere_else(field: str) -> None:
    sealed = seal(AESGCM(KEY), NONCE, PLACE, b"payload")
    with pytest.raises(Corrupted, match="altered, or sealed for another place"):
        unseal(AESGCM(KEY), NONCE, PLACE._replace(**{field: OTHER[field]}), sealed)


@pytest.mark.parametrize("change", [lambda sealed: sealed[:-1], lambda sealed: bytes([sealed[0] ^ 1]) + sealed[1:], lambda _: b""])
def test_what_was_altered_does_not_open(change: Any) -> None:
    with pytest.raises(Corrupted):
        unseal(AESGCM(KEY), NONCE, PLACE, change(seal(AESGCM(KEY), NONCE, PLACE, b"payload")))


@pytest.mark.parametrize("nonce", [b"", b"x", bytes(range(12)), bytes(200)])
def test_another_nonce_does_not_open_it(nonce: bytes) -> None:
    with pytest.raises(Corrupted):
        unseal(AESGCM(KEY), nonce, PLACE, seal(AESGCM(KEY), NONCE, PLACE, b"payload"))


@given(PLACES, PLACES)
def test_no_two_places_have_the_same_bytes(one: Place, other: Place) -> None:
    assert (associated_data(one) == associated_data(other)) == (one == other)


def test_texts_that_run_into_each_other_are_two_places() -> None:
    assert associated_data(PLACE._replace(tenant="ab", checkpoint_id="c")) != associated_data(
        PLACE._replace(tenant="a", checkpoint_id="bc")
    )


def fields() -> dict[str, Any]:
    return {name: value for name, value in PLACE._asdict().items() if name != "key_id"}


def test_a_payload_is_sealed_anew_each_time() -> None:
    key = DataKey(checkpoint_id=PLACE.checkpoint_id, key_id=PLACE.key_id, key=KEY)
    nonces, sealed = set(), set()
    for _ in range(200):
        event = fields()
        sealed.add(key.seal(event, b"payload"))
        nonces.add(event["encryption"]["nonce"])
    assert len(nonces) == len(sealed) == 200


def test_threads_may_share_a_key() -> None:
    key = DataKey(checkpoint_id=PLACE.checkpoint_id, key_id=PLACE.key_id, key=KEY)

    def both_ways(number: int) -> bool:
        event, payload = fields(), str(number).encode() * 500
        sealed = key.seal(event, payload)
        return key.unseal(PLACE, event["encryption"]["nonce"], sealed) == payload

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(both_ways, range(2000)))


def test_a_key_is_shown_by_nothing() -> None:
    secret = b"0123456789abcdef0123456789ABCDEF"
    key = DataKey(checkpoint_id="checkpoint", key_id="key", key=secret)
    with pytest.raises(Corrupted) as raised:
        key.unseal(PLACE, NONCE, b"nothing of this key's at all")
    shown = "".join(traceback.format_exception(raised.value)) + repr(key) + str(key) + repr(vars(raised.value))
    assert "0123456789abcdef" not in shown
    assert secret.hex() not in shown
    assert not hasattr(key, "__dict__")
    with pytest.raises(TypeError, match="does not leave its process"):
        pickle.dumps(key)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def named(checkpoint_id: str, key_id: str = "key") -> DataKey:
    return DataKey(checkpoint_id=checkpoint_id, key_id=key_id, key=KEY)


def test_a_cached_key_is_gone_when_its_time_is_up_however_often_it_is_used() -> None:
    clock = Clock()
    cache = KeyCache(entries=10, seconds=300, clock=clock)
    cache.put(named("a"))
    for clock.now in range(299):
        assert cache.get("a", "key") is not None
    clock.now = 300
    assert cache.get("a") is None
    assert len(cache) == 0


def test_a_second_key_does_not_keep_the_first_for_longer() -> None:
    clock = Clock()
    cache = KeyCache(entries=10, seconds=300, clock=clock)
    cache.put(named("a", "first"))
    clock.now = 200
    cache.put(named("a", "second"))
    assert cache.get("a", "first") is not None
    clock.now = 301
    assert cache.get("a", "first") is cache.get("a", "second") is None


def test_the_cache_is_bounded_and_can_be_emptied() -> None:
    cache = KeyCache(entries=3)
    for name in "abcd":
        cache.put(named(name))
    assert [name for name in "abcd" if cache.get(name) is not None] == ["b", "c", "d"]
    cache.forget("c")
    assert cache.get("c") is None
    cache.clear()
    assert len(cache) == 0
