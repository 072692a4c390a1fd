"""What an erasure takes, what it refuses, and what its certificate says."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from eventlog import (
    Busy,
    Checkpoint,
    CheckpointError,
    Conflict,
    Deleted,
    InvalidRequest,
    NotFound,
    Principal,
    RunId,
    create_store,
    open_store,
)
from eventlog.erasure import certificate as certificates
from eventlog.erasure.certificate import Certificate
from eventlog.erasure.erasing import erase, plan
from eventlog.erasure.register import register_of
from eventlog.erasure.selection import Selection
from eventlog.erasure.steps import Step
from eventlog.errors import Corrupted, ErasureIncomplete, HeldByLegalHold
from eventlog.merkle import leaf_hash, root_of
from eventlog.no_payload import PAYLOAD_ERASED
from eventlog.recovery import EffectClass, EffectStore
from eventlog.retention import Holds, HoldTarget
from eventlog.revision import Revision
from eventlog.verification import verify
from tests.erasure.planting import SUBJECT, archived, plant, shown
from tests.recovery.samples import begun
from tests.store.samples import initial

REASON = "request 4711"


def test_a_label_that_was_taken_off_still_names_its_subject(directory: Path) -> None:
    with open_store(directory) as store:
        first = initial({"a": 1}, labels={"subject": "s-9"})
        store.compare_and_swap(first, None)
        store.compare_and_swap(first.next({"a": 2}, labels={}), 0)
        other = initial({"a": 3}, labels={"subject": "s-10"})
        store.compare_and_swap(other, None)
        made = erase(store, Selection.of_label("subject", "s-9"), actor="dpo", reason=REASON)
        assert [end.checkpoint_id for end in made.checkpoints] == [first.id]
        assert store.load(other.id).payload == {"a": 3}


def test_a_run_goes_with_all_its_checkpoints_and_a_tenant_with_all_its_runs(directory: Path) -> None:
    with open_store(directory) as store:
        run = RunId.new()
        of_run = [initial({"n": n}, kind=f"acme.k{n}").model_copy(update={"run_id": run}) for n in range(3)]
        elsewhere = initial({"n": 9}, tenant="north")
        mine = initial({"n": 10})
        for each in [*of_run, elsewhere, mine]:
            store.compare_and_swap(each, None)
        made = erase(store, Selection.of_run(run), actor="dpo", reason=REASON)
        assert {end.checkpoint_id for end in made.checkpoints} == {each.id for each in of_run}
        made = erase(store, Selection.of_tenant("north"), actor="dpo", reason=REASON)
        assert [end.checkpoint_id for end in made.checkpoints] == [elsewhere.id]
        assert store.load(mine.id).payload == {"n": 10}


def test_another_tenants_checkpoints_cannot_be_erased(directory: Path) -> None:
    with open_store(directory) as store:
        theirs = initial({"n": 1}, tenant="north", labels=dict([SUBJECT]))
        store.compare_and_swap(theirs, None)
    with open_store(directory, tenant="south") as store:
        with pytest.raises(NotFound):
            erase(store, Selection.of_checkpoints(theirs.id), actor="dpo", reason=REASON)
        for selection in (Selection.of_label(*SUBJECT), Selection.of_tenant("north"), Selection.of_run(theirs.run_id)):
            with pytest.raises(InvalidRequest, match="no checkpoint matches"):
                erase(store, selection, actor="dpo", reason=REASON)
    with open_store(directory) as store:
        assert store.load(theirs.id).payload == {"n": 1}


def test_what_is_held_is_refused_before_anything_is_done(directory: Path) -> None:
    with open_store(directory, actor="dpo") as store:
        planted = plant(store)
        hold = Holds(store).place(HoldTarget.of_label(*SUBJECT), reason="a lawsuit").hold
        with pytest.raises(HeldByLegalHold) as caught:
            erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        assert caught.value.holds == (hold.id,)
        assert store.load(planted.victims[0].id).payload == planted.victims[0].payload
        assert register_of(directory, store.log.identity.store_id).entries() == []
        Holds(store).release(hold.id, reason="closed")
        assert len(erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON).checkpoints) == len(planted.victims)


def test_a_hold_that_is_placed_while_an_erasure_begins_is_not_overtaken(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(directory, actor="dpo") as store:
        planted = plant(store)

        def placed(step: Step) -> None:
            if step is Step.CHECKED:
                monkeypatch.undo()
                Holds(store).place(HoldTarget.of_label(*SUBJECT), reason="a lawsuit")

        monkeypatch.setattr("eventlog.erasure.erasing.passed", placed)
        with pytest.raises(HeldByLegalHold):
            erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        assert store.load(planted.victims[0].id).payload == planted.victims[0].payload


def test_an_erasure_by_one_principal_takes_it_from_the_memory_of_all(directory: Path) -> None:
    with open_store(directory, actor="dpo") as store:
        victim = plant(store).victims[0]
        reader, officer = (store.for_principal(Principal(name, None, [role])) for name, role in (("ann", "reader"), ("dpo", "operator")))
        assert reader.load(victim.id).payload == victim.payload
        assert store._reader._hot.get(victim.id) is not None
        erase(officer, Selection.of_checkpoints(victim.id), actor="dpo", reason=REASON)
        assert reader._reader._hot.get(victim.id) is None
        assert store._reader._hot.get(victim.id) is None


def test_a_place_that_cannot_be_visited_is_named_and_nothing_is_claimed(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        archive = archived(store, tmp_path / "archive")
        archive.directory.rename(tmp_path / "elsewhere")
        with pytest.raises(ErasureIncomplete, match="is not there") as failed:
            erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        assert [place for place, _ in failed.value.places] == [f"archive {archive.directory}"]
        register = register_of(directory, store.log.identity.store_id)
        assert [entry.kind for entry in register.entries()] == ["erased"]
        assert len(register.open_erasures()) == 1
        (tmp_path / "elsewhere").rename(archive.directory)
        made = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        assert made.revisions == 11
        assert register.open_erasures() == []
        with pytest.raises(Deleted):
            store.load(planted.victims[0].id)


def test_a_damaged_segment_is_not_passed_over(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        plant(store)
        archive = archived(store, tmp_path / "archive")
        victim = archive.segments(0)[0].path
        good = victim.read_bytes()
        victim.write_bytes(good[:-9] + b"x" + good[-8:])
        with pytest.raises(ErasureIncomplete, match="altered or damaged"):
            erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        victim.write_bytes(good)
        erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        assert verify(store, archive=archive).is_clean


def test_a_writer_that_goes_on_loses_and_leaves_nothing(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store, open_store(directory) as another:
        current = initial({"n": 0, "said": "WRITERS-payload-" * 40})
        store.compare_and_swap(current, None)
        stopped = threading.Event()
        ended: list[CheckpointError] = []

        def write() -> None:
            mine = current
            while not stopped.is_set():
                try:
                    following = mine.next({"n": mine.revision, "said": "WRITERS-payload-" * 40})
                    another.compare_and_swap(following, mine.revision)
                    mine = following
                except (Deleted, Conflict) as error:
                    ended.append(error)
                    return

        writer = threading.Thread(target=write)
        writer.start()
        made = erase(store, Selection.of_checkpoints(current.id), actor="dpo", reason=REASON)
        stopped.set()
        writer.join()
        assert made.checkpoints[0].revision == made.revisions
        assert ended
        assert shown(directory, {"writer": b"WRITERS-payload-"}, tmp_path) == {}


def test_certificate_and_access_log_vouch_for_each_other(tmp_path: Path) -> None:
    create_store(tmp_path / "store", access="buffered")
    with open_store(tmp_path / "store") as store:
        planted = plant(store)
        made = erase(store, Selection.of_checkpoints(planted.victims[0].id), actor="dpo", reason=REASON)
        accesses = store.catalog.sql('SELECT action, target, hex(hash) FROM access ORDER BY "offset"').rows
    erasing = [(target, digest) for action, target, digest in accesses if action == "erase"]
    assert [target for target, _ in erasing] == [None, f"certificate {made.hash}"]
    assert made.access_head == erasing[0][1].lower()  # the newest record when it was made: that somebody erases


def test_the_certificate_says_what_was_erased_and_is_chained_to_the_one_before(directory: Path, encrypted: bool) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        one, two = planted.victims[:2]
        hashes = [each.hash for each in store.history(one.id) if isinstance(each, Revision)]
        first = erase(store, Selection.of_checkpoints(one.id), actor="dpo", reason=REASON)
        second = erase(store, Selection.of_checkpoints(two.id), actor="dpo", reason=REASON)
        assert first.access_head is None  # nothing is recorded here
        assert first.events_root == root_of([leaf_hash(each) for each in hashes]).hex()
        assert (first.number, second.number, first.previous, second.previous) == (0, 1, None, first.hash)
        assert (first.keys_destroyed_at is not None) == encrypted
        assert first.bytes_gone_at is not None
        assert any(each.startswith("backups") for each in first.not_reached)
        answer = store.load_revision(one.id)
        assert (str(answer.position), answer.hash.hex()) == (first.checkpoints[0].position, first.checkpoints[0].hash)
        register = register_of(directory, store.log.identity.store_id)
        seals = [entry.certificate for entry in register.entries() if entry.certificate]
        kept = certificates.read(register.certificates, seals)
        assert kept == [first, second]
        document = json.loads((register.certificates / f"{first.hash}.json").read_text())
        document["sealed"]["reason"] = "another"
        with pytest.raises(Corrupted):
            Certificate.parse(json.dumps(document).encode(), "here")


def test_a_plan_changes_nothing(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        archived(store, tmp_path / "archive")
        before = str(store.position())
        planned = plan(store, Selection.of_label(*SUBJECT))
        assert set(planned.checkpoints) == {each.id for each in planted.victims}
        assert planned.revisions == 11
        assert planned.payload_bytes > 120_000
        assert str(store.position()) == before


def test_erasing_again_is_harmless(directory: Path) -> None:
    with open_store(directory) as store:
        plant(store)
        first = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        again = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason=REASON)
        assert again.checkpoints == first.checkpoints
        assert again.events_root == first.events_root
        assert sum(place.erased for place in again.places if place.place != "memory") == 0


def test_two_erasures_at_once_take_turns(directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        with register_of(directory, store.log.identity.store_id).locked(), pytest.raises(Busy):
            erase(store, Selection.of_checkpoints(planted.victims[0].id), actor="dpo", reason=REASON)


@pytest.mark.parametrize(("actor", "reason"), [("", REASON), ("dpo", ""), ("dpo", "x" * 1001)])
def test_who_and_why_must_be_said(directory: Path, actor: str, reason: str) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        with pytest.raises(InvalidRequest):
            erase(store, Selection.of_checkpoints(planted.victims[0].id), actor=actor, reason=reason)
        assert store.load(planted.victims[0].id).payload


def test_an_erased_payload_is_none_that_can_be_committed(directory: Path) -> None:
    with open_store(directory) as store:
        made = initial({"n": 1})
        store.compare_and_swap(made, None)
        erase(store, Selection.of_checkpoints(made.id), actor="dpo", reason=REASON)
        (withheld, _) = store.history(made.id)
        assert isinstance(withheld, Revision)
        assert withheld.checkpoint.payload is PAYLOAD_ERASED
        assert isinstance(withheld.checkpoint, Checkpoint)
        with pytest.raises(CheckpointError):
            store.compare_and_swap(initial(withheld.checkpoint.payload), None)
        assert [type(each) for each in store.subscribe(store.position_at(withheld.recorded_at), idle_timeout=0)] == [Revision]


def test_a_runs_effects_go_with_it(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        effects = EffectStore(store)
        run = begun(store, effects=effects, state={"said": "EFFECTS-state-77"})
        with run.turn() as turn:
            turn.effect("charge", {"card": "EFFECTS-input-77"}, lambda _: "EFFECTS-output-77", effect_class=EffectClass.PURE)
            turn.commit(state={"said": "EFFECTS-reply-77"})
        wanted = {name: f"EFFECTS-{name}-77".encode() for name in ("state", "input", "output", "reply")}
        made = erase(store, Selection.of_run(store.load(run.checkpoint_id).run_id), actor="dpo", reason=REASON)
        assert len(made.checkpoints) == 2
        assert shown(directory, wanted, tmp_path) == {}
