"""Payloads that are not JSON are refused with the path, and nothing is written; what is JSON comes back exactly."""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest

from eventlog import CheckpointStore, InvalidPayload
from tests.store.samples import initial, nothing_written


class Colour(IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


def itself_list() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def itself_twice() -> list[Any]:
    value: list[Any] = []
    value += [value, value]
    return value


def itself_dict() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["deeper"] = [value]
    return value


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def shared(levels: int) -> Any:
    """Small in memory, 2^levels numbers as JSON."""
    value: Any = [1]
    for _ in range(levels):
        value = [value, value]
    return value


REFUSED: list[tuple[str, Any, str]] = [
    ("nan", {"a": [1, math.nan]}, "$.a[1]"),
    ("nan at the root", math.nan, "$"),
    ("infinity", {"a": {"b": math.inf}}, "$.a.b"),
    ("negative infinity", [-math.inf], "$[0]"),
    ("set", {"a": {1}}, "$.a"),
    ("frozenset", frozenset(), "$"),
    ("bytes", {"a": [b"x"]}, "$.a[0]"),
    ("bytearray", bytearray(b"x"), "$"),
    ("tuple", {"a": (1, 2)}, "$.a"),
    ("tuple at the root", (), "$"),
    ("complex", [1j], "$[0]"),
    ("Decimal", {"price": Decimal("1.5")}, "$.price"),
    ("datetime", {"at": datetime(2026, 1, 1, tzinfo=UTC)}, "$.at"),
    ("UUID", {"id": UUID(int=5)}, "$.id"),
    ("enum", {"c": Colour.RED}, "$.c"),
    ("subclass of text", {"c": Text("x")}, "$.c"),
    ("subclass of dict", OrderedDict(a=1), "$"),
    ("object", {"a b": object()}, '$["a b"]'),
    ("class", {"a": int}, "$.a"),
    ("lone surrogate", {"a": ["ok", "x\ud800y"]}, "$.a[1]"),
    ("low surrogate", {"a": {"b": "\udfff"}}, "$.a.b"),
    ("surrogate key", {"a": {"\ud800": 1}}, "$.a"),
    ("surrogate beside a big integer", {"n": 2**70, "a": "\ud800"}, "$.a"),
    ("number key", {"a": {1: "x"}}, "$.a"),
    ("None key", {None: 1}, "$"),
    ("bool key", {"a": [{True: 1}]}, "$.a[0]"),
    ("bytes key", {b"a": 1}, "$"),
    ("tuple key", {(1, 2): 1}, "$"),
    ("key that is a subclass of text", {"a": {Text("x"): 1}}, "$.a"),
    ("nan beside a big integer", {"n": 2**70, "a": math.nan}, "$.a"),
    ("list in itself", {"a": itself_list()}, "$.a[1][1]"),
    ("list twice in itself", itself_twice(), "$[0][0]"),
    ("dict in itself", itself_dict(), "$.deeper[0].deeper[0]"),
    ("too deep", deep(300), "$[0][0][0]"),
    ("much too deep", deep(100_000), "$[0][0][0]"),
]


@pytest.mark.parametrize(("payload", "path"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_what_is_not_json_is_refused_with_its_path(store: CheckpointStore, payload: Any, path: str) -> None:
    with nothing_written(store), pytest.raises(InvalidPayload) as caught:
        store.compare_and_swap(initial(payload) if payload != () else initial().next(()).model_copy(update={"revision": 0}), None)
    deep_path = "too" in str(caught.value) or "deeper" in str(caught.value)
    assert caught.value.path.startswith(path) if deep_path else caught.value.path == path
    assert str(caught.value).startswith(f"payload at {caught.value.path}: ")
    assert len(str(caught.value)) < 300


def test_a_bad_payload_leaves_the_checkpoint_as_it_was(store: CheckpointStore) -> None:
    first = initial()
    store.compare_and_swap(first, None)
    with nothing_written(store), pytest.raises(InvalidPayload):
        store.compare_and_swap(first.next({"a": {1}}), 0)
    assert store.load(first.id) == first
    store.compare_and_swap(first.next({"a": [1]}), 0)


def test_a_number_too_long_to_be_written_is_refused(store: CheckpointStore) -> None:
    with nothing_written(store), pytest.raises(InvalidPayload):
        store.compare_and_swap(initial({"n": 10**5000}), None)


EXACT: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    "",
    [],
    {},
    [[]],
    {"": None},
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    2**200,
    -(10**4000),
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    1e16,
    123456789.123456789,
    1.0,
    [2**70, 0.1, -0.0, 1e300, "é", None, True],
    "\x00\x01\x1f\x7f\u2028\ufeff\U0010ffff",
    {"\x00": "\x00", "a.b[0]": 1, "ключ": "значение", "🎉": "👩‍👩‍👧"},
    deep(150),
    {"n": 2**70, "s": "\u2028é🎉"},
    "x" * 1_000_000,
    [{"a": number, "b": [number / 7]} for number in range(5000)],
    {"phase": {"state": "ready"}},
]


@pytest.mark.parametrize(
    "payload", EXACT, ids=lambda value: repr(value)[:30].encode("ascii", "backslashreplace").decode().replace("\x00", "")
)
def test_what_is_json_comes_back_exactly(store: CheckpointStore, payload: Any) -> None:
    first = initial().model_copy(update={"payload": payload})
    receipt = store.compare_and_swap(first, None)
    loaded = store.load(first.id).payload
    assert repr(loaded) == repr(payload)
    assert repr(store.load(first.id, revision=0).payload) == repr(payload)
    assert store.compare_and_swap(first, None) == receipt._replace(duplicate=True)


@pytest.mark.parametrize("phase", ["two\nlines", "x" * 300, ""], ids=ascii)
def test_a_payload_whose_phase_is_no_phase_is_still_a_payload(store: CheckpointStore, phase: str) -> None:
    # Once: a phase that is too long is left out, one with a line break makes the whole payload be refused as an invalid `phase`.
    first = initial({"phase": phase})
    store.compare_and_swap(first, None)
    assert store.load(first.id).phase is None
