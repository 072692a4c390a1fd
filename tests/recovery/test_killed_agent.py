"""A process that is killed at any write-ahead boundary: what a new process finds, repeats and refuses, and what has happened outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointId, CheckpointStore, NotFound, create_store, open_store
from eventlog.recovery import (
    AgentRun,
    AmbiguousEffect,
    AmbiguousResume,
    Completed,
    Effect,
    EffectStore,
    RetryInFlight,
    Settlement,
)
from tests.recovery.agent_kill_table import GROUPS, SETTLING, Row, known
from tests.recovery.order_agent import FIRST_STATE, LAST_STATE, RESPONSE, OrderAgent
from tests.recovery.samples import AGENT, DEFINITION, MODEL, Outside
from tests.recovery.victims import Job, Victims, victims
from tests.store.samples import nothing_written

pytestmark = pytest.mark.long_on_kafka

UNDISTURBED = {"model": 1, "look_up": 1, "charge_card": 1, "send_mail": 1, "book_courier": 1, "knock": 2, "hold_stock": 1}
OUTPUTS = {"send_mail": {"mailed": 7}, "hold_stock": {"held": 7}}


def asked(effect: Effect) -> Settlement:
    """The other side says that the mail has gone out."""
    return Settlement.completed(OUTPUTS[effect.capability])


@pytest.fixture(scope="module")
def killer() -> Iterator[Victims]:
    with victims() as made:
        yield made


class Killed:
    """A run whose process was killed, as a new process sees it."""

    def __init__(self, killer: Victims, address: str, folder: Path, kill: str, *, mode: str = "sync") -> None:
        self.id = CheckpointId.new()
        self.tenant = f"t{self.id}"
        self.kill = kill
        self.outside = Outside(folder / f"outside-{self.id}")
        killer.kill(Job(address, self.tenant, self.id, str(self.outside.file), kill, mode))

    def effects(self, store: CheckpointStore) -> EffectStore:
        return EffectStore(store, tenant=self.tenant)

    def resume(self, store: CheckpointStore, *, retry: bool) -> AgentRun:
        policy = RetryInFlight(effects=self.effects(store)) if retry else None
        return AgentRun.resume(store, self.id, agent=AGENT, model=MODEL, definition_version=DEFINITION, policy=policy)

    def start_anew(self, store: CheckpointStore) -> AgentRun:
        arguments: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION, "tenant": self.tenant}
        return AgentRun.start(store, state=FIRST_STATE, effects=self.effects(store), checkpoint_id=self.id, **arguments)

    def settle(self, store: CheckpointStore, tool: str, truth: str) -> None:
        """A person has asked the other side."""
        said = {
            "completed": lambda: Settlement.completed(OUTPUTS[tool]),
            "failed": lambda: Settlement.failed("no courier today"),
            "not executed": Settlement.not_executed,
        }[truth]()
        self.effects(store).settle(tool, f"{self.id}-{tool}", said, reason="asked the other side")


def aftermath(store: CheckpointStore, killed: Killed, row: Row) -> dict[str, Any]:
    """What a new process finds under `Reject`, then what it does under `RetryInFlight`, to the end."""
    told: dict[str, Any] = {"kill": killed.kill}
    agent = OrderAgent(killed.outside)
    with nothing_written(store):
        try:
            told["found"] = killed.resume(store, retry=False).phase.name
        except NotFound:
            told["found"] = "absent"
        except AmbiguousResume as error:
            told["found"] = "in flight"
            told["what"] = (error.what, error.attempt)
            told["known"] = {each.capability: each.state for each in error.effects}
    before = killed.outside.calls()
    run = killed.start_anew(store) if told["found"] == "absent" else killed.resume(store, retry=True)
    told["refused"] = ""
    if isinstance(run.phase, Completed):
        with nothing_written(store):
            told["response"] = run.response
        assert killed.outside.calls() == before
    else:
        try:
            agent.work(run)
        except AmbiguousEffect as error:
            refused = error.capability
            told["refused"] = refused
        if told["refused"]:
            assert killed.outside.calls().count(refused) == before.count(refused)
            killed.settle(store, refused, row.truth)
            agent.work(killed.resume(store, retry=True))
    ended = killed.resume(store, retry=False)
    told["response"], told["state"], told["tokens"] = ended.response, ended.state, ended.usage["tokens"]
    told["turns"] = ended.usage["turns"]
    told["calls"] = dict(Counter(killed.outside.calls()))
    return told


def expected(row: Row, kill: str) -> dict[str, Any]:
    """The same as the table has it."""
    told: dict[str, Any] = {"kill": kill, "found": {"ready": "ready_for_turn"}.get(row.found, row.found)}
    attempts, asked, tokens = 1, 1, 100  # of whoever does the turn, if nobody was killed in it
    if row.found == "in flight":
        told |= {"what": ("turn 1", 1), "known": known(row)}
        retries = 2 if row.refused else 1
        attempts, tokens = 1 + retries, 100 * (row.spent + retries)
        asked = retries + (1 if row.spent or "model" in row.again else 0)
    calls = {name: number + (name in row.again) for name, number in UNDISTURBED.items()} | {"model": asked}
    return told | {
        "refused": row.tool if row.refused else "",
        "response": RESPONSE,
        "state": LAST_STATE,
        "tokens": tokens,
        "turns": attempts,
        "calls": calls,
    }


@pytest.mark.parametrize("group", GROUPS)
def test_a_run_killed_at_any_boundary_is_resumed_knowing_what_happened(
    store: CheckpointStore, second_address: str, killer: Victims, tmp_path: Path, group: str
) -> None:
    jobs = [(row, kill) for row in GROUPS[group] for kill in row.kills]
    all_killed = [Killed(killer, second_address, tmp_path, kill) for _, kill in jobs]
    found = [aftermath(store, killed, row) for killed, (row, _) in zip(all_killed, jobs, strict=True)]
    assert found == [expected(row, kill) for row, kill in jobs]


@pytest.mark.parametrize("group", GROUPS)
def test_a_run_on_an_event_loop_is_found_alike(tmp_path: Path, killer: Victims, group: str) -> None:
    create_store(tmp_path / "store")
    with open_store(tmp_path / "store", actor="tester") as store:
        for row in GROUPS[group]:
            kill = row.kills[-1]
            killed = Killed(killer, str(tmp_path / "store"), tmp_path, kill, mode="async")
            assert aftermath(store, killed, row) == expected(row, kill)


@pytest.mark.parametrize("kill", SETTLING)
def test_killed_while_a_reconcilers_answer_is_recorded_nothing_is_done_twice(
    store: CheckpointStore, second_address: str, killer: Victims, tmp_path: Path, kill: str
) -> None:
    killed = Killed(killer, second_address, tmp_path, "in send_mail")
    killer.kill(Job(second_address, killed.tenant, killed.id, str(killed.outside.file), kill, "resume"))
    with pytest.raises(AmbiguousResume) as found:
        killed.resume(store, retry=False)
    assert found.value.attempt == 2
    known_states = {each.capability: each.state for each in found.value.effects}
    assert known_states["send_mail"] == ("started" if kill.startswith("before") else "completed")
    agent = OrderAgent(killed.outside)
    agent.reconcile = asked
    agent.work(killed.resume(store, retry=True))
    assert dict(Counter(killed.outside.calls())) == {**UNDISTURBED, "model": 3}
