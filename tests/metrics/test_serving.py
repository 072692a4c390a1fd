"""The endpoint: Prometheus can read it, and nothing is left of it when it is stopped."""

from __future__ import annotations

import threading
import urllib.request
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from eventlog import InvalidRequest, Unavailable, create_store, open_store
from eventlog.metrics import MetricsServer, registry, serve_metrics
from tests.store.samples import stream
from tests.waiting import eventually


def asked(server: MetricsServer) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def test_what_is_served_is_what_was_counted(tmp_path: Path) -> None:
    create_store(tmp_path)
    with open_store(tmp_path) as store, serve_metrics(0) as server:
        stream(store, 3)
        samples = {
            (each.name, each.labels.get("log"), each.labels.get("le")): each.value
            for family in text_string_to_metric_families(asked(server))
            for each in family.samples
        }
    assert samples["eventlog_appended_events_total", "embedded", None] >= 3
    counted = samples["eventlog_commit_seconds_count", "embedded", None]
    assert samples["eventlog_commit_seconds_bucket", "embedded", "+Inf"] == counted


def test_stopped_it_leaves_no_thread_and_no_socket() -> None:
    before = set(threading.enumerate())
    server = serve_metrics(0)
    port = server.port
    asked(server)
    server.stop()
    server.stop()
    eventually(lambda: set(threading.enumerate()) <= before)
    with serve_metrics(port) as again:
        assert again.port == port
        assert again.start() is again
        assert "eventlog_commit_seconds" in asked(again)


def test_a_port_that_is_taken_is_said_so() -> None:
    with serve_metrics(0) as server, pytest.raises(Unavailable, match=f"127.0.0.1:{server.port}: cannot listen"):
        serve_metrics(server.port)


@pytest.mark.parametrize("port", [-1, 65_536, "9464", True, None])
def test_what_is_no_port_is_refused(port: object) -> None:
    with pytest.raises(InvalidRequest, match="port"):
        serve_metrics(port)  # type: ignore[arg-type]


def test_nothing_is_added_to_the_clients_own_registry() -> None:
    assert registry() is not prometheus_client.REGISTRY
    assert not [metric.name for metric in prometheus_client.REGISTRY.collect() if metric.name.startswith("eventlog")]
