"""migrate: a plan that writes nothing, a run that may be repeated, an undo; what is refused is named."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from eventlog import open_store
from tests.cli.command_line import Result, eventlog, inside, new_store, put
from tests.cli.test_cli_output import _on_a_terminal
from tests.recovery.migration_samples import samples

STEPS = """
from eventlog.recovery import CannotCarry, Migrations

def cents(order):
    if order["phase"] == "charging":
        raise CannotCarry("charging, and version 2 has no such phase")
    return {"cents": order["price"] * 100, "phase": order["phase"]}

def price(order):
    return {"price": order["cents"] // 100, "phase": order["phase"]}

class Shop:
    orders = Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=cents, down=price)

orders = Shop.orders
nothing = None
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "shop_steps.py").write_text(STEPS)
    (tmp_path / "broken_steps.py").write_text("1 / 0")
    return new_store(tmp_path)


@pytest.fixture
def orders(store: Path) -> list[str]:
    made = [put(store, {"price": 1, "phase": phase}, "--kind", "acme.order") for phase in ("ready", "ready", "charging")]
    return [each["id"] for each in made]


def migrate(store: Path, *arguments: str, steps: str = "shop_steps:orders") -> Result:
    return eventlog("migrate", *arguments, "--migrations", steps, "--store", store, cwd=store.parent)


def versions(store: Path, *ids: str) -> list[int]:
    with open_store(store) as opened:
        return [opened.load(each).schema_version for each in ids]


def as_json(run: Result, code: int) -> Any:
    import json

    assert run.code == code, run
    return json.loads(run.out)


def test_plan_run_and_undo_say_what_they_do_and_only_two_of_them_do_it(store: Path, orders: list[str]) -> None:
    planned = migrate(store, "plan", "--format", "json")
    assert versions(store, *orders) == [1, 1, 1]
    done = as_json(migrate(store, "run", "--format", "json"), 1)
    assert as_json(planned, 1) == done
    assert done["moves"] == [{"from": {"kind": "acme.order", "version": 1}, "to": {"kind": "acme.order", "version": 2}, "checkpoints": 2}]
    assert (done["unchanged"], done["conflicts"]) == (0, 0)
    (refused,) = done["refused"]
    assert (refused["checkpoint_id"], refused["why"], refused["phase"]) == (orders[2], "cannot_carry", "charging")
    assert "charging, and version 2 has no such phase" in refused["detail"]
    assert versions(store, *orders) == [2, 2, 1]
    again = as_json(migrate(store, "run", "--format", "json"), 1)
    assert (again["moves"], again["unchanged"], len(again["refused"])) == ([], 2, 1)
    assert as_json(migrate(store, "plan", "--undo", "--format", "json"), 0)["moves"][0]["checkpoints"] == 2
    assert versions(store, *orders) == [2, 2, 1]
    assert as_json(migrate(store, "undo", "--format", "json"), 0)["moves"][0]["checkpoints"] == 2
    assert versions(store, *orders) == [1, 1, 1]


def test_a_table_counts_and_names_what_is_refused(store: Path, orders: list[str]) -> None:
    run = migrate(store, "plan", steps="shop_steps:Shop.orders")
    assert run.code == 1
    assert [line.split() for line in run.out.splitlines()] == [
        ["from", "to", "checkpoints", "refused"],
        ["acme.order", "1", "acme.order", "2", "2"],
        ["acme.order", "1", "1", "cannot_carry"],
    ]
    assert f"{orders[2]}: acme.order 1 -> acme.order 2: charging" in run.err
    assert "2 of 3; nothing to do for 0" in run.err


def test_csv_has_a_line_for_each_count_and_each_refusal(store: Path, orders: list[str]) -> None:
    run = migrate(store, "plan", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run.out)))
    assert [(each["from"], each["to"], each["checkpoints"], each["refused"], each["checkpoint_id"]) for each in rows] == [
        ("acme.order 1", "acme.order 2", "2", "", ""),
        ("acme.order 1", "", "1", "cannot_carry", orders[2]),
    ]


def test_filters_choose(store: Path, orders: list[str]) -> None:
    assert migrate(store, "run", "--limit", "1").code == 0
    assert sorted(versions(store, *orders)) == [1, 1, 2]
    assert migrate(store, "run", "--id", orders[0], "--id", orders[1], "--kind", "acme.order", "--to", "acme.order/2").code == 0
    assert versions(store, *orders) == [2, 2, 1]
    elsewhere = migrate(store, "plan", "--tenant", "elsewhere", "--format", "json")
    assert as_json(elsewhere, 0)["moves"] == []


def test_a_deleted_checkpoint_is_named_and_is_no_finding(store: Path) -> None:
    gone = put(store, {"price": 1, "phase": "ready"}, "--kind", "acme.order")["id"]
    with open_store(store) as opened:
        opened.delete(gone, 0)
    run = migrate(store, "run", "--format", "json")
    assert [each["why"] for each in as_json(run, 0)["refused"]] == ["deleted"]


@pytest.mark.parametrize(
    ("arguments", "steps", "said"),
    [
        ((), "shop_steps", "'shop_steps' is not MODULE:ATTRIBUTE"),
        ((), "no_such_module:orders", "no_such_module cannot be imported"),
        ((), "broken_steps:orders", "broken_steps fails when it is imported: ZeroDivisionError"),
        ((), "shop_steps:invoices", "shop_steps has no invoices"),
        ((), "shop_steps:nothing", "shop_steps:nothing is no Migrations but NoneType"),
        (("--to", "acme.order"), "shop_steps:orders", "'acme.order' is not KIND/VERSION"),
        (("--to", "acme.order/9"), "shop_steps:orders", "no step leads to acme.order 9"),
        (("--to", "acme.order/1", "--undo"), "shop_steps:orders", "an undo leads back"),
        (("--kind", "acme.car"), "shop_steps:orders", "no step starts from acme.car"),
        (("--id", "no id"), "shop_steps:orders", "not a UUID"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(store: Path, arguments: tuple[str, ...], steps: str, said: str) -> None:
    run = migrate(store, "plan", *arguments, steps=steps)
    assert (run.code, run.out) == (6, "")
    assert said in run.err
    assert "Traceback" not in run.err


def test_without_steps_of_its_own_it_takes_what_runifold_has_left(store: Path) -> None:
    agent = put(store, samples("runifold.agent.v1")["in flight"], "--kind", "runifold.agent")["id"]
    flow = put(store, samples("runifold.workflow.v4")["accepted"], "--kind", "runifold.workflow", "--schema-version", "4")["id"]
    run = inside("migrate", "run", "--store", store)
    assert run.code == 1
    assert "the layout of order 2 is not given" in run.err
    with open_store(store) as opened:
        assert (opened.load(agent).kind, opened.load(agent).phase) == ("eventlog.agent", "turn_in_flight")
        assert opened.load(flow).kind == "runifold.workflow"
    assert inside("migrate", "undo", "--store", store, "--id", agent).code == 0


def test_progress_shows_on_a_terminal_and_not_in_a_pipe(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, {"price": 1, "phase": "ready"}, "--kind", "acme.order")
    quiet = migrate(store, "plan", "--format", "json")
    assert quiet.err == ""
    monkeypatch.setenv("PYTHONPATH", str(store.parent))
    monkeypatch.chdir(store.parent)
    assert "planning" in _on_a_terminal("migrate", "plan", "--migrations", "shop_steps:orders", "--store", str(store))
