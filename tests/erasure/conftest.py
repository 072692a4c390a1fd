"""Embedded stores with planted payloads, in clear text and encrypted, with an archive, a snapshot and a projection on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import create_store
from eventlog.privacy.providers.key_file import KeyFile


@pytest.fixture(params=["in clear text", "encrypted"])
def encrypted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "encrypted")


@pytest.fixture
def directory(tmp_path: Path, encrypted: bool) -> Path:
    """An empty store, not open. The master key lies apart."""
    if encrypted:
        (tmp_path / "keys").mkdir()
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "keys" / "key.json") if encrypted else None)
    return tmp_path / "store"
