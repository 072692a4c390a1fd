"""The steps that lead from one version of a payload to another, and the way over several of them. Pure: no I/O, no clock.

    migrations = Migrations()
    migrations.register(from_=("acme.order", 1), to=("acme.order", 2), up=with_currency, down=without_currency)

`migrating.py` plans and runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from eventlog.checkpoint import LAST_SCHEMA_VERSION, MAX_KIND, Checkpoint, check_name
from eventlog.errors import InvalidRequest
from eventlog.recovery.agent_phases import AGENT_KIND, AGENT_VERSION, AgentRecord
from eventlog.recovery.workflow_record import WORKFLOW_KIND, WORKFLOW_VERSION, WorkflowRecord

Payload = dict[str, Any]
OURS = "eventlog."  # kinds that only this library defines


class Schema(NamedTuple):
    """What a payload is said to be."""

    kind: str
    version: int

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


class Envelope(NamedTuple):
    """What a step may know besides the payload, if it was registered `with_envelope`."""

    checkpoint_id: str
    updated_at_ms: int  # when the writer of the payload says that it was written
    usage: Mapping[str, int]  # of the revision's header
    moved_on: bool  # on the way down: whether the run has been written since it was migrated


class CannotCarry(Exception):
    """Raise it in a step's function, with the reason, for a payload that has no counterpart on the other side.

    The checkpoint is then refused by name and stays as it is; the others go on.
    """


RECORDS: Mapping[Schema, Callable[[Checkpoint], object]] = {
    Schema(AGENT_KIND, AGENT_VERSION): AgentRecord.of,
    Schema(WORKFLOW_KIND, WORKFLOW_VERSION): WorkflowRecord.of,
}


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One step, as it was registered."""

    from_: Schema
    to: Schema
    up: Callable[..., Payload]
    down: Callable[..., Payload] | None
    usage: Callable[[Payload], Mapping[str, int]] | None
    with_envelope: bool

    def __str__(self) -> str:
        return f"{self.from_} -> {self.to}"


Way = tuple[MigrationStep, ...]  # from the first to the last, each where the one before it has led


