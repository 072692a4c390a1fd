"""Errors: one tree, each with a kind, a retry rule and a hint; they survive the way to another process."""

from __future__ import annotations

import copy
import pickle

import pytest

from eventlog import errors, recovery
from eventlog.checkpoint import from_millis
from eventlog.errors import CheckpointError

SAMPLES: list[CheckpointError] = [
    errors.NotFound("id", revision=3),
    errors.Deleted("id", last_revision=3),
    errors.Conflict("id", expected=1, actual=2, proposed=2),
    errors.EventIdReused("id", event_id="e", differs="payload"),
    errors.Quarantined("id", last_good_revision=3, reason="r"),
    errors.HistoryRemoved("what", reason="r"),
    errors.AccessDenied("subject", operation="load", missing=["reader"]),
    errors.AuditUnavailable("place", "problem"),
    errors.HeldByLegalHold("id", holds=["a", "b"]),
    errors.ErasureIncomplete([("place", "problem")]),
    errors.AuthenticationFailed("address", "problem"),
    errors.MissingRight("address", principal="User:a", operation="Read", resource="Topic", name="orders"),
    errors.InvalidRequest("field", "problem", hint="hint"),
    errors.InvalidPayload("$", "problem"),
    errors.TooLarge("id", size=2, limit=1),
    errors.KeyDestroyed("id", revision=3, key_id="k"),
    errors.SchemaMismatch("what"),
    errors.EncryptionMismatch("id", revision=3, problem="problem"),
    errors.KeysUnavailable("source", "problem"),
    errors.OutcomeUnknown("id", event_id="e", reason="r"),
    errors.Overloaded(waiting=2, limit=1),
    errors.StorageError("place", "problem"),
    errors.Corrupted("place", "problem"),
    errors.Busy("place", "problem"),
    errors.Unavailable("address", "problem"),
    errors.ConfigurationError("message", differences=["one", "two"]),
    errors.NotAStore("message"),
    errors.StoreClosed("message"),
    recovery.IdentityMismatch("id", [recovery.Difference("agent", "a", "b")]),
    recovery.AmbiguousResume("id", what="turn 1", since=from_millis(0), attempt=1, effects=[]),
    recovery.StillInFlight("id", what="turn 1", reason="r"),
    recovery.AmbiguousEffect("id", capability="c", idempotency_key="k", effect_class="pure", reason="r"),
    recovery.EffectFailed("id", capability="c", idempotency_key="k", message="m"),
    recovery.EffectReused("id", capability="c", idempotency_key="k", differs="input", state="started"),
    recovery.NotOwner("id", owner="worker-1", token=2, given_owner="worker-2", given_token=1),
    recovery.AlreadyOwned("id", owner="worker-1", token=2, until=from_millis(0)),
    recovery.BranchCancelled("branch a of quote was beaten by b", step="quote", branch="a"),
    recovery.NotWaiting("id", signal="approval", found="it is ready, and ship is next"),
    recovery.DecisionRefused("id", decision="retry", reason="r", effects=[recovery.KnownEffect("c", "k", "pure", "id", "started", 1)]),
    recovery.RunFailed("id", actor="ann", reason="r", revision=5, what="turn 1"),
]
TREE = (errors.__name__, recovery.errors.__name__)


def classes(root: type[CheckpointError]) -> set[type[CheckpointError]]:
    return {root} | {each for child in root.__subclasses__() if child.__module__ in TREE for each in classes(child)}


def test_there_is_a_sample_of_each() -> None:
    assert {type(each) for each in SAMPLES} == classes(CheckpointError) - {CheckpointError}


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_each_has_a_kind_a_retry_rule_a_hint_and_a_message(error: CheckpointError) -> None:
    assert error.kind in errors.ErrorKind
    assert error.retry in errors.Retry
    assert error.hint.endswith((".", "hint"))
    assert str(error)
    assert error.hint != CheckpointError.hint


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_each_survives_pickling_and_copying(error: CheckpointError) -> None:
    # Once: keyword-only arguments: pickle.loads raises TypeError, which breaks a whole ProcessPoolExecutor.
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), vars(again), again.hint) == (str(error), vars(error), error.hint)
