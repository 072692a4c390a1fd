"""Each cell of the table of roles: what is granted works, what is withheld is withheld, what is refused is refused and on record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    PAYLOAD_WITHHELD,
    AccessDenied,
    Checkpoint,
    CheckpointStore,
    ErrorKind,
    InvalidPayload,
    InvalidRequest,
    Principal,
    Revision,
    Role,
)
from eventlog.catalog import Catalog
from eventlog.privacy.catalog import GuardedCatalog
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.principals import MEANINGS, WHOLE_STORE, Grant, Operation, grant
from eventlog.privacy.store import PrincipalStore
from eventlog.verification import verify
from tests.access.conftest import Recorded
from tests.access.operations import ABOUT_RUNS, PERFORMED, Denied, Scene, held, run_left
from tests.access.samples import outcomes, somebody
from tests.store.samples import initial, stream

# The last four concern no store that is open, or not necessarily one: see tests/cli/test_cli_access.py.
NOT_RECORDED = {
    Operation.POSITION, Operation.INTERNALS, Operation.ACT_FOR, Operation.CREATE, Operation.RESTORE,
    Operation.ARCHIVE_LIST, Operation.ARCHIVE_VERIFY,
}  # fmt: skip
COLUMN = Role.AUDITOR  # on Kafka: the one with all kinds of cells
CELLS = [
    *(pytest.param("embedded", operation, role, id=f"embedded-{operation}-{role}") for operation in Operation for role in Role),
    *(pytest.param("kafka", operation, COLUMN, id=f"kafka-{operation}-{COLUMN}", marks=pytest.mark.broker) for operation in Operation),
]


def scene(recorded: Recorded, principal: Principal, folder: Path, operation: Operation, **fields: Any) -> Scene:
    store = recorded.store
    before = store.position()
    last = stream(store, 2, **fields)[-1]
    runs = [run_left(store, folder)] if operation in ABOUT_RUNS else []
    holds = [held(store, last)] if operation is Operation.HOLD_RELEASE else []
    return Scene(store.for_principal(principal), principal, last, before, folder, recorded, runs, holds)


@pytest.mark.parametrize(("kind", "operation", "role"), CELLS, indirect=["kind"])
def test_a_role_may_do_what_its_cell_says_and_nothing_else(recorded: Recorded, operation: Operation, role: Role, tmp_path: Path) -> None:
    store, who = recorded.store, somebody(role)
    given = scene(recorded, who, tmp_path, operation)
    cell = grant(operation, [role])
    if cell is Grant.NONE:
        before = (store.position(), store.load(given.last.id))
        with pytest.raises((AccessDenied, Denied)) as refused:
            PERFORMED[operation](given)
        if isinstance(refused.value, AccessDenied):
            assert refused.value.kind is ErrorKind.DENIED
            assert (refused.value.subject, refused.value.operation) == (who.subject, operation.value)
            assert set(refused.value.missing) == {each for each in Role if grant(operation, [each]) is not Grant.NONE}
            assert all(each in str(refused.value) for each in (who.subject, operation.value, *refused.value.missing))
            assert outcomes(store, subject=who.subject) == [(operation.value, "refused")]
        assert (store.position(), store.load(given.last.id)) == before
        return
    found = PERFORMED[operation](given)
    payloads = [each.checkpoint.payload for each in (found if isinstance(found, list) else [found]) if isinstance(each, Revision)]
    if operation in {Operation.LOAD_REVISION, Operation.HISTORY, Operation.SUBSCRIBE}:
        assert payloads
        assert all((each is PAYLOAD_WITHHELD) == (cell is Grant.METADATA) for each in payloads)
    if operation not in NOT_RECORDED:
        assert (operation.value, "allowed") in outcomes(store, subject=who.subject)


@pytest.mark.parametrize("kind", ["embedded"], indirect=True)
@pytest.mark.parametrize("operation", sorted(WHOLE_STORE), ids=str)
def test_what_concerns_all_tenants_is_refused_to_whoever_has_one(recorded: Recorded, operation: Operation, tmp_path: Path) -> None:
    who = somebody("admin", "north")
    with pytest.raises((AccessDenied, Denied), match="all tenants") as refused:
        PERFORMED[operation](scene(recorded, who, tmp_path, operation, tenant="north"))
    if isinstance(refused.value, AccessDenied):
        assert outcomes(recorded.store, subject=who.subject) == [(operation.value, "refused")]


def test_every_operation_has_a_meaning_and_is_performed_by_a_test() -> None:
    assert set(MEANINGS) == set(PERFORMED) == set(Operation)


STORE_CALLS = {
    "for_principal": Operation.ACT_FOR,
    "compare_and_swap": Operation.COMPARE_AND_SWAP,
    "compare_and_swap_many": Operation.COMPARE_AND_SWAP,
    "delete": Operation.DELETE,
    "import_revision": Operation.IMPORT,
    "migrate_revision": Operation.MIGRATE,
    "resolve": Operation.RESOLVE,
    "load": Operation.LOAD,
    "load_revision": Operation.LOAD_REVISION,
    "history": Operation.HISTORY,
    "list": Operation.LIST,
    "subscribe": Operation.SUBSCRIBE,
    "position": Operation.POSITION,
    "position_at": Operation.POSITION,
    "log": Operation.INTERNALS,
    "catalog": None,  # its own calls are guarded
    "entrusted": None,  # is told the operation
    "announce": None,  # likewise
    "keys": Operation.KEYS,
    "require_payloads": Operation.LOAD,
    "forget": None,  # takes nothing from anybody, and shows nothing
    "close": None,
}


def test_every_public_call_of_the_store_is_an_operation() -> None:
    calls = {name for name in vars(CheckpointStore) if not name.startswith("_")}
    assert calls == set(STORE_CALLS)
    assert calls - set(vars(PrincipalStore)) == {"subscribe"}  # which calls what is


def test_every_public_call_of_the_catalogue_is_guarded() -> None:
    assert {name for name in vars(Catalog) if not name.startswith("_")} <= set(vars(GuardedCatalog))


def test_several_roles_give_together_what_each_gives() -> None:
    for operation in Operation:
        together = grant(operation, [Role.READER, Role.AUDITOR])
        assert together.value == max(grant(operation, [Role.READER]).value, grant(operation, [Role.AUDITOR]).value)
        assert grant(operation, [Role.ADMIN]) is Grant.FULL


@pytest.mark.parametrize(
    ("subject", "tenant", "roles"), [("", None, ["reader"]), ("a", "b c", ["reader"]), ("a", None, []), ("a", None, ["king"])]
)
def test_a_malformed_principal_is_refused(subject: str, tenant: str | None, roles: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        Principal(subject, tenant, roles)


def test_a_withheld_payload_passes_for_nothing_else(store: CheckpointStore) -> None:
    last = stream(store, 1)[-1]
    withheld: Checkpoint = store.for_principal(somebody("auditor")).load_revision(last.id).checkpoint
    assert withheld.model_dump(exclude={"payload"}) == last.model_dump(exclude={"payload"})
    with pytest.raises(InvalidPayload):
        store.compare_and_swap(withheld.next(withheld.payload), 0)
    with pytest.raises(TypeError):
        json.dumps(withheld.payload)
    with pytest.raises(TypeError):
        bool(withheld.payload)


def test_an_erased_or_large_payload_is_not_even_decoded_for_metadata(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    last = stream(store, 2)[-1]
    auditor = store.for_principal(somebody("auditor"))
    from eventlog.event import CheckpointEvent

    monkeypatch.setattr(CheckpointEvent, "json_text", lambda _: pytest.fail("it was decoded"))
    monkeypatch.setattr(DataKeys, "json_text", lambda *_: pytest.fail("it was decrypted"))
    assert auditor.load_revision(last.id).checkpoint.payload is PAYLOAD_WITHHELD
    assert len(list(auditor.history(last.id))) == 2


def test_the_actor_of_what_is_written_is_the_subject(store: CheckpointStore) -> None:
    who = somebody("writer")
    first = initial()
    mine = store.for_principal(who)
    mine.compare_and_swap(first, None)
    mine.delete(first.id, 0)
    assert [each.actor for each in store.history(first.id) if isinstance(each, Revision)] == [who.subject, who.subject]


def test_a_principals_store_is_closed_without_closing_the_store(store: CheckpointStore) -> None:
    last = stream(store, 1)[-1]
    with store.for_principal(somebody("reader")) as mine:
        assert mine.load(last.id) == last
    assert store.load(last.id) == last


def test_only_an_admin_uses_the_store_for_others_and_never_beyond_the_own_tenant(store: CheckpointStore) -> None:
    north = store.for_principal(somebody("admin", "north"))
    with pytest.raises(InvalidRequest, match="tenant"):
        north.for_principal(Principal("x", "south", ["reader"]))
    last = stream(store, 1, tenant="south")[-1]
    theirs = north.for_principal(Principal("x", None, ["admin"]))  # limited as the one that it was made by
    assert theirs.list(kind=last.kind, tenant="south").items == ()
    assert theirs.catalog.report("audit", {"tenant": "north"}).columns
    for call in (lambda: theirs.catalog.sql("SELECT 1"), lambda: verify(theirs), lambda: theirs.log):
        with pytest.raises(AccessDenied, match="all tenants"):
            call()
