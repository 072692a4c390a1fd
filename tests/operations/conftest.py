"""The stores of every kind that the store's own contract is tested with."""

from __future__ import annotations

from tests.store.conftest import address, fresh_address, kind, opened, opening, second_address, shared, store

__all__ = ["address", "fresh_address", "kind", "opened", "opening", "second_address", "shared", "store"]
