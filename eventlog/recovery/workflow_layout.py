"""What a workflow consists of, in order. Pure; the layout is part of a run's identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from eventlog.checkpoint import check_text
from eventlog.errors import InvalidPayload, InvalidRequest, SchemaMismatch
from eventlog.recovery.fields import a_list, a_text, an_object, others

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One thing after the other; a plain text in a layout means this."""

    type: ClassVar[str] = "step"
    name: str
    rest: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parallel:
    """Branches that may run at the same time; it ends when each of them has."""

    type: ClassVar[str] = "parallel"
    name: str
    branches: Sequence[str]
    rest: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Race:
    """Branches of which the first that completes wins; the others are cancelled."""

    type: ClassVar[str] = "race"
    name: str
    branches: Sequence[str]
    rest: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WaitForSignal:
    """Nothing is done until somebody sends a signal, or a time has come."""

    type: ClassVar[str] = "signal"
    name: str
    rest: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WaitForTimer:
    """Nothing is done until a time has come."""

    type: ClassVar[str] = "timer"
    name: str
    rest: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


Node = Step | Parallel | Race | WaitForSignal | WaitForTimer
Layout = tuple[Node, ...]
_TYPES: dict[str, Any] = {each.type: each for each in (Step, Parallel, Race, WaitForSignal, WaitForTimer)}


def layout_of(given: object) -> Layout:
    """A layout as a caller writes it. Raises `InvalidRequest` for one that is empty, ambiguous or no layout."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InvalidRequest("layout", "must be a list of steps that is not empty")
    nodes = tuple(Step(each) if isinstance(each, str) else each for each in given)
    for number, node in enumerate(nodes):
        if not isinstance(node, Node):
            raise InvalidRequest(f"layout[{number}]", f"must be a text, Parallel, Race, WaitForSignal or WaitForTimer, not {node!r:.60}")
        check_text(f"layout[{number}]", node.name, LONGEST_NAME)
        if isinstance(node, Parallel | Race):
            _check_branches(f"layout[{number}].branches", node.branches)
    twice = _twice([node.name for node in nodes])
    if twice is not None:
        raise InvalidRequest("layout", f"names {twice} twice")
    return tuple(replace(each, branches=tuple(each.branches)) if isinstance(each, Parallel | Race) else each for each in nodes)


def written(layout: Layout) -> list[dict[str, Any]]:
    """As it stands in the payload."""
    return [{**node.rest, **_known(node)} for node in layout]


def compared(layout: Layout) -> list[dict[str, Any]]:
    """What must be the same for a run to be gone on with."""
    return [_known(node) for node in layout]


def read(fields: Mapping[str, Any], path: str) -> Layout:
    """The layout of a payload. Raises `SchemaMismatch` for a type that this version does not know, `InvalidPayload`."""
    nodes: list[Node] = []
    for number, value in enumerate(a_list(fields, "layout", path)):
        where = f"{path}.layout[{number}]"
        entry = an_object(value, where)
        name, kind = a_text(entry, "name", where), a_text(entry, "type", where)
        if kind not in _TYPES:
            raise SchemaMismatch(f"unknown type {kind!r:.60} of a step; this version knows {', '.join(_TYPES)}")
        if kind in (Parallel.type, Race.type):
            branches = a_list(entry, "branches", where)
            nodes.append(_TYPES[kind](name, tuple(branches), others(entry, frozenset({"name", "type", "branches"}))))
        else:
            nodes.append(_TYPES[kind](name, others(entry, frozenset({"name", "type"}))))
    try:
        return layout_of(nodes)
    except InvalidRequest as error:
        raise InvalidPayload(f"{path}.{error.field}", error.problem) from error


def _known(node: Node) -> dict[str, Any]:
    known: dict[str, Any] = {"name": node.name, "type": node.type}
    if isinstance(node, Parallel | Race):
        known["branches"] = list(node.branches)
    return known


def _check_branches(field_name: str, branches: object) -> None:
    if isinstance(branches, str) or not isinstance(branches, Sequence) or not branches:
        raise InvalidRequest(field_name, "must be a list of names that is not empty")
    for each in branches:
        check_text(field_name, each, LONGEST_NAME)
    twice = _twice(branches)
    if twice is not None:
        raise InvalidRequest(field_name, f"names {twice} twice")


def _twice(names: Sequence[str]) -> str | None:
    return next((name for number, name in enumerate(names) if name in names[:number]), None)
