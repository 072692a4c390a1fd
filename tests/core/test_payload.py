"""Payloads: any JSON value comes back as it was, anything else is refused with a path that leads to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog import payload
from eventlog.errors import Corrupted, InvalidPayload, SchemaMismatch
from tests.core.json_values import JSON, SPOILED

REPOSITORY = Path(__file__).resolve().parents[2]


@given(JSON)
@example(-0.0)
@example([2**64, 1e22, -0.0])
@example({"a": [1.0, 1, True]})
def test_any_json_value_comes_back_as_it_was(value: Any) -> None:
    text = payload.dump_json(value)
    encoding, stored = payload.store_form(text)
    back = payload.load_json(payload.json_text(encoding, stored, len(text)))
    assert repr(back) == repr(value)
    assert json.loads(text) == value


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.sets(st.text(max_size=3)))
@example({"a": 2**64, "b": 1}, {"a"})
def test_a_payload_is_the_same_whatever_of_it_was_written_before(fields: dict[str, Any], before: set[str]) -> None:
    made = payload.with_texts(fields, {name: payload.dump_json(fields[name]) for name in before & fields.keys()})
    assert made == fields
    assert payload.dump_json(made) == payload.dump_json(fields)


@given(SPOILED)
def test_what_is_not_json_is_refused_beside_what_was_written_before(value: Any) -> None:
    with pytest.raises(InvalidPayload) as caught:
        payload.dump_json(payload.with_texts({"state": 1, "spoiled": value}, {"state": b"1"}))
    assert caught.value.path.startswith("$.spoiled")


@given(SPOILED)
def test_anything_else_is_refused_at_the_path_of_what_is_wrong(value: Any) -> None:
    with pytest.raises(InvalidPayload) as caught:
        payload.dump_json(value)
    found = _at(value, caught.value.path)
    with pytest.raises(InvalidPayload) as alone:
        payload.dump_json(found)
    assert alone.value.path == "$"
    assert alone.value.problem == caught.value.problem


def _at(value: Any, path: str) -> Any:
    """What a path of an error leads to."""
    rest = path.removeprefix("$")
    while rest:
        match = re.match(r'\.([^.\[]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]', rest)
        assert match is not None, path
        name, index, quoted = match.groups()
        value = value[name] if name is not None else value[int(index)] if index is not None else value[json.loads(quoted)]
        rest = rest[match.end() :]
    return value


@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_other_value(value: Any, chance: Any) -> None:
    assert payload.same_json(payload.dump_json(value), payload.dump_json(_shuffled(value, chance)))


def _shuffled(value: Any, chance: Any) -> Any:
    if isinstance(value, list):
        return [_shuffled(each, chance) for each in value]
    if isinstance(value, dict):
        pairs = list(value.items())
        chance.shuffle(pairs)
        return {key: _shuffled(each, chance) for key, each in pairs}
    return value


@given(JSON, JSON)
@example(1, True)
@example(1, 1.0)
@example(0.0, -0.0)
@example([], {})
@example({"a": None}, {})
@example(2**70, float(2**70))
def test_only_the_same_value_is_the_same(one: Any, other: Any) -> None:
    canonical = [json.dumps(each, sort_keys=True) for each in (one, other)]
    assert payload.same_json(payload.dump_json(one), payload.dump_json(other)) == (canonical[0] == canonical[1])


@given(
    st.binary(min_size=1, max_size=200), st.sampled_from([payload.JSON, payload.JSON_ZSTD]), st.integers(min_value=0, max_value=2**63 - 1)
)
def test_damaged_stored_bytes_are_corrupted_never_an_accident(stored: bytes, encoding: str, size: int) -> None:
    try:
        text = payload.json_text(encoding, stored, size)
    except Corrupted:
        return
    assert len(text) == size


def test_an_unknown_encoding_is_refused_by_name() -> None:
    with pytest.raises(SchemaMismatch, match="brotli"):
        payload.json_text("brotli", b"x", 1)


@pytest.mark.parametrize("size", [payload.COMPRESS_FROM - 1, payload.COMPRESS_FROM, 300_000])
def test_compression_begins_where_it_pays(size: int) -> None:
    text = payload.dump_json("x" * (size - 2))
    encoding, stored = payload.store_form(text)
    assert (encoding == payload.JSON_ZSTD) == (size >= payload.COMPRESS_FROM)
    assert payload.json_text(encoding, stored, size) == text


@pytest.mark.parametrize("depth", [1, 50, 199, 200])
def test_what_is_as_deep_as_allowed_comes_back(depth: int) -> None:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    assert payload.load_json(payload.dump_json(value)) == value
    for _ in range(201 - depth):
        value = [value]
    with pytest.raises(InvalidPayload, match="deeper"):
        payload.dump_json(value)


VAST = """
import sys
sys.path.insert(0, sys.argv[1])
from eventlog import payload
from eventlog.errors import InvalidPayload
value = [1]
for _ in range(40):
    value = [value, value]
try:
    payload.dump_json(value)
except InvalidPayload as error:
    print(error)
"""


def test_small_in_memory_but_vast_as_json_is_refused_in_time() -> None:
    # Once: shared parts double with each level; what is too wide for the quick look goes to _refuse, which walks all 2^40 of them.
    child = subprocess.run([sys.executable, "-c", VAST, str(REPOSITORY)], capture_output=True, text=True, timeout=30, check=True)
    assert child.stdout.startswith("payload at $")
