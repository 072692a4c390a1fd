"""A decision in a payload is read as it was written, or refused with its path: nothing is guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, InvalidPayload, SchemaMismatch
from eventlog.recovery import Decision, Decisions
from eventlog.recovery.decided_runs import decided, run_record
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import Outside, as_checkpoint
from tests.recovery.schemas import validator
from tests.store.samples import revisions

ANN: dict[str, Any] = {"actor": "ann", "reason": "why not"}
PHASES = {"turn": "eventlog.agent", "step": "eventlog.workflow", "race": "eventlog.workflow"}


def decided_payload(store: CheckpointStore, folder: Path, phase: str, decision: Decision) -> tuple[dict[str, Any], dict[str, Any]]:
    """A payload that has a decision, and that decision, where it stands in it."""
    left = LeftRun(store, Outside(folder / "outside"), phase)
    Decisions(store).resolve(left.id, decision, **ANN)
    payload: dict[str, Any] = store.load(left.id).payload
    at = payload["phase"]
    if phase == "race" and decision is Decision.RETRY:
        at = at["branches"]["post"]
    return payload, at


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("phase", PHASES)
def test_it_survives_a_round_trip_with_fields_that_are_not_known(
    store: CheckpointStore, tmp_path: Path, phase: str, decision: Decision
) -> None:
    payload, at = decided_payload(store, tmp_path, phase, decision)
    at["decision"]["ticket"] = 4711
    record = run_record(as_checkpoint(payload, kind=PHASES[phase]))
    found = decided(record)
    assert found is not None
    assert (found.choice, found.rest) == (decision, {"ticket": 4711})
    assert record.payload() == payload


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("choice", "undo", SchemaMismatch),
        ("choice", "another", InvalidPayload),
        ("actor", "", InvalidPayload),
        ("actor", "a" * 201, InvalidPayload),
        ("reason", "two\nlines", InvalidPayload),
        ("reason", 7, InvalidPayload),
        ("revision", -1, InvalidPayload),
        ("what", None, InvalidPayload),
    ],
)
def test_one_that_does_not_fit_is_refused(
    store: CheckpointStore, tmp_path: Path, phase: str, decision: Decision, field: str, value: Any, error: type[Exception]
) -> None:
    payload, at = decided_payload(store, tmp_path, phase, decision)
    at["decision"][field] = next(each for each in Decision if each is not decision) if value == "another" else value
    with pytest.raises(error) as refused:
        run_record(as_checkpoint(payload, kind=PHASES[phase]))
    if isinstance(refused.value, InvalidPayload):
        assert refused.value.path.endswith(f".decision.{field}")
    if value != "two\nlines":  # which JSON Schema cannot say shortly
        assert list(validator(f"{PHASES[phase]}.v1").iter_errors(payload))


def test_a_failed_phase_says_who_has_decided(store: CheckpointStore, tmp_path: Path) -> None:
    payload, at = decided_payload(store, tmp_path, "turn", Decision.MARK_FAILED)
    del at["decision"]
    with pytest.raises(InvalidPayload, match=r"\$.phase.decision is missing|phase.decision: is missing"):
        run_record(as_checkpoint(payload))


def test_what_was_written_before_is_as_it_was(store: CheckpointStore, tmp_path: Path) -> None:
    left = LeftRun(store, Outside(tmp_path / "outside"), "step")
    before = [(each.hash, each.checkpoint) for each in revisions(store, left.id)]
    for decision in (Decision.RETRY, Decision.MARK_FAILED):
        Decisions(store).resolve(left.id, decision, **ANN)
    assert [(each.hash, each.checkpoint) for each in revisions(store, left.id)][:-2] == before
