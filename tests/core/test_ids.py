"""Ids: one form for every spelling, version 7 when new, in the order of their making."""

from __future__ import annotations

import pickle
import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import CheckpointId, EventId, InvalidRequest, RunId


@given(st.uuids())
def test_every_spelling_is_the_same_id(value: UUID) -> None:
    text = str(value)
    spellings: list[Any] = [value, text, text.upper(), value.hex, value.hex.upper(), f"{{{text}}}", f"urn:uuid:{text}", RunId(text)]
    ids = {CheckpointId(each) for each in spellings}
    assert ids == {text}
    assert {type(each) for each in ids} == {CheckpointId}
    assert CheckpointId(text).uuid == value
    assert pickle.loads(pickle.dumps(CheckpointId(text))) == text


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x",
        "0" * 31,
        "0" * 33,
        "0" * 10_000,
        "01234567-89ab-7cde-8f01-23456789abcg",
        "\ud800",
        None,
        5,
        1.5,
        b"0" * 32,
        [],
        {},
        object(),
    ],
    ids=lambda value: type(value).__name__ + (ascii(value)[:20] if isinstance(value, str) else ""),
)
@pytest.mark.parametrize("kind", [CheckpointId, RunId, EventId])
def test_what_is_no_uuid_is_refused_by_its_field(kind: Any, wrong: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        kind(wrong)
    assert caught.value.field == kind.field
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("wrong", ["0x" + "1" * 30, "+" + "1" * 31, "1_" * 15 + "11", " " + "1" * 31, "１" * 32], ids=ascii)
def test_what_int_would_read_but_no_uuid_is_refused(wrong: str) -> None:
    # Once: uuid.UUID gives the digits to int(), which takes signs, blanks, underscores, 0x and other scripts' digits.
    with pytest.raises(InvalidRequest):
        CheckpointId(wrong)


def test_a_new_id_is_a_version_7_uuid_of_now() -> None:
    before = time.time_ns() // 1_000_000
    for _ in range(200):
        value = CheckpointId.new().uuid
        assert (value.version, value.variant) == (7, "specified in RFC 4122")
        assert before <= value.int >> 80 <= time.time_ns() // 1_000_000


def test_new_ids_sort_in_the_order_of_their_making() -> None:
    made = []
    for _ in range(5):
        made.append(EventId.new())
        now = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == now:
            pass
    assert made == sorted(made)
    assert len({EventId.new() for _ in range(10_000)}) == 10_000
