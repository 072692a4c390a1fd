"""The stores of every kind that the store's own contract is tested with, and a broker that asks for passwords."""

from __future__ import annotations

from tests.security.conftest import secured
from tests.store.conftest import address, fresh_address, kind, opened, opening, second_address, shared, store

__all__ = ["address", "fresh_address", "kind", "opened", "opening", "second_address", "secured", "shared", "store"]
