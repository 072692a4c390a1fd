"""Steps are registered between kinds and versions, and lead to one place by one way; anything else is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import InvalidRequest
from eventlog.recovery import Migrations, Schema, runifold_migrations
from eventlog.recovery.migrations import Payload


def same(payload: Payload) -> Payload:
    return payload


def steps(*pairs: tuple[int, int]) -> Migrations:
    """Steps between versions of one kind."""
    made = Migrations()
    for start, end in pairs:
        made.register(from_=("acme.order", start), to=("acme.order", end), up=same)
    return made


def stops(migrations: Migrations, start: int, end: int | None = None) -> list[int] | None:
    way = migrations.way(Schema("acme.order", start), None if end is None else Schema("acme.order", end))
    return None if way is None else [step.to.version for step in way]


def test_the_way_leads_over_several_steps_to_where_they_end() -> None:
    chain = steps((1, 2), (2, 3), (3, 4))
    assert stops(chain, 1) == [2, 3, 4]
    assert stops(chain, 3) == [4]
    assert stops(chain, 1, 3) == [2, 3]
    assert stops(chain, 4) is None
    assert stops(chain, 3, 1) is None
    assert stops(chain, 9) is None


def test_the_shortest_way_is_taken() -> None:
    assert stops(steps((1, 2), (2, 3), (3, 4), (1, 3)), 1) == [3, 4]


def test_two_ways_of_the_same_length_are_refused_naming_both() -> None:
    with pytest.raises(InvalidRequest) as caught:
        stops(steps((1, 2), (2, 4), (1, 3), (3, 4)), 1)
    assert "acme.order 1 -> acme.order 2 -> acme.order 4; acme.order 1 -> acme.order 3 -> acme.order 4" in str(caught.value)


def test_steps_that_end_in_several_places_are_refused_unless_one_is_named() -> None:
    fork = steps((1, 2), (2, 3), (2, 4))
    with pytest.raises(InvalidRequest, match=r"acme.order 1 may become acme.order 3, acme.order 4"):
        stops(fork, 1)
    assert stops(fork, 1, 4) == [2, 4]


def test_a_circle_is_refused_when_its_last_step_is_registered() -> None:
    chain = steps((1, 2), (2, 3))
    with pytest.raises(InvalidRequest) as caught:
        chain.register(from_=("acme.order", 3), to=("acme.order", 1), up=same)
    assert "acme.order 3 -> acme.order 1 -> acme.order 2 -> acme.order 3" in str(caught.value)
    assert stops(chain, 1) == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"to": ("acme.order", 1)}, "to"),
        ({"from_": ("acme.order", 0)}, "from_"),
        ({"from_": ("acme.order", True)}, "from_"),
        ({"from_": ("no kind at all", 1)}, "from_"),
        ({"from_": "acme.order"}, "from_"),
        ({"to": ("acme.order",)}, "to"),
        ({"to": ("eventlog.agent", 2)}, "to"),
        ({"from_": ("eventlog.effect", 1)}, "from_"),
        ({"up": None}, "up"),
        ({"down": "back"}, "down"),
        ({"usage": {}}, "usage"),
    ],
)
def test_a_step_that_cannot_be_one_is_refused(arguments: dict[str, Any], field: str) -> None:
    given: dict[str, Any] = {"from_": ("acme.order", 1), "to": ("acme.order", 2), "up": same, **arguments}
    migrations = Migrations()
    with pytest.raises(InvalidRequest) as caught:
        migrations.register(**given)
    assert caught.value.field == field
    assert migrations.steps == ()


def test_a_step_is_registered_once() -> None:
    with pytest.raises(InvalidRequest, match=r"acme\.order 1 -> acme\.order 2 is registered already"):
        steps((1, 2), (1, 2))


def test_a_version_has_one_validator() -> None:
    made = Migrations().validator(("acme.order", 2), same)
    for schema in (("acme.order", 2), ("eventlog.agent", 1)):
        with pytest.raises(InvalidRequest, match="has a validator already"):
            made.validator(schema, same)
    with pytest.raises(InvalidRequest, match="check"):
        made.validator(("acme.order", 3), "no function")  # type: ignore[arg-type]


def test_what_ships_leads_from_runifold_to_runs_of_ours() -> None:
    ends = {}
    for start in (("runifold.agent", 1), ("runifold.workflow", 3), ("runifold.workflow", 4)):
        way = runifold_migrations().way(Schema(*start))
        assert way is not None
        ends[start] = [str(step.to) for step in way]
    assert ends == {
        ("runifold.agent", 1): ["eventlog.agent 1"],
        ("runifold.workflow", 3): ["runifold.workflow 4", "eventlog.workflow 1"],
        ("runifold.workflow", 4): ["eventlog.workflow 1"],
    }
    with pytest.raises(InvalidRequest, match="definition_version"):
        runifold_migrations(definition_version=0)
