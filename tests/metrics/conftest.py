"""The stores of both logs that the store's own contract is tested with."""

from __future__ import annotations

import pytest

from tests.store.conftest import address, fresh_address, opened, opening, second_address, shared, store

__all__ = ["address", "fresh_address", "kind", "opened", "opening", "second_address", "shared", "store"]


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.broker)])
def kind(request: pytest.FixtureRequest) -> str:
    """What the metrics are labelled with; an encrypted log is counted as any other."""
    return str(request.param)
