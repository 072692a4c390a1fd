"""--as, --tenant, --role on the command line; every command is an operation or concerns no store; the access report."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import open_store
from eventlog.checkpoint import DEFAULT_TENANT
from eventlog.privacy.principals import Operation, Role, grant
from eventlog.recovery.effect_phases import effect_id
from tests.access.operations import run_left
from tests.cli.command_line import eventlog, inside, put
from tests.cli.test_cli_help import COMMANDS

_NOTHING: tuple[Operation, ...] = ()
OPERATIONS: dict[str, tuple[Operation, ...]] = {
    "demo": _NOTHING,  # a store of its own
    "broker up": _NOTHING,  # no store at all
    "broker down": _NOTHING,
    "broker status": _NOTHING,
    "init": (Operation.CREATE,),
    "topic create": (Operation.CREATE,),
    "topic check": (Operation.DOCTOR,),
    "topic acls": _NOTHING,
    "put": (Operation.COMPARE_AND_SWAP, Operation.LOAD_REVISION),
    "get": (Operation.LOAD_REVISION,),
    "list": (Operation.LIST,),
    "log": (Operation.HISTORY,),
    "tail": (Operation.SUBSCRIBE,),
    "report": (Operation.REPORT,),
    "report access": (Operation.REPORT_ACCESS,),
    "sql": (Operation.SQL,),
    "verify": (Operation.VERIFY,),
    "doctor": (Operation.DOCTOR,),
    "metrics serve": (Operation.DOCTOR,),
    "rebuild": (Operation.REBUILD,),
    "access prune": (Operation.ACCESS_PRUNE,),
    "ingest chats": (Operation.COMPARE_AND_SWAP,),
    "import runifold": (Operation.IMPORT,),
    "migrate plan": (Operation.MIGRATE_PLAN,),
    "migrate run": (Operation.MIGRATE,),
    "migrate undo": (Operation.MIGRATE,),
    "recovery list": (Operation.RUNS_LIST,),
    "recovery show": (Operation.RUNS_SHOW,),
    "recovery resolve": (Operation.RUNS_DECIDE,),
    "recovery settle": (Operation.EFFECTS_SETTLE, Operation.LOAD),
    "keys status": (Operation.KEYS_STATUS,),
    "keys rotate": (Operation.KEYS_ROTATE,),
    "archive run": (Operation.ARCHIVE_RUN,),
    "archive list": (Operation.ARCHIVE_LIST,),
    "archive verify": (Operation.ARCHIVE_VERIFY,),
    "anchor": (Operation.ANCHOR,),
    "compact": (Operation.COMPACT,),
    "backup run": (Operation.BACKUP,),
    "backup drill": (Operation.BACKUP_DRILL,),
    "backup list": _NOTHING,  # manifests
    "restore": (Operation.RESTORE,),  # into a store of its own
    "erase": (Operation.ERASE,),
    "erase status": (Operation.ERASE_STATUS,),
    "erase finish": (Operation.ERASE_FINISH,),
    "erase apply": (Operation.ERASE_STATUS, Operation.ERASE),
    "retention plan": (Operation.RETENTION_PLAN,),
    "retention apply": (Operation.RETENTION_PLAN, Operation.RETENTION_APPLY),
    "retention hold": (Operation.HOLD_PLACE,),
    "retention release": (Operation.HOLD_RELEASE,),
    "retention holds": (Operation.HOLD_LIST,),
    "retention log": (Operation.RETENTION_LOG,),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    address = tmp_path_factory.mktemp("access") / "store"
    keys = address.parent / "key.json"
    assert inside("init", address, "--access", "strict", "--encrypt", "--key-file", keys).code == 0
    put(address, {"n": 0}, "--kind", "acme.order")
    assert inside("archive", "run", "--to", address.parent / "archive", "--store", address).code == 0
    return address


def as_(role: str, *more: str) -> tuple[str, ...]:
    return ("--as", f"some-{role}", "--role", role, *more)


def test_every_command_is_an_operation_of_the_table() -> None:
    names = {"report" if path[0] == "report" and path != ("report", "access") else " ".join(path) for path in COMMANDS}
    assert names | {"erase"} == set(OPERATIONS)  # a group that is a command by itself, too


COMMAND_LINES = {
    "get": ("get", "ID"),
    "list": ("list",),
    "log": ("log", "ID"),
    "tail": ("tail", "--from-start", "--idle-timeout", "0"),
    "report": ("report", "audit"),
    "report access": ("report", "access"),
    "sql": ("sql", "SELECT 1"),
    "verify": ("verify",),
    "verify without keys": ("verify", "--without-keys"),
    "rebuild": ("rebuild",),
    "report growth": ("report", "growth"),
    "report recovery": ("report", "recovery"),
    "migrate plan": ("migrate", "plan"),
    "migrate run": ("migrate", "run"),
    "migrate undo": ("migrate", "undo"),
    "recovery list": ("recovery", "list"),
    "recovery show": ("recovery", "show", "RUN"),
    "recovery resolve": ("recovery", "resolve", "RUN", "--decision", "mark-failed", "--reason", "cancelled"),
    "recovery settle": ("recovery", "settle", "EFFECT", "--outcome", "not-executed", "--reason", "not in the outbox"),
    "keys status": ("keys", "status"),
    "keys rotate": ("keys", "rotate"),
    "archive run": ("archive", "run"),
    "archive list": ("archive", "list"),
    "archive verify": ("archive", "verify"),
    "anchor": ("anchor",),
    "compact": ("compact",),
    "backup run": ("backup", "run", "NEW", "--without-keys"),
    "backup drill": ("backup", "drill", "BACKUP", "--without-keys"),
    "erase": ("erase", "--checkpoint", "ID", "--reason", "request 4711", "--yes"),
    "erase status": ("erase", "status"),
    "erase finish": ("erase", "finish"),
    "erase apply": ("erase", "apply"),
    "retention plan": ("retention", "plan", "--policy", "POLICY"),
    "retention apply": ("retention", "apply", "--policy", "POLICY", "--reason", "old"),
    "retention hold": ("retention", "hold", "--checkpoint", "ID", "--reason", "case 4711"),
    "retention holds": ("retention", "holds"),
    "retention log": ("retention", "log"),
    "access prune": ("access", "prune", "--older-than", "2020-01-01T00:00:00Z"),
}


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_command_ends_as_the_table_says(store: Path, name: str, tmp_path: Path) -> None:
    identity = put(store, {"n": 0}, "--kind", "acme.order")["id"]
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rule]]\nname = "none"\nkind = "no.such"\nolder_than = "1d"\n')
    if "BACKUP" in COMMAND_LINES[name]:
        assert inside("backup", tmp_path / "backup", "--without-keys", "--store", store).code == 0
    operations = OPERATIONS.get(name) or OPERATIONS[name.partition(" ")[0]]
    for role in Role:
        named = {
            "ID": identity,
            "POLICY": str(policy),
            "NEW": str(tmp_path / role),
            "BACKUP": str(tmp_path / "backup"),
            **(_left(store, tmp_path) if {"RUN", "EFFECT"} & set(COMMAND_LINES[name]) else {}),
        }
        words = [named.get(word, word) for word in COMMAND_LINES[name]]
        run = inside(*words, *as_(role), "--store", store)
        allowed = all(grant(operation, [role]).value for operation in operations)
        assert run.code == (0 if allowed else 21), (role, run)
        if not allowed:
            assert any(f"some-{role} may not {operation}" in run.err for operation in operations)
        else:
            found = inside("report", "access", "--subject", f"some-{role}", "--store", store, "--format", "json").json()
            assert {operation.value for operation in operations} <= {row["action"] for row in found if row["outcome"] == "allowed"}


def _left(store: Path, folder: Path) -> dict[str, str]:
    """A run that was left in flight, and its effect."""
    with open_store(store) as whole:
        left = run_left(whole, folder)
    return {"RUN": str(left.id), "EFFECT": effect_id(DEFAULT_TENANT, "charge", left.key)}


def test_a_denial_is_21_and_says_which_role_is_missing(store: Path) -> None:
    run = eventlog("sql", "SELECT 1", *as_("reader"), "--store", store, "--format", "json")
    assert run.code == 21
    error = run.error()
    assert (error["kind"], error["operation"], error["missing"]) == ("DENIED", "sql", ["admin"])


def test_another_tenants_checkpoint_is_not_found_with_the_words_of_an_absent_one(store: Path) -> None:
    identity = put(store, {"n": 0}, "--kind", "acme.order", "--tenant", "south")["id"]
    run = inside("get", identity, *as_("reader", "--tenant", "north"), "--store", store)
    assert (run.code, run.err.splitlines()[0]) == (3, f"error: checkpoint {identity} not found")
    assert inside("get", identity, *as_("reader", "--tenant", "south"), "--store", store).code == 0


def test_an_auditor_gets_no_payload_and_is_told_so(store: Path) -> None:
    identity = put(store, {"secret": "marker-of-the-payload"}, "--kind", "acme.order")["id"]
    shown = inside("get", identity, *as_("auditor"), "--store", store, "--format", "json").json()
    assert shown["payload_withheld"] is True
    assert "payload" not in shown
    assert inside("get", identity, "--payload", *as_("auditor"), "--store", store).code == 21
    tail = ("tail", "--from-start", "--idle-timeout", "0", "--store", str(store), "--format", "json")
    assert inside(*tail, "--payload", *as_("auditor")).code == 21
    run = inside(*tail, *as_("auditor"))
    assert run.code == 0
    assert "marker-of-the-payload" not in run.out


def test_who_read_a_revision_is_one_command(store: Path) -> None:
    identity = put(store, {"n": 0}, "--kind", "acme.order", "--tenant", "north")["id"]
    assert inside("get", identity, *as_("reader"), "--store", store, env={"EVENTLOG_REASON": "ticket 4711"}).code == 0
    question = ("report", "access", "--checkpoint", identity, "--revision", "0", "--action", "load_revision", "--store", store)
    found = inside(*question, "--format", "json").json()
    assert [(row["subject"], row["reason"]) for row in found] == [("some-reader", "ticket 4711")]
    assert inside(*question, *as_("auditor", "--tenant", "north"), "--format", "json").json() == found
    assert inside(*question, *as_("auditor", "--tenant", "south"), "--format", "json").json() == []


def test_the_settings_say_who_is_asking(store: Path) -> None:
    who = {"EVENTLOG_SUBJECT": "from-settings", "EVENTLOG_ROLE": "reader, auditor", "EVENTLOG_TENANT": "north"}
    receipt = eventlog("put", "-", "--kind", "acme.order", "--store", store, stdin="{}", env=who)
    assert receipt.code == 21
    assert "from-settings may not compare_and_swap" in receipt.err
    assert eventlog("list", "--store", store, env=who).code == 0


@pytest.mark.parametrize(
    "arguments", [("--as", "x"), ("--role", "reader"), ("--as", "x", "--role", "king"), (*as_("reader"), "--actor", "other")]
)
def test_half_of_a_principal_is_refused(store: Path, arguments: tuple[str, ...]) -> None:
    assert inside("list", *arguments, "--store", store).code == 6


def test_a_store_is_never_opened_less_strictly(store: Path) -> None:
    assert inside("list", "--store", store, env={"EVENTLOG_ACCESS": "buffered"}).code == 15
    assert inside("list", "--store", store, env={"EVENTLOG_ACCESS": "strict"}).code == 0
