"""A place in a token for each test that asks for one: a real SoftHSM2."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator

import pytest

from eventlog.privacy.providers.pkcs11 import PIN_VARIABLE
from tests.conftest import softhsm_module

PIN = "4711-0815"


@pytest.fixture(scope="session")
def softhsm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A token of this run, and its module: SoftHSM reads its settings and finds its tokens once, when a process loads it."""
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder / 'tokens'}\nobjectstore.backend = file\nlog.level = ERROR\n")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
        environment.setenv(PIN_VARIABLE, PIN)
        making = ["softhsm2-util", "--init-token", "--free", "--label", "tests", "--pin", PIN, "--so-pin", PIN]
        subprocess.run(making, check=True, capture_output=True)
        yield f"?module-path={softhsm_module()}"


@pytest.fixture
def token(softhsm: str) -> str:
    """A URI under which nobody has made keys."""
    return f"pkcs11:token=tests;object={uuid.uuid4().hex}{softhsm}"
