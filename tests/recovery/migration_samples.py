"""Checkpoints of every version that migrations start from, in every phase, and the steps that they go over in the tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventlog import Checkpoint, CheckpointId, CheckpointStore, EventId, RunId
from eventlog.recovery import CannotCarry, Migrations, Parallel, Race, Schema, WaitForSignal, WaitForTimer, runifold_migrations
from eventlog.recovery.migrations import Payload

FIXTURES = Path(__file__).parent / "fixtures"
WRITTEN = datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
LAYOUT: list[Any] = [
    "validate",
    Parallel("fanout", ["stock", "credit", "fraud", "gift"]),
    Race("quote", ["post", "courier"]),
    WaitForSignal("approve"),
    WaitForTimer("cool_off"),
    "ship",
]
LATER: list[Any] = ["validate", "fanout", Race("quote", ["post", "courier"]), WaitForSignal("approve"), WaitForTimer("cool_off"), "ship"]
LATEST: list[Any] = ["validate", "fanout", "quote", WaitForSignal("approve"), WaitForTimer("cool_off"), "ship"]
WAITED: list[Any] = ["validate", "fanout", "quote", "approve", WaitForTimer("cool_off"), "ship"]
LAYOUTS: dict[str, list[Any]] = {"order": LAYOUT, "parcel": ["validate", "ship"]}


def layout_for(payload: Payload) -> list[Any]:
    """The layout that carries a Runifold workflow: what is behind it are plain steps."""
    if payload["workflow"] != "order":
        return LAYOUTS[payload["workflow"]]
    return {0: LAYOUT, 1: LAYOUT, 2: LATER, 3: LATEST, 4: WAITED}[payload["next_index"]]


def samples(name: str) -> dict[str, Payload]:
    """The payloads of a version, by what they are in."""
    read: dict[str, Payload] = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    return read


def every_sample() -> list[tuple[Schema, str]]:
    """What it is, and what it is in, of all of them."""
    found: list[tuple[Schema, str]] = []
    for path in sorted(FIXTURES.glob("*.json")):
        kind, _, version = path.stem.rpartition(".v")
        found.extend((Schema(kind, int(version)), name) for name in samples(path.stem))
    return found


def sample(kind: str, version: int, name: str, *, revision: int = 0, **fields: Any) -> Checkpoint:
    """One of them as a checkpoint that nothing has used."""
    made = Checkpoint.initial(
        CheckpointId.new(), RunId.new(), kind, version, samples(f"{kind}.v{version}")[name], updated_at=WRITTEN, **fields
    )
    return made.model_copy(update={"revision": revision, "event_id": EventId.new()})


def stored(store: CheckpointStore, checkpoint: Checkpoint) -> Checkpoint:
    """Committed: as an import, where it does not begin at revision 0."""
    if checkpoint.revision:
        store.import_revision(checkpoint)
    else:
        store.compare_and_swap(checkpoint, None)
    return checkpoint


def built_in(payload: Payload | None = None) -> Migrations:
    """The steps that ship, with the layout that a payload needs."""
    layouts: dict[tuple[str, int], Any] = {("order", 2): LAYOUT, ("parcel", 2): LAYOUTS["parcel"]}
    if payload is not None and "workflow" in payload:
        layouts[payload["workflow"], 2] = layout_for(payload)
    return runifold_migrations(definition_version=3, layouts=layouts)


def steps_for(kind: str, payload: Payload) -> Migrations:
    """Steps that start from a sample: the ones that ship, or of our own kinds to some of an application."""
    if kind.startswith("runifold."):
        return built_in(payload)
    return Migrations().register(from_=(kind, 1), to=(f"acme.{kind.split('.')[1]}", 2), up=wrapped, down=unwrapped)


def wrapped(payload: Payload) -> Payload:
    """A payload in another form."""
    return {"phase": payload.pop("phase"), "run": payload}


def unwrapped(payload: Payload) -> Payload:
    """And back."""
    if set(payload) != {"phase", "run"}:
        raise CannotCarry(f"there is no field for {sorted(set(payload) - {'phase', 'run'})}")
    return {**payload["run"], "phase": payload["phase"]}


def orders() -> Migrations:
    """Orders in three versions: a currency, then the price in cents."""

    def in_cents(payload: Payload) -> Payload:
        payload["cents"] = payload.pop("price") * 100
        return payload

    def in_units(payload: Payload) -> Payload:
        units, rest = divmod(payload.pop("cents"), 100)
        if rest:
            raise CannotCarry("the price is no whole number")
        payload["price"] = units
        return payload

    def without_currency(payload: Payload) -> Payload:
        del payload["currency"]
        return payload

    return (
        Migrations()
        .register(from_=("acme.order", 1), to=("acme.order", 2), up=lambda old: {**old, "currency": "EUR"}, down=without_currency)
        .register(from_=("acme.order", 2), to=("acme.order", 3), up=in_cents, down=in_units)
    )
