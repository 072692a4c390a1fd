"""A store on the embedded log against a dictionary, through any sequence of calls that Hypothesis can think of."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eventlog import (
    Checkpoint,
    CheckpointError,
    CheckpointId,
    CheckpointStore,
    Conflict,
    Deleted,
    EventIdReused,
    InvalidRequest,
    NotFound,
    Position,
    Receipt,
    Revision,
    RunId,
    create_store,
    open_store,
)
from tests.core.json_values import JSON
from tests.store.samples import chain_is_intact

IDS = [CheckpointId(f"00000000-0000-7000-8000-00000000000{number}") for number in range(3)]
RUN = RunId("00000000-0000-7000-8000-0000000000aa")


class StoreAndModel(RuleBasedStateMachine):
    """`streams`: what each checkpoint must hold; `deleted`: those that ended; `sent`: every proposal with its first answer."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="eventlog-model-"))
        create_store(self.directory / "store")
        self.stores = [open_store(self.directory / "store", actor="one")]
        self.turn = 0
        self.streams: dict[str, list[Checkpoint | None]] = {}
        self.deleted: set[str] = set()
        self.receipts: dict[str, tuple[Checkpoint, int | None, Receipt]] = {}
        self.refused: list[tuple[Checkpoint, int | None]] = []
        self.order: list[str] = []

    @property
    def store(self) -> CheckpointStore:
        """Turn and turn about, when there are two."""
        self.turn += 1
        return self.stores[self.turn % len(self.stores)]

    def current(self, checkpoint_id: str) -> int | None:
        return len(self.streams[checkpoint_id]) - 1 if checkpoint_id in self.streams else None

    def last(self, checkpoint_id: str) -> Checkpoint:
        return [each for each in self.streams[checkpoint_id] if each is not None][-1]

    @rule(
        which=st.sampled_from(IDS), payload=JSON, expected=st.sampled_from(["right", None, -1, 1]), jump=st.sampled_from([0, 0, 0, 1, -1])
    )
    def propose(self, which: CheckpointId, payload: Any, expected: Any, jump: int) -> None:
        now = self.current(which)
        wanted = now if expected == "right" else None if expected is None or now is None else max(0, now + expected)
        revision = max(0, (0 if now is None else now + 1) + jump)
        made = Checkpoint.initial(which, RUN, "model", 1, payload, usage={"n": revision}, phase="p")
        proposal = made.model_copy(update={"revision": revision})
        self.send(proposal, wanted)

    def send(self, proposal: Checkpoint, expected: int | None) -> None:
        now = self.current(proposal.id)
        try:
            answer: Receipt | CheckpointError = self.store.compare_and_swap(proposal, expected)
        except CheckpointError as error:
            answer = error
        if proposal.id in self.deleted:
            assert type(answer) is Deleted
        elif now is None and expected is not None:
            assert type(answer) is NotFound
        elif (now is None and proposal.revision == 0) or (now is not None and expected == now and proposal.revision == now + 1):
            assert isinstance(answer, Receipt), answer
            assert not answer.duplicate
            self.streams.setdefault(proposal.id, []).append(proposal)
            self.receipts[proposal.event_id] = (proposal, expected, answer)
            self.order.append(proposal.event_id)
            return
        else:
            assert isinstance(answer, Conflict)
            assert answer.actual == now
        self.refused.append((proposal, expected))

    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        if self.receipts:
            proposal, expected, receipt = self.receipts[data.draw(st.sampled_from(sorted(self.receipts)))]
            assert self.store.compare_and_swap(proposal, expected) == receipt._replace(duplicate=True)
            assert self.store.resolve(proposal) == self.store.resolve(proposal.event_id) == receipt

    @rule(data=st.data(), change=st.sampled_from([{"payload": {"other": 1}}, {"labels": {"x": "y"}}, {"phase": "q"}, {"kind": "other"}]))
    def send_the_same_id_with_other_content(self, data: st.DataObject, change: dict[str, Any]) -> None:
        if self.receipts:
            proposal, expected, _ = self.receipts[data.draw(st.sampled_from(sorted(self.receipts)))]
            if proposal.payload != change.get("payload", ()):
                self.must_fail(EventIdReused, lambda: self.store.compare_and_swap(proposal.model_copy(update=change), expected))

    @rule(data=st.data())
    def send_what_was_refused_again(self, data: st.DataObject) -> None:
        if self.refused:
            proposal, expected = self.refused.pop(data.draw(st.integers(0, len(self.refused) - 1)))
            assert self.store.resolve(proposal) is None
            assert self.store.resolve(proposal.event_id) is None
            self.send(proposal, expected)

    @rule(which=st.sampled_from(IDS))
    def spend_less(self, which: CheckpointId) -> None:
        if which in self.streams and which not in self.deleted and self.last(which).usage["n"] > 0:
            proposal = self.last(which).next(None, usage={"n": self.last(which).usage["n"] - 1})
            self.must_fail(InvalidRequest, lambda: self.store.compare_and_swap(proposal, self.current(which)))

    @rule(which=st.sampled_from(IDS), off=st.sampled_from([0, 0, 1]))
    def delete(self, which: CheckpointId, off: int) -> None:
        now = self.current(which)
        if now is None:
            self.must_fail(NotFound, lambda: self.store.delete(which, 0))
        elif which in self.deleted:
            self.must_fail(Deleted, lambda: self.store.delete(which, now))
        elif off:
            self.must_fail(Conflict, lambda: self.store.delete(which, now + off))
        else:
            receipt = self.store.delete(which, now)
            assert receipt.revision == now + 1
            self.streams[which].append(None)
            self.deleted.add(which)
            self.order.append(receipt.event_id)

    @rule()
    def reopen(self) -> None:
        for each in self.stores:
            each.close()
        self.stores = [open_store(self.directory / "store", actor="one")]

    @rule()
    def open_another(self) -> None:
        if len(self.stores) == 1:
            self.stores.append(open_store(self.directory / "store", actor="two"))

    @rule()
    def list_them(self) -> None:
        items = {each.id: (each.revision, each.deleted) for each in self.store.list(include_deleted=True).items}
        assert items == {each: (self.current(each), each in self.deleted) for each in self.streams}

    @rule(which=st.sampled_from(IDS), revision=st.integers(0, 6))
    def load_a_revision(self, which: CheckpointId, revision: int) -> None:
        stream = self.streams.get(which, [])
        wanted = stream[revision] if revision < len(stream) else None
        if wanted is not None:
            assert repr(self.store.load(which, revision=revision)) == repr(wanted)
        else:
            ended = which in self.deleted and revision == len(stream) - 1  # the revision that the deletion is
            self.must_fail(Deleted if ended else NotFound, lambda: self.store.load(which, revision=revision))

    @invariant()
    def the_latest_is_what_it_must_be(self) -> None:
        for which in IDS:
            if which in self.deleted or which not in self.streams:
                self.must_fail(Deleted if which in self.deleted else NotFound, lambda which=which: self.store.load(which))  # type: ignore[misc]
            else:
                assert repr(self.store.load(which)) == repr(self.last(which))

    @invariant()
    def the_log_holds_exactly_what_was_acknowledged(self) -> None:
        events = list(self.store.subscribe(Position(), idle_timeout=0))
        assert [each.checkpoint.event_id for each in events] == self.order
        for which in self.streams:
            history = [each for each in self.store.history(which) if isinstance(each, Revision)]
            assert len(history) == len(self.streams[which])
            assert chain_is_intact(history)

    def must_fail(self, wanted: type[CheckpointError], call: Callable[[], object]) -> None:
        with pytest.raises(CheckpointError) as caught:
            call()
        assert type(caught.value) is wanted

    def teardown(self) -> None:
        for each in getattr(self, "stores", ()):
            each.close()
        shutil.rmtree(getattr(self, "directory", ""), ignore_errors=True)


TestStoreAndModel = StoreAndModel.TestCase
TestStoreAndModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
