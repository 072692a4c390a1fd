"""What a store is asked for besides: open runs by age, checkpoints, the archive's margin."""

from __future__ import annotations

import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from eventlog import AccessDenied, CheckpointStore, Corrupted, InvalidRequest, Principal, StoreClosed, create_store, open_store
from eventlog.archive.directory import Archive
from eventlog.archive.margin import ArchiveMargin, MarginState
from eventlog.archive.running import run_archive
from eventlog.metrics import serve_metrics
from eventlog.metrics import survey as surveying
from eventlog.metrics.survey import MarginOf, Survey
from tests.cli.command_line import COMMAND, environment, inside, new_store, put
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import Outside
from tests.store.samples import stream
from tests.waiting import eventually

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(families: Iterable[Metric]) -> Samples:
    """Values by name and labels, without the kind of log."""
    return {
        (each.name, tuple(sorted((name, text) for name, text in each.labels.items() if name != "log"))): each.value
        for family in families
        for each in family.samples
    }


def open_runs(found: Samples, run: str, state: str) -> list[float]:
    """How many, for each of the ages."""
    return [found["eventlog_open_runs", (("older_than", str(bound)), ("run", run), ("state", state))] for bound in surveying.OLDER_THAN]


class Later(datetime):
    """A clock that is two hours ahead."""

    @classmethod
    def now(cls, tz: Any = None) -> Self:
        return super().now(tz) + timedelta(hours=2)


