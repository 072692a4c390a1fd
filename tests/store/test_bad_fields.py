"""Malformed fields: the error names the field, and nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointError, CheckpointId, CheckpointStore, InvalidRequest, RunId, open_store
from tests.store.samples import initial, nothing_written, stream

LONG = "x" * 100_000
WRONG: list[tuple[str, Any]] = [
    ("kind", ""),
    ("kind", " "),
    ("kind", "acme order"),
    ("kind", ".acme"),
    ("kind", "acme."),
    ("kind", "acme..order"),
    ("kind", "acme/order"),
    ("kind", "acmé"),
    ("kind", "acme\n"),
    ("kind", "\ud800"),
    ("kind", "x" * 201),
    ("kind", LONG),
    ("kind", None),
    ("kind", 5),
    ("kind", b"acme"),
    ("kind", ["acme"]),
    ("tenant", ""),
    ("tenant", "a b"),
    ("tenant", "x" * 101),
    ("tenant", LONG),
    ("tenant", None),
    ("tenant", {"a": 1}),
    ("phase", ""),
    ("phase", "x" * 201),
    ("phase", "two\nlines"),
    ("phase", "\ud800"),
    ("phase", "\x1b[31m"),
    ("phase", 5),
    ("labels", {"": "x"}),
    ("labels", {"a b": "x"}),
    ("labels", {"k" * 64: "x"}),
    ("labels", {"k": "x" * 257}),
    ("labels", {"k": "a\x00b"}),
    ("labels", {"k": "\ud800"}),
    ("labels", {"k": 5}),
    ("labels", {"k": None}),
    ("labels", {5: "x"}),
    ("labels", {f"k{number}": "x" for number in range(33)}),
    ("labels", ["a"]),
    ("labels", "env=prod"),
    ("usage", {"turns": -1}),
    ("usage", {"turns": 2**63}),
    ("usage", {"turns": 1.0}),
    ("usage", {"turns": True}),
    ("usage", {"turns": "1"}),
    ("usage", {"turns": None}),
    ("usage", {"": 1}),
    ("usage", {"a b": 1}),
    ("usage", {f"k{number}": 1 for number in range(65)}),
    ("usage", [1]),
    ("schema_version", 0),
    ("schema_version", -1),
    ("schema_version", 2**31),
    ("schema_version", True),
    ("schema_version", "1"),
    ("schema_version", 1.0),
    ("revision", -1),
    ("revision", 2**63),
    ("revision", True),
    ("revision", "0"),
    ("revision", 0.0),
    ("revision", None),
    ("id", "no id"),
    ("id", LONG),
    ("run_id", "no id"),
    ("run_id", ""),
    ("event_id", "no id"),
    ("event_id", 5),
    ("updated_at", "yesterday"),
    ("updated_at", 5),
    ("updated_at", None),
]


def identified(value: Any) -> str:
    return repr(value)[:30].encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize(("field", "value"), WRONG, ids=identified)
def test_a_malformed_field_is_refused_where_a_checkpoint_is_made(field: str, value: Any) -> None:
    good = initial()
    fields = {name: getattr(good, name) for name in Checkpoint.model_fields}
    with pytest.raises(InvalidRequest) as caught:
        Checkpoint(**{**fields, field: value})
    assert caught.value.field.split(".")[0] == field
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(("field", "value"), WRONG, ids=identified)
def test_a_malformed_field_is_refused_where_a_checkpoint_is_committed(store: CheckpointStore, field: str, value: Any) -> None:
    # Once: unhashable kinds and tenants are a bare TypeError, a wrong updated_at a bare AttributeError.
    forged = initial().model_copy(update={field: value})
    with nothing_written(store), pytest.raises(InvalidRequest) as caught:
        store.compare_and_swap(forged, None)
    assert caught.value.field.split(".")[0] in {field, "time"}
    (answer,) = store.compare_and_swap_many([(forged, None)])
    assert isinstance(answer, InvalidRequest)


@pytest.mark.parametrize("field", ["labels", "usage"])
def test_none_for_a_mapping_is_refused(store: CheckpointStore, field: str) -> None:
    # Once: check_fields() skips what is falsy, and fastavro raises a bare error
    with nothing_written(store), pytest.raises(InvalidRequest, match=field):
        store.compare_and_swap(initial().model_copy(update={field: None}), None)


@pytest.mark.parametrize(
    ("field", "value"), [("labels", 5), ("labels", ["ab"]), ("usage", 5), ("usage", [1]), ("updated_at", "now")], ids=str
)
def test_a_malformed_argument_of_next_is_refused(store: CheckpointStore, field: str, value: Any) -> None:
    # Once: dict(5) is a bare TypeError, and dict(["ab"]) quietly becomes {"a": "b"}
    first = stream(store, 1)[0]
    with nothing_written(store), pytest.raises(InvalidRequest):
        store.compare_and_swap(first.next({}, **{field: value}), 0)


@pytest.mark.parametrize("expected", [-1, 2**63, True, False, "0", 0.0, b"0"], ids=repr)
def test_a_malformed_expectation_is_refused(store: CheckpointStore, expected: Any) -> None:
    first = stream(store, 1)[0]
    with nothing_written(store), pytest.raises(InvalidRequest) as caught:
        store.compare_and_swap(first.next({}), expected)
    assert caught.value.field == "expected"


@pytest.mark.parametrize("wrong", [None, "x", {}, 5], ids=repr)
def test_what_is_no_checkpoint_is_refused(store: CheckpointStore, wrong: Any) -> None:
    with nothing_written(store), pytest.raises(InvalidRequest, match="checkpoint"):
        store.compare_and_swap(wrong, None)


def test_an_unknown_field_is_refused() -> None:
    good = initial()
    with pytest.raises(InvalidRequest, match="colour"):
        Checkpoint(**{name: getattr(good, name) for name in Checkpoint.model_fields}, colour="red")  # type: ignore[call-arg]


def test_a_checkpoint_is_frozen_and_ends_at_the_last_revision() -> None:
    last = initial().model_copy(update={"revision": 2**63 - 1})
    with pytest.raises(InvalidRequest, match="revision"):
        last.next({})
    with pytest.raises(Exception, match="frozen"):
        last.revision = 5


def test_the_longest_of_everything_is_accepted(store: CheckpointStore) -> None:
    longest = Checkpoint.initial(
        CheckpointId("ffffffff-ffff-ffff-ffff-ffffffffffff"),
        RunId.new(),
        "k" * 200,
        2**31 - 1,
        None,
        tenant="t" * 100,
        labels={f"{number:063}": "ü" * 256 for number in range(32)},
        usage={f"{number:063}": 2**63 - 1 for number in range(64)},
        phase="ß" * 200,
    ).model_copy(update={"id": CheckpointId.new()})
    store.compare_and_swap(longest, None)
    assert store.load(longest.id) == longest
    assert store.list(kind="k" * 200, run_id=longest.run_id).items[0].labels == longest.labels


@pytest.mark.parametrize("actor", ["", "x" * 201, "a\nb", "\ud800", 5, b"x"], ids=ascii)
def test_a_malformed_actor_is_refused(address: str, actor: Any) -> None:
    with pytest.raises(InvalidRequest, match="actor"):
        open_store(address, actor=actor)


def test_every_refusal_is_a_checkpoint_error_with_a_hint() -> None:
    with pytest.raises(CheckpointError) as caught:
        CheckpointId("x")
    assert caught.value.hint
    assert caught.value.retry.value == "never"
