"""archive, anchor, compact, verify and rebuild on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from eventlog import Position, open_store
from eventlog.archive.directory import Archive
from tests.archive.samples import forget_projection, keys, tampering
from tests.cli.command_line import COMMAND, environment, inside, new_store, put


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A checkpoint of four revisions."""
    address = new_store(tmp_path)
    identity = put(address, {"n": 0, "text": "x" * 3000}, "--kind", "acme.order")["id"]
    for revision in (1, 2, 3):
        put(address, {"n": revision, "text": "x" * 3000}, "--id", identity, "--expect", str(revision - 1))
    return address


def test_the_walk_from_an_archive_to_a_compacted_log_and_back(store: Path, tmp_path: Path) -> None:
    kept = tmp_path / "archive"
    done = inside("archive", "run", "--to", kept, "--store", store, "--format", "json").json()
    assert done == {"events": 4, "segments": 1, "end": "0:4"}
    assert inside("archive", "run", "--store", store).out == "Archived 0 events in 0 segments, up to 0:4.\n"
    (segment,) = inside("archive", "list", "--store", store, "--format", "json").json()
    assert (segment["partition"], segment["first"], segment["last"], segment["events"]) == (0, 0, 3, 4)
    assert inside("archive", "verify", "--archive", kept).out.startswith("clean: 4 events in 1 segments")
    moved = inside("compact", "--store", store, "--hold-days", "0", "--format", "json").json()
    assert moved["moved"] == 3
    found = inside("verify", "--store", store, "--format", "json").json()
    assert (found["clean"], found["moved"], found["archived"]) == (True, 3, 4)
    assert "4 held against the archive" in inside("verify", "--store", store).out
    assert inside("rebuild", "--archive", kept, "--store", store).code == 0
    checks = inside("doctor", "--store", store, "--format", "json").json()
    assert next(check for check in checks if check["check"] == "archive") == {
        "check": "archive",
        "state": "ok",
        "detail": f"{kept}, up to 0:4",
        "advice": "",
    }
    with open_store(store) as opened:
        (only,) = opened.list().items
        assert [getattr(each, "payload_size", 0) > 3000 for each in opened.history(only.id)] == [True] * 4


def test_a_signed_anchor_is_kept_and_held_against_the_log(store: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    _, other = keys(tmp_path, "other")
    anchor = tmp_path / "anchor.json"
    anchor.write_text(inside("anchor", "--sign", private, "--store", store).out)
    assert json.loads(anchor.read_text())["sealed"]["heads"][0]["size"] == 4
    run = inside("verify", "--anchor", anchor, "--key", public, "--store", store)
    assert (run.code, "4 of them anchored" in run.out) == (0, True)
    assert inside("verify", "--anchor", anchor, "--key", other, "--store", store).code == 13
    with tampering(store) as connection:
        connection.execute("DELETE FROM events WHERE position = 3")
    forget_projection(store)
    assert inside("verify", "--store", store).code == 0
    run = inside("verify", "--anchor", anchor, "--store", store)
    assert run.code == 1
    assert "anchor" in run.out
    assert "4 events were anchored" in run.out


def test_a_damaged_archive_ends_with_its_segments_name(store: Path, tmp_path: Path) -> None:
    kept = tmp_path / "archive"
    inside("archive", "run", "--to", kept, "--store", store)
    (segment,) = Archive(directory=kept).segments(0)
    segment.path.write_bytes(segment.path.read_bytes() + b"!")
    compacting = ("compact", "--hold-days", "0", "--store", store)
    for command in (("archive", "verify", "--archive", kept), ("rebuild", "--archive", kept, "--store", store), compacting):
        run = inside(*command)
        assert run.code == 13
        assert segment.path.name in run.err
    assert inside("verify", "--store", store).code == 1


def test_what_is_missing_is_said(store: Path, tmp_path: Path) -> None:
    for command in (("archive", "run"), ("archive", "list"), ("compact",)):
        run = inside(*command, "--store", store)
        assert run.code == 6
        assert "no archive is named" in run.err
    for run in (
        inside("archive", "verify", "--archive", tmp_path / "none"),
        inside("rebuild", "--archive", tmp_path / "none", "--store", store),
    ):
        assert run.code == 15
        assert "holds no archive" in run.err
    assert inside("verify", "--anchor", tmp_path / "none", "--store", store).code == 13
    assert inside("anchor", "--sign", tmp_path / "none", "--store", store).code == 13


def test_it_goes_on_archiving_until_it_is_stopped(store: Path, tmp_path: Path) -> None:
    kept = Archive(directory=tmp_path / "archive")
    with tampering(store) as connection:  # what is younger than an hour would wait for its segment to fill
        connection.execute("UPDATE events SET recorded_at = recorded_at - 7200000")
    command = [*COMMAND, "archive", "run", "--every", "0.1", "--to", str(kept.directory), "--store", str(store)]
    running = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "Archived 4 events in 1 segments, up to 0:4.\n"
        assert kept.end() == Position(((0, 4),))
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=30)
    finally:
        running.kill()
    assert (running.returncode, said) == (130, "")
