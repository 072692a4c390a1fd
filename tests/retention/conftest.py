"""The stores of both kinds that the store's own contract is tested with, and a tenant that nothing has used."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventlog import CheckpointId, CheckpointStore
from tests.store.conftest import address, fresh_address, kind, opened, opening, second_address, shared, store

__all__ = ["address", "fresh_address", "kind", "opened", "opening", "second_address", "shared", "store"]


@pytest.fixture
def tenant() -> str:
    return f"t{CheckpointId.new()}"


@pytest.fixture
def own(opening: Callable[..., CheckpointStore], tenant: str) -> CheckpointStore:
    """`store` once more, limited to `tenant`."""
    return opening(tenant=tenant, actor="ann")
