"""The contract of a checkpoint store as a pytest class: subclass it, say how your store is opened, and run pytest.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def opening(self, tmp_path):
            return lambda: MyStore(tmp_path)

docs/testing-a-store.md says what it checks, and what a store may lack.
"""

import pytest

_PARTS = ("concurrency", "deletion", "features", "many", "matrix", "opened", "past", "retries", "unclear")
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))  # so that a failing assertion shows its values

from eventlog.testing.suite.contract import StoreContract  # noqa: E402 - its parts are rewritten as they are imported
from eventlog.testing.suite.features import Feature, NotChecked  # noqa: E402

__all__ = ["Feature", "NotChecked", "StoreContract"]
