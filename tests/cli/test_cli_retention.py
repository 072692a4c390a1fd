"""retention and report retention: a plan to look at, its application, holds, and what is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from eventlog import open_store
from tests.cli.command_line import Result, inside, new_store, put

POLICY = """
grace = "1s"

[floor]
"eventlog.agent" = "183d"

[[rule]]
name = "orders"
kind = "acme.*"
keep_newest = 1
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "policy.toml").write_text(POLICY)
    return new_store(tmp_path)


@pytest.fixture
def orders(store: Path) -> list[str]:
    return [put(store, {"phase": "done"}, "--kind", "acme.order", "--label", f"customer={each}")["id"] for each in "abc"]


def retention(store: Path, *arguments: str, form: str = "json") -> Result:
    return inside("retention", *arguments, "--store", store, "--actor", "ann", "--format", form)


def policy(store: Path) -> tuple[str, str]:
    return "--policy", str(store.parent / "policy.toml")


def test_a_plan_is_looked_at_and_then_applied(store: Path, orders: list[str]) -> None:
    file = store.parent / "plan.json"
    plan = retention(store, "plan", *policy(store), "--out", str(file)).json()
    assert [each["checkpoint_id"] for each in plan["items"]] == orders[:2]
    done = retention(store, "apply", "--plan", str(file), "--reason", "monthly").json()
    assert (done["deleted"]["checkpoints"], done["skipped"]) == (2, [])
    (record,) = retention(store, "log").json()
    assert (record["actor"], record["reason"], record["planned"], record["deleted"], record["plan"]) == (
        "ann",
        "monthly",
        2,
        2,
        plan["digest"],
    )
    with open_store(store) as opened:
        assert [each.id for each in opened.list(kind="acme.order").items] == orders[2:]


def test_a_plan_says_in_a_table_and_in_csv_what_goes_and_what_stays_and_why(store: Path, orders: list[str]) -> None:
    hold = retention(store, "hold", "--checkpoint", orders[0], "--reason", "case 4711").json()
    table = retention(store, "plan", *policy(store), form="table")
    assert "to be deleted" in table.out
    assert "due, and kept" in table.out
    assert hold["id"] in table.out
    assert "1 of 3 would be deleted, 1 kept: held" in table.err
    rows = list(csv.DictReader(io.StringIO(retention(store, "plan", *policy(store), form="csv").out)))
    assert [(each["action"], each["why"], each["checkpoint_id"]) for each in rows] == [
        ("delete", "orders", orders[1]),
        ("keep", "held", orders[0]),
    ]


def test_holds_are_placed_listed_and_released(store: Path, orders: list[str]) -> None:
    placed = retention(store, "hold", "--label", "customer=a", "--reason", "case 4711").json()
    assert (placed["state"], placed["placed_by"], placed["kept"], placed["already_deleted"]) == ("placed", "ann", 1, [])
    assert [each["id"] for each in retention(store, "holds").json()] == [placed["id"]]
    skipped = retention(store, "plan", *policy(store)).json()["kept"]
    assert [(each["checkpoint_id"], each["holds"]) for each in skipped] == [(orders[0], [placed["id"]])]
    released = retention(store, "release", placed["id"], "--reason", "closed").json()
    assert (released["state"], released["release_reason"], released["requeued"]) == ("released", "closed", [])
    assert retention(store, "holds").json() == []
    assert [each["reason"] for each in retention(store, "holds", "--released").json()] == ["case 4711"]


def test_what_is_skipped_is_named_and_ends_with_exit_code_1(store: Path, orders: list[str]) -> None:
    file = store.parent / "plan.json"
    assert retention(store, "plan", *policy(store), "--out", str(file)).code == 0
    hold = retention(store, "hold", "--tenant", "default", "--reason", "case 4711").json()["id"]
    done = retention(store, "apply", "--plan", str(file), "--reason", "monthly", form="table")
    assert (done.code, "deleted 0 of 2" in done.out, done.out.count("held")) == (1, True, 2)
    released = retention(store, "release", hold, "--reason", "closed").json()
    assert sorted(released["requeued"]) == orders[:2]


def test_the_report_with_a_policy_and_without(store: Path, orders: list[str]) -> None:
    hold = retention(store, "hold", "--checkpoint", orders[0], "--reason", "case 4711")
    assert hold.code == 0
    (line,) = inside("report", "retention", "--store", store, "--format", "json", *policy(store)).json()
    assert (line["rule"], line["due"], line["held"], line["deleted"]) == ("orders", 1, 1, 0)
    assert inside("report", "retention", "--store", store, "--format", "json", *policy(store), "--kind", "none").json() == []
    lines = inside("report", "retention", "--store", store, "--format", "json", "--kind", "acme.order").json()
    assert [(each["checkpoints"], each["on_hold"]) for each in lines] == [(3, 1)]


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("plan",), 6, "--policy"),
        (("plan", "--policy", "none.toml"), 6, "none.toml"),
        (("apply", "--reason", "x"), 6, "--plan"),
        (("apply", "--reason", "x", "--plan", "a", "--policy", "b"), 6, "--plan"),
        (("apply", "--reason", "x", "--plan", "a", "--override-floor", "b"), 6, "--override-floor"),
        (("apply", "--plan", "a"), 2, "--reason"),
        (("hold", "--reason", "x"), 6, "--checkpoint"),
        (("hold", "--reason", "x", "--run", "a", "--label", "b=c"), 6, "--checkpoint"),
        (("hold", "--reason", "x", "--label", "b"), 6, "--label"),
        (("release", "01234567-89ab-7cde-8f01-23456789abcd", "--reason", "x"), 3, "no such legal hold"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_missing_or_wrong_is_refused(store: Path, arguments: tuple[str, ...], code: int, named: str) -> None:
    run = retention(store, *arguments)
    assert (run.code, named in run.err) == (code, True), run


def test_a_policy_that_undercuts_its_floor_needs_a_reason(store: Path) -> None:
    (store.parent / "policy.toml").write_text(POLICY + '[[rule]]\nname = "runs"\nkind = "eventlog.agent"\nolder_than = "1d"\n')
    refused = retention(store, "plan", *policy(store))
    assert (refused.code, "'runs'" in refused.err, "--override-floor" in refused.err) == (15, True, True)
    plan = retention(store, "plan", *policy(store), "--override-floor", "the regulator agreed").json()
    assert (plan["floor_override"]["actor"], plan["floor_override"]["reason"]) == ("ann", "the regulator agreed")