def test_a_run_in_flight_shows_by_its_age_and_goes_when_it_ends(
    fresh_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(fresh_address) as store:
        survey = Survey(store)
        assert open_runs(samples(survey.collect()), "agent", "in_flight") == [0, 0, 0, 0, 0]
        left = LeftRun(store, Outside(tmp_path / "outside"), "turn")
        assert open_runs(samples(survey.collect()), "agent", "in_flight") == [1, 0, 0, 0, 0]
        monkeypatch.setattr(surveying, "datetime", Later)
        found = samples(survey.collect())
        assert open_runs(found, "agent", "in_flight") == [1, 1, 1, 0, 0]
        assert open_runs(found, "workflow", "in_flight") == open_runs(found, "agent", "waiting") == [0, 0, 0, 0, 0]
        assert 7_200 <= found["eventlog_oldest_run_seconds", (("run", "agent"), ("state", "in_flight"))] < 7_300
        store.delete(left.id, store.load(left.id).revision)
        assert open_runs(samples(survey.collect()), "agent", "in_flight") == [0, 0, 0, 0, 0]


def test_checkpoints_are_counted_live_and_deleted(fresh_address: str) -> None:
    with open_store(fresh_address) as store:
        stream(store, 2)
        ended = stream(store, 1)[-1]
        store.delete(ended.id, 0)
        found = samples(Survey(store).collect())
    assert found["eventlog_checkpoints", (("state", "live"),)] == 1
    assert found["eventlog_checkpoints", (("state", "deleted"),)] == 1


def test_the_archives_margin_is_shown_with_its_hold_where_it_is_known(tmp_path: Path) -> None:
    create_store(tmp_path)

    def shown(store: CheckpointStore, margin: MarginOf | None) -> list[float | None]:
        found = samples(Survey(store, archive_margin=margin).collect())
        assert found["eventlog_store_readable", ()] == 1
        return [found.get((name, ())) for name in ("eventlog_archive_margin_seconds", "eventlog_archive_hold_seconds")]

    with open_store(tmp_path) as store:
        assert shown(store, None) == shown(store, lambda _: None) == [None, None]
        assert shown(store, lambda _: ArchiveMargin(MarginState.OVERTAKEN, 1, 3_600_000, -60_500)) == [-60.5, 3600]


def test_an_archive_that_cannot_be_read_hides_only_its_own(tmp_path: Path) -> None:
    create_store(tmp_path)

    def failing(_: CheckpointStore) -> ArchiveMargin:
        raise Corrupted("segment", "is cut off")

    with open_store(tmp_path) as store:
        found = samples(Survey(store, archive_margin=failing).collect())
        assert found["eventlog_store_readable", ()] == 0
        assert found["eventlog_checkpoints", (("state", "live"),)] == 0
        with pytest.raises(Corrupted):
            serve_metrics(0, store=store, archive_margin=failing)


@pytest.mark.broker
def test_the_command_shows_the_margin_of_a_topic_that_is_archived(broker: str, topic: str, tmp_path: Path) -> None:
    own = f"kafka://{broker}/{topic}?hold_ms=3600000"
    create_store(own, partitions=2)
    with open_store(f"{own}&state={tmp_path / 'writer'}") as store:
        stream(store, 2)
        run_archive(store, Archive(directory=tmp_path / "archive"))
    with serving("--store", f"{own}&state={tmp_path / 'watcher'}", "--archive", str(tmp_path / "archive")) as (port, _):
        found = scraped(port)
        assert found["eventlog_archive_hold_seconds", ()] == found["eventlog_archive_margin_seconds", ()] == 3600
        with open_store(f"{own}&state={tmp_path / 'writer'}") as store:
            stream(store, 1)
        eventually(lambda: 3500 < scraped(port)["eventlog_archive_margin_seconds", ()] < 3600)
    with serving("--store", f"{own}&state={tmp_path / 'watcher'}") as (port, _):
        assert ("eventlog_archive_margin_seconds", ()) not in scraped(port), "where no archive is known there is none to be behind"


def test_who_may_look_the_store_over_is_served_and_on_record_once(tmp_path: Path) -> None:
    create_store(tmp_path, access="strict")
    with open_store(tmp_path) as whole:
        stream(whole, 2)
        with pytest.raises(AccessDenied):
            serve_metrics(0, store=whole.for_principal(Principal("rita", None, ["reader"])))
        watching = whole.for_principal(Principal("olga", None, ["operator"]))
        with serve_metrics(0, store=watching) as server:
            for _ in range(3):
                assert scraped(server.port)["eventlog_checkpoints", (("state", "live"),)] == 1
        rows = whole.catalog.report("access", {"subject": "olga"})
    assert [dict(zip(rows.columns, row, strict=True))["action"] for row in rows.rows] == ["doctor"]


def test_a_store_that_cannot_be_asked_says_so_and_hides_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_store(tmp_path)
    with open_store(tmp_path) as store, serve_metrics(0, store=store) as server:
        assert scraped(server.port)["eventlog_store_readable", ()] == 1

        def failing(*_: Any) -> Any:
            raise StoreClosed("just now")

        monkeypatch.setattr(store.catalog, "report", failing)
        found = scraped(server.port)
        assert found["eventlog_store_readable", ()] == 0
        assert not [name for name, _ in found if name in ("eventlog_open_runs", "eventlog_checkpoints")]
        assert [name for name, _ in found if name == "eventlog_appended_events_total"]


def scraped(port: int) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return samples(text_string_to_metric_families(answer.read().decode()))


def test_one_tenants_store_is_not_served(tmp_path: Path) -> None:
    create_store(tmp_path)
    with open_store(tmp_path, tenant="north") as store, pytest.raises(InvalidRequest, match="north"):
        serve_metrics(0, store=store)
    with pytest.raises(InvalidRequest, match="archive_margin"):
        serve_metrics(0, archive_margin=lambda _: None)


def test_who_looks_on_leaves_the_projection_to_others(tmp_path: Path) -> None:
    create_store(tmp_path)
    with open_store(tmp_path, looks_on=True) as looking:
        stream(looking, 2)
        assert looking.list().items
        assert not (tmp_path / "projection.duckdb").exists()
        with open_store(tmp_path) as other:
            path = other.catalog.projection().path
            assert path is not None
            assert path.parent == tmp_path
            stream(other, 1)
            assert len(looking.list().items) == 2
    assert not list(tmp_path.glob("rebuild-*"))


@contextmanager
def serving(*options: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The command, and where it listens."""
    command = [*COMMAND, "metrics", "serve", *options, "--port", "0", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, process.stderr
            yield int(said.rsplit(":", 1)[1].split("/")[0]), process
        finally:
            process.kill()


@pytest.mark.parametrize("asked_by", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_it_is_asked_to_end(tmp_path: Path, asked_by: signal.Signals) -> None:
    store = new_store(tmp_path)
    put(store, {"n": 1}, "--kind", "acme.order")
    before = {path.name: path.read_bytes() for path in store.iterdir()}
    with serving("--store", str(store)) as (port, process):
        found = scraped(port)
        assert found["eventlog_checkpoints", (("state", "live"),)] == 1
        put(store, {"n": 2}, "--kind", "acme.order")
        assert scraped(port)["eventlog_checkpoints", (("state", "live"),)] == 2
        process.send_signal(asked_by)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (0, "")
    with pytest.raises(urllib.error.URLError):
        scraped(port)
    assert {path.name for path in store.iterdir()} - before.keys() <= {"log.sqlite3-wal", "log.sqlite3-shm"}


def test_the_command_says_what_keeps_it_from_serving(tmp_path: Path) -> None:
    assert inside("metrics", "serve", "--store", tmp_path / "missing").code != 0
    store = new_store(tmp_path)
    assert "holds no archive" in inside("metrics", "serve", "--store", store, "--port", "0", "--archive", tmp_path / "missing").err
    assert inside("metrics", "serve", "--store", store, "--port", "0", "--as", "rita", "--role", "reader").code == 21
    assert "north" in inside("metrics", "serve", "--store", store, "--tenant", "north", "--port", "0").err
    with serve_metrics(0) as server:
        run = inside("metrics", "serve", "--store", store, "--port", str(server.port))
        assert run.code == 14
        assert "cannot listen" in run.err


def test_a_scrape_leaves_no_thread(store: CheckpointStore) -> None:
    before = set(threading.enumerate())
    with serve_metrics(0, store=store) as server:
        assert scraped(server.port)["eventlog_store_readable", ()] == 1
    eventually(lambda: set(threading.enumerate()) <= before)
