"""The page on privacy: its commands run, and its tables are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from eventlog.event import EventHeader
from eventlog.privacy.envelope import Place
from tests.docs.test_documents import REPOSITORY, environment

PRIVACY = (REPOSITORY / "docs" / "privacy.md").read_text(encoding="utf-8").partition("## Who may do what")[0]  # the rest: tests/access


def test_the_pages_commands_and_its_program_run(tmp_path: Path) -> None:
    (session,) = re.findall(r"^```console\n(.*?)^```", PRIVACY, re.MULTILINE | re.DOTALL)
    commands = [line.removeprefix("$ ") for line in session.splitlines()]
    (tmp_path / "keys").mkdir()
    (tmp_path / "order.json").write_text('{"customer": "Ada Lovelace"}')
    script = "\n".join(["set -eu", *commands])
    run = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert "Wrapped 2 data keys anew." in run.stdout
    (program,) = re.findall(r"^```python\n(.*?)^```", PRIVACY, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment(), check=True, timeout=60)
    assert (tmp_path / "keys" / "invoices.json").exists()


def test_every_field_of_a_header_is_said_to_be_in_clear_text() -> None:
    clear = PRIVACY.split("### What is sealed, and what is not")[1].split("### How")[0]
    said = {
        "checkpoint id",
        "run id",
        "event id",
        "revision",
        "tenant",
        "kind",
        "schema version",
        "type",
        "phase",
        "labels",
        "usage",
        "actor",
    }
    missing = [each for each in said if each not in clear]
    assert missing == []
    otherwise = {"updated_at": "times", "payload_size": "size", "payload_digest": "hashes", "previous_hash": "hashes"}
    assert all(word in clear for word in otherwise.values())
    assert {each.replace(" ", "_") for each in said} | set(otherwise) | {"encoding", "encryption"} == set(EventHeader._fields)


def test_what_a_payload_is_bound_to_is_said() -> None:
    how = PRIVACY.split("### How")[1]
    names = {
        "checkpoint_id": "checkpoint id",
        "schema_version": "schema version",
        "event_id": "event id",
        "payload_size": "size",
        "key_id": "key id",
    }
    assert [each for each in Place._fields if names.get(each, each) not in how] == []
