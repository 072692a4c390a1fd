"""Hypothesis strategies for JSON values, and for what is none."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(TEXT, inner, max_size=6)), max_leaves=40
)
NOT_JSON: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, object(), 1j, "\ud800", "a\udfffb", {1: 2}, {None: 1}, {b"k": 1}, {"\udc00": 1}]),
    st.binary(max_size=5),
    st.sets(st.integers(), max_size=3),
    st.tuples(st.integers()),
    st.decimals(),
    st.uuids(),
    st.datetimes(),
)
SPOILED: st.SearchStrategy[Any] = st.recursive(
    NOT_JSON,
    lambda inner: st.one_of(
        st.builds(lambda before, bad, after: [*before, bad, *after], st.lists(LEAVES, max_size=3), inner, st.lists(LEAVES, max_size=3)),
        st.builds(lambda good, key, bad: {**good, key: bad}, st.dictionaries(TEXT, LEAVES, max_size=3), TEXT, inner),
    ),
    max_leaves=6,
)
"""A value with at least one part that is not JSON, somewhere."""
