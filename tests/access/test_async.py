"""The same for asyncio: roles, tenant and record, and callers of one loop share a durable write."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    PAYLOAD_WITHHELD,
    AccessDenied,
    AsyncCheckpointStore,
    Conflict,
    KeyFile,
    NotFound,
    Position,
    Revision,
    create_store,
    open_async_store,
    open_store,
)
from eventlog.privacy.access_embedded import EmbeddedAccessLog
from eventlog.recovery import AsyncDecisions
from tests.access.samples import outcomes, somebody, trail
from tests.store.samples import initial

CALLERS = 40


async def _everything(store: AsyncCheckpointStore) -> None:
    first = initial(tenant="north")
    writer, auditor, south = (somebody("writer", "north"), somebody("auditor"), somebody("writer", "south"))
    mine = store.for_principal(writer, reason="async")
    await mine.compare_and_swap(first, None)
    with pytest.raises(Conflict):
        await mine.compare_and_swap(first.next({"step": 1}).model_copy(update={"revision": 2}), 1)
    assert (await mine.load(first.id)) == first
    await mine.compare_and_swap_many([(initial(tenant="north"), None)])
    moved = first.next({"step": 1}).model_copy(update={"schema_version": 9})
    await mine.migrate_revision(moved, 0)
    with pytest.raises(Conflict):
        await mine.migrate_revision(first.next({"step": 2}).model_copy(update={"schema_version": 9}), 0)
    theirs = store.for_principal(south)
    with pytest.raises(NotFound):
        await theirs.load(first.id)
    with pytest.raises(NotFound):
        await theirs.compare_and_swap(first.next({"step": 1}).model_copy(update={"tenant": "south"}), 0)
    watching = store.for_principal(auditor)
    with pytest.raises(AccessDenied):
        await watching.load(first.id)
    with pytest.raises(AccessDenied):
        await watching.compare_and_swap(first.next({"step": 1}), 0)
    with pytest.raises(AccessDenied):
        await watching.migrate_revision(moved.next({"step": 2}), 1)
    with pytest.raises(AccessDenied):
        await AsyncDecisions(watching).show(first.id)
    with pytest.raises(AccessDenied):
        _ = watching.keys
    assert (await watching.load_revision(first.id)).checkpoint.payload is PAYLOAD_WITHHELD
    assert [each.checkpoint.payload async for each in watching.history(first.id) if isinstance(each, Revision)] == [PAYLOAD_WITHHELD] * 2
    assert [each async for each in theirs.subscribe(Position(), idle_timeout=0)] == []
    whole: Any = store._store
    found = await asyncio.to_thread(lambda: {who.subject: outcomes(whole, subject=who.subject) for who in (writer, auditor, south)})
    assert found[writer.subject] == [
        ("compare_and_swap", "allowed"),
        ("compare_and_swap", "allowed"),
        ("compare_and_swap", "failed"),
        ("load", "allowed"),
        ("compare_and_swap", "allowed"),
        ("migrate", "allowed"),
        ("migrate", "allowed"),
        ("migrate", "failed"),
    ]
    assert found[south.subject] == [("load", "absent"), ("compare_and_swap", "allowed"), ("compare_and_swap", "absent")]
    assert found[auditor.subject] == [
        ("load", "refused"),
        ("compare_and_swap", "refused"),
        ("migrate", "refused"),
        ("runs_show", "refused"),
        ("keys", "refused"),
        ("load_revision", "allowed"),
        ("history", "allowed"),
        ("history", "allowed"),
    ]


@pytest.mark.parametrize("access", ["buffered", "strict"])
def test_it_is_the_same_for_asyncio(tmp_path: Path, access: str) -> None:
    async def main() -> None:
        create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"), access=access)
        async with await open_async_store(tmp_path / "store", actor="root") as store:
            await _everything(store)

    asyncio.run(main())


def test_callers_of_one_loop_share_a_durable_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    write = EmbeddedAccessLog._write

    def counted(self: EmbeddedAccessLog, events: Any) -> Any:
        writes.append(len(events))
        return write(self, events)

    create_store(tmp_path / "store", access="strict")
    first = initial()
    with open_store(tmp_path / "store") as store:
        store.compare_and_swap(first, None)

    async def main() -> None:
        async with await open_async_store(tmp_path / "store", actor="many") as store:
            monkeypatch.setattr(EmbeddedAccessLog, "_write", counted)
            log: Any = store._store.recorder and store._store.recorder.log
            log._group._write = log._write
            assert await asyncio.gather(*(store.load(first.id) for _ in range(CALLERS))) == [first] * CALLERS

    asyncio.run(main())
    assert sum(writes) == CALLERS
    assert len(writes) < CALLERS // 4
    with open_store(tmp_path / "store") as store:
        assert len(trail(store, subject="many")) == CALLERS
