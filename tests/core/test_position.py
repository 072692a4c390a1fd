"""Positions: as text and back, cuts through a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import InvalidRequest, Position

OFFSETS = st.dictionaries(st.integers(min_value=0, max_value=999_999_999), st.integers(min_value=0, max_value=10**18 - 1), max_size=6)


@given(OFFSETS)
def test_as_text_and_back(offsets: dict[int, int]) -> None:
    position = Position.of(offsets)
    again = Position.parse(str(position))
    assert again.covers(position)
    assert position.covers(again)
    assert not offsets or again == position
    assert dict(position.offsets) == offsets


@given(OFFSETS, OFFSETS)
def test_covering_is_by_partition(one: dict[int, int], other: dict[int, int]) -> None:
    covers = all(one.get(partition, 0) >= offset for partition, offset in other.items())
    assert Position.of(one).covers(Position.of(other)) == covers


@given(OFFSETS, st.integers(min_value=0, max_value=9))
def test_a_partition_that_is_not_named_starts_at_its_beginning(offsets: dict[int, int], partition: int) -> None:
    assert Position.of(offsets).next_offset(partition) == offsets.get(partition, 0)


def test_behind_a_record() -> None:
    assert Position.after(3, 9) == Position(((3, 10),))
    assert Position.parse("17") == Position(((0, 17),))
    assert Position.parse("3:9,0:17") == Position(((0, 17), (3, 9)))
    assert str(Position()) == "0:0"


WRONG = [
    "",
    " ",
    "x",
    "-1",
    "0:-1",
    "1.5",
    "0:1,",
    ",0:1",
    "0:1,0:2",
    "0:1;1:2",
    "0 : 1",
    "0:1\n",
    "1e5",
    "0x1",
    "9" * 40,
    "0:" + "9" * 40,
    "x" * 10_000,
]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: repr(text[:20]))
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="position") as caught:
        Position.parse(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["٠:١٧", "०:१", "１７"], ids=ascii)
def test_other_scripts_digits_are_refused(text: str) -> None:
    # Once: `\\d` takes every script's digits
    with pytest.raises(InvalidRequest):
        Position.parse(text)