class Migrations:
    """Steps between (kind, version) pairs, which may lead on but never in a circle."""

    def __init__(self) -> None:
        self._steps: dict[Schema, dict[Schema, MigrationStep]] = {}
        self._validators: dict[Schema, Callable[[Payload], object]] = {}

    def register(
        self,
        *,
        from_: tuple[str, int],
        to: tuple[str, int],
        up: Callable[..., Payload],
        down: Callable[..., Payload] | None = None,
        usage: Callable[[Payload], Mapping[str, int]] | None = None,
        with_envelope: bool = False,
    ) -> Self:
        """Adds a step.

        Arguments:
            from_, to: kind and version before and after. Of the kinds `eventlog.*` only `eventlog.agent` 1 and `eventlog.workflow` 1.
            up: makes the payload of `to` out of the one of `from_`. Pure; it gets a copy of its own, and may change it. Raises
                `CannotCarry` for one that has no counterpart.
            down: the way back, for an undo; None: there is none. It gets the present payload, whatever has been done since.
            usage: what the payload of `from_` says was used, in total. The migrated revision has at least that: where payloads used to hold
                what now stands in the header, nothing is forgotten.
            with_envelope: `up` and `down` get an `Envelope` as their second argument.

        Raises `InvalidRequest` for a step that is registered already, leads nowhere, or closes a circle, which it names.
        """
        step = MigrationStep(schema_of("from_", from_), schema_of("to", to), up, down, usage, with_envelope)
        for name, function in (("up", up), ("down", down), ("usage", usage)):
            if not callable(function) and (name == "up" or function is not None):
                raise InvalidRequest(name, f"of {step} must be a function, not {type(function).__name__}")
        if step.to == step.from_:
            raise InvalidRequest("to", f"is {step.to}, where the step starts from")
        if step.to in self._steps.get(step.from_, {}):
            raise InvalidRequest("migrations", f"the step {step} is registered already")
        circle = self._shortest(step.to, step.from_)
        if circle:
            named = " -> ".join(map(str, (step.from_, *_stops(circle[0]))))
            raise InvalidRequest("migrations", f"the step {step} closes a circle: {named}", hint="The way back is a step's `down`.")
        self._steps.setdefault(step.from_, {})[step.to] = step
        return self

    def validator(self, schema: tuple[str, int], check: Callable[[Payload], object]) -> Self:
        """Says what a version demands: `check` gets a payload that a step has made, and raises what is wrong with it.

        `eventlog.agent` 1 and `eventlog.workflow` 1 are checked without it. Raises `InvalidRequest` for a second one.
        """
        of = schema_of("schema", schema)
        if of in RECORDS or of in self._validators:
            raise InvalidRequest("schema", f"{of} has a validator already")
        if not callable(check):
            raise InvalidRequest("check", f"must be a function, not {type(check).__name__}")
        self._validators[of] = check
        return self

    @property
    def steps(self) -> Way:
        """Every step."""
        return tuple(step for steps in self._steps.values() for step in steps.values())

    def knows(self, schema: Schema) -> bool:
        """Whether a step starts from it or leads to it."""
        return any(schema in (step.from_, step.to) for step in self.steps)

    def check(self, checkpoint: Checkpoint) -> None:
        """Raises what is wrong with a checkpoint's payload as what it is said to be; nothing, where nobody has said what that demands."""
        schema = Schema(checkpoint.kind, checkpoint.schema_version)
        if schema in RECORDS:
            RECORDS[schema](checkpoint)
        elif schema in self._validators:
            self._validators[schema](checkpoint.payload)

    def way(self, start: Schema, end: Schema | None = None) -> Way | None:
        """The shortest way to `end` (None: to where the steps end); None: there is none.

        Raises `InvalidRequest` where that is not one: steps end in several places, or two ways are equally short.
        """
        if end is None:
            ends = [each for each in self._reachable(start) if each not in self._steps]
            if len(ends) > 1:
                named = ", ".join(sorted(map(str, ends)))
                raise InvalidRequest("to", f"{start} may become {named}", hint="Say which one is meant.")
            if not ends:
                return None
            end = ends[0]
        ways = self._shortest(start, end)
        if len(ways) > 1:
            named = "; ".join(sorted(" -> ".join(map(str, _stops(way))) for way in ways[:2]))
            raise InvalidRequest("migrations", f"{start} leads to {end} in more than one way: {named}", hint="Leave one of the steps out.")
        return ways[0] if ways else None

    def _reachable(self, start: Schema) -> list[Schema]:
        found: dict[Schema, None] = {}
        waiting = list(self._steps.get(start, {}))
        while waiting:
            each = waiting.pop()
            if each not in found:
                found[each] = None
                waiting.extend(self._steps.get(each, {}))
        return list(found)

    def _shortest(self, start: Schema, end: Schema) -> list[Way]:
        """Every shortest way, breadth first; there are no circles."""
        if start == end:
            return [()]
        ways: list[Way] = [(step,) for step in self._steps.get(start, {}).values()]
        while ways:
            arrived = [way for way in ways if way[-1].to == end]
            if arrived:
                return arrived
            ways = [(*way, step) for way in ways for step in self._steps.get(way[-1].to, {}).values()]
        return []


def _stops(way: Iterable[MigrationStep]) -> list[Schema]:
    steps = list(way)
    return [*(step.from_ for step in steps), *(step.to for step in steps[-1:])]


def schema_of(field: str, given: object) -> Schema:
    """A pair (kind, version) that steps may lead from or to. Raises `InvalidRequest`."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidRequest(field, f"{given!r:.60} is not a pair (kind, version)")
    kind, version = given
    check_name(field, kind, MAX_KIND)
    if type(version) is not int or not 1 <= version <= LAST_SCHEMA_VERSION:
        raise InvalidRequest(field, f"{version!r:.40} is not a version (1 to 2^31-1)")
    schema = Schema(kind, version)
    if kind.startswith(OURS) and schema not in RECORDS:
        known = " and ".join(map(str, RECORDS))
        raise InvalidRequest(field, f"is {schema}, where of the kinds {OURS}* this version can migrate {known} only")
    return schema
