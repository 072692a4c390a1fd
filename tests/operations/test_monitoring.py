"""Dashboard, alerts and their wiring: what they ask for exists, and what they point to too."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from eventlog.metrics import registry
from eventlog.metrics.survey import OLDER_THAN, RUNS, STATES, families

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE = REPOSITORY / "compose"
RULES = COMPOSE / "prometheus" / "rules" / "eventlog.yml"
RULE_TESTS = COMPOSE / "prometheus" / "tests" / "eventlog.yml"
DASHBOARD = COMPOSE / "grafana" / "dashboards" / "eventlog.json"
PAGE = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")

BY_PROMETHEUS = {"instance", "job"}
# What a person wants to be told of, and sees; issue and design name these.
WATCHED = {
    "eventlog_revision_conflicts", "eventlog_ambiguous_recoveries", "eventlog_schema_mismatches", "eventlog_resume_age_seconds",
    "eventlog_checkpoint_size_bytes", "eventlog_tail_lag_offsets", "eventlog_projection_lag_offsets", "eventlog_archive_margin_seconds",
    "eventlog_archive_hold_seconds",
    "eventlog_quarantined_checkpoints", "eventlog_unknown_outcomes", "eventlog_partition_takeovers", "eventlog_commit_seconds",
    "eventlog_open_runs", "eventlog_store_readable",
}  # fmt: skip


class Question(NamedTuple):
    """An expression, and where it stands."""

    where: str
    expression: str


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def questions() -> Iterator[Question]:
    for rule in rules():
        yield Question(rule["alert"], rule["expr"])
    for panel in panels():
        for target in panel.get("targets", ()):
            yield Question(panel["title"], target["expr"])


def known() -> dict[str, set[str]]:
    """The labels of each series, by its name."""
    found: dict[str, set[str]] = {}
    for metric in [*registry().collect(), *families()]:
        labels = {label for sample in metric.samples for label in sample.labels} | set(getattr(metric, "_labelnames", ()))
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(metric.type, ("",))
        for suffix in suffixes:
            found[metric.name + suffix] = labels | ({"le"} if suffix == "_bucket" else set())
    return found


def values() -> dict[str, set[str]]:
    """What a label may be."""
    found: dict[str, set[str]] = {"state": {*STATES, "live", "deleted"}, "run": set(RUNS.values()), "older_than": set(map(str, OLDER_THAN))}
    for metric in registry().collect():
        for sample in metric.samples:
            for label, value in sample.labels.items():
                found.setdefault(label, set()).add(value)
    return found


def test_every_series_that_is_asked_for_exists_with_its_labels() -> None:
    there, allowed = known(), values()
    asked = list(questions())
    assert len(asked) > 30
    for where, expression in asked:
        names = re.findall(r"\beventlog_\w+", expression)
        assert names, where
        labels: set[str] = set()
        for name in names:
            assert name in there, f"{where}: {name}"
            labels |= there[name]
        for label, comparison, value in re.findall(r'(\w+)(=~?|!=)"([^"]*)"', expression):
            assert label in labels | BY_PROMETHEUS, f"{where}: {label}"
            if comparison == "=" and label not in BY_PROMETHEUS:
                assert value in allowed[label], f"{where}: {label}={value}"
        for grouping in re.findall(r"by \(([^)]*)\)", expression):
            assert {each.strip() for each in grouping.split(",")} <= labels | BY_PROMETHEUS, where


def test_a_quantile_is_taken_from_rates_that_keep_the_bounds() -> None:
    for where, expression in questions():
        for inner in re.findall(r"histogram_quantile\([\d.]+, (sum by \(([^)]*)\) \(rate\(\w+)", expression):
            assert "le" in [each.strip() for each in inner[1].split(",")], where
            assert inner[0].endswith("_bucket"), where
        assert expression.count("histogram_quantile(") == len(re.findall(r"histogram_quantile\([\d.]+, sum by", expression)), where


@pytest.mark.parametrize("kind", ["alert", "panel"])
def test_what_a_person_should_see_is_shown_and_alarmed(kind: str) -> None:
    of_rules = {rule["alert"] for rule in rules()}
    asked = " ".join(expression for where, expression in questions() if (where in of_rules) == (kind == "alert"))
    assert {name for name in WATCHED if name not in asked} == set()


def test_every_alert_says_what_it_means_what_to_do_and_where_more_stands() -> None:
    sections = {re.sub(r"[^\w-]", "", title.strip().lower().replace(" ", "-")) for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        annotations = rule["annotations"]
        assert annotations.keys() == {"summary", "description", "runbook"}, rule["alert"]
        assert annotations["description"].count(".") >= 2 or ":" in annotations["description"], rule["alert"]
        page, _, section = annotations["runbook"].partition("#")
        assert (REPOSITORY / page).is_file()
        assert section == rule["alert"].lower()
        assert section in sections, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        grouped = {each.strip() for grouping in re.findall(r"by \(([^)]*)\)", rule["expr"]) for each in grouping.split(",")}
        named = set(re.findall(r"\$labels\.(\w+)", annotations["summary"] + annotations["description"]))
        assert named <= (grouped or {"log", "instance"}), rule["alert"]


def test_every_alert_is_tried_silent_and_firing() -> None:
    tried = [
        (name, bool(case["exp_samples"]))
        for test in yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]
        for case in test["promql_expr_test"]
        for name in re.findall(r'alertname="(\w+)"', case["expr"])
    ]
    assert set(tried) == {(rule["alert"], firing) for rule in rules() for firing in (False, True)}


@pytest.mark.promtool
@pytest.mark.parametrize(
    "arguments", [("check", "config", "prometheus.yml"), ("check", "rules", "rules/eventlog.yml"), ("test", "rules", "tests/eventlog.yml")]
)
def test_prometheus_takes_them_and_they_fire_when_they_should(arguments: tuple[str, ...]) -> None:
    run = subprocess.run(["promtool", *arguments], cwd=COMPOSE / "prometheus", capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


# -- the wiring ------------------------------------------------------------------------------------------------


def test_the_dashboard_has_its_panels_beside_each_other_and_its_datasource() -> None:
    (source,) = yaml.safe_load((COMPOSE / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text())["datasources"]
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    for panel in panels():
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"] == {"type": source["type"], "uid": source["uid"]}


def test_compose_gives_both_their_files_and_opens_them_to_this_machine_only() -> None:
    services = yaml.safe_load((COMPOSE / "docker-compose.yml").read_text())["services"]
    prometheus, grafana = services["prometheus"], services["grafana"]
    listening = next(each for each in prometheus["command"] if each.startswith("--web.listen-address="))
    assert listening.endswith("127.0.0.1:9090")
    assert grafana["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    (source,) = yaml.safe_load((COMPOSE / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://127.0.0.1:9090"
    for service in (prometheus, grafana):
        assert service["network_mode"] == "host"
        assert "ports" not in service
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", service["image"])
        for volume in service["volumes"]:
            here, there, *_ = volume.split(":")
            assert there.startswith("/")
            assert not here.startswith(".") or (COMPOSE / here).exists(), here
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in grafana["volumes"]}
    (provider,) = yaml.safe_load((COMPOSE / "grafana" / "provisioning" / "dashboards" / "eventlog.yml").read_text())["providers"]
    assert (COMPOSE / mounted[provider["options"]["path"]] / DASHBOARD.name).is_file()
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{provider['options']['path']}/{DASHBOARD.name}"
    config = yaml.safe_load((COMPOSE / "prometheus" / "prometheus.yml").read_text())
    assert config["rule_files"] == ["rules/*.yml"]
    assert {job["job_name"] for job in config["scrape_configs"]} == {"eventlog-store", "eventlog"}
