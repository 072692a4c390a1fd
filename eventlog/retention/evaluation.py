"""What a policy makes of the checkpoints that there are: what goes, and what is kept although it is due. Pure: no I/O, no clock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from eventlog.holds.refusals import Wanted
from eventlog.recovery.agent_phases import AGENT_KIND
from eventlog.recovery.effect_phases import EFFECT_KIND, EffectState
from eventlog.recovery.effects import STORE_KIND
from eventlog.recovery.log_clock import CLOCK_KIND
from eventlog.recovery.workflow_record import WORKFLOW_KIND
from eventlog.retention.policy import Policy, Rule

RUN_KINDS = frozenset({AGENT_KIND, WORKFLOW_KIND})
OWN_KINDS = frozenset({STORE_KIND, CLOCK_KIND})  # what runs are checked against, for as long as there is any
# The same as in projections/reports/recovery.sql.
IN_FLIGHT = frozenset({"turn_in_flight", "step_in_flight", "parallel_in_flight", "race_in_flight", "waiting"})
REFUSED_RULE = "(refused before)"  # no rule's name: those have no parentheses of their own in a plan


class Kept(StrEnum):
    """Why something is kept that is due."""

    HELD = "held"
    IN_FLIGHT = "in flight"
    QUARANTINED = "quarantined"
    FLOOR = "floor"
    RUN_KEPT = "its run is kept"
    MOVED_ON = "moved on since it was refused"
    TO_BE_ERASED = "to be erased"


class Candidate(NamedTuple):
    """A checkpoint that is there. `recorded_at` (milliseconds) is of its latest revision, sizes of all of them; labels as JSON text."""

    checkpoint_id: str
    partition: int
    offset: int
    recorded_at: int
    revision: int
    run_id: str
    tenant: str
    kind: str
    phase: str | None
    labels: str
    revisions: int
    stored_bytes: int


class Item(NamedTuple):
    """A checkpoint that is due, and what becomes of it: it goes, or is `kept`. Times in milliseconds, the log's clock."""

    checkpoint_id: str
    tenant: str
    kind: str
    phase: str | None
    run_id: str
    revision: int
    revisions: int
    stored_bytes: int
    recorded_at: int
    due_since: int
    rule: str
    kept: Kept | None = None
    holds: tuple[str, ...] = ()
    below_floor: bool = False  # it goes because the floor was overridden


class Surroundings(NamedTuple):
    """What else a plan depends on.

    `refused`: checkpoint -> the revision whose deletion was refused, and what was wanted. `announced`: the effects that runs in flight have
    announced, asked for only if effects are due; None: that cannot be known of some run, so every effect is kept.
    """

    holds_on: Callable[[Candidate], tuple[str, ...]]
    quarantined: frozenset[str]
    refused: Mapping[str, tuple[int, Wanted]]
    announced: Callable[[], frozenset[str] | None]
    floor_overridden: bool = False


def evaluate(policy: Policy, candidates: Sequence[Candidate], *, now: int, around: Surroundings) -> list[Item]:
    """Everything that is due at `now` (milliseconds), in the log's order; runs before their effects, which go with them or not at all."""
    due = _due(policy, candidates, now)
    effects: list[tuple[Candidate, Item]] = []
    items: list[Item] = []
    going: set[str] = set()
    for each in candidates:
        item = _item(each, due.get(each.checkpoint_id), around)
        if item is None:
            continue
        item = _kept(policy, each, item, now, around)
        if each.kind == EFFECT_KIND:
            effects.append((each, item))
        else:
            items.append(item)
            if item.kept is None:
                going.add(each.checkpoint_id)
    if effects:
        runs = {each.run_id for each in candidates if each.kind in RUN_KINDS and each.checkpoint_id not in going}
        announced = around.announced()
        for each, item in effects:
            needed = each.run_id in runs or announced is None or each.checkpoint_id in announced
            items.append(item._replace(kept=Kept.RUN_KEPT) if item.kept is None and needed else item)
    return items


def _due(policy: Policy, candidates: Iterable[Candidate], now: int) -> dict[str, tuple[Rule, int]]:
    """Each due checkpoint: by which rule, and since when."""
    chosen: dict[tuple[str, str, str | None, str], Rule | None] = {}
    due: dict[str, tuple[Rule, int]] = {}
    groups: defaultdict[tuple[str | None, ...], list[Candidate]] = defaultdict(list)
    for each in candidates:
        if each.kind in OWN_KINDS:
            continue
        like = (each.tenant, each.kind, each.phase, each.labels)
        if like not in chosen:
            labels = json.loads(each.labels)
            chosen[like] = policy.rule_for(tenant=each.tenant, kind=each.kind, phase=each.phase, labels=labels)
        rule = chosen[like]
        if rule is None:
            continue
        if rule.keep_newest is not None:
            groups[(rule.name, *_group(rule, each))].append(each)
        elif rule.older_than is not None and each.recorded_at + rule.older_than <= now:
            due[each.checkpoint_id] = (rule, each.recorded_at + rule.older_than)
    rules = {rule.name: rule for rule in policy.rule}
    for (name, *_), members in groups.items():
        assert name is not None
        due.update(_beyond(rules[name], members, now))
    return due


def _beyond(rule: Rule, members: list[Candidate], now: int) -> dict[str, tuple[Rule, int]]:
    """Of a group those that are not among the newest, if they are old enough too: due since the last of so many newer ones was written."""
    assert rule.keep_newest is not None
    newest = sorted(members, key=lambda each: (each.recorded_at, each.partition, each.offset), reverse=True)
    due: dict[str, tuple[Rule, int]] = {}
    for place, each in enumerate(newest[rule.keep_newest :]):
        since = max(newest[place].recorded_at, each.recorded_at + (rule.older_than or 0))
        if since <= now:
            due[each.checkpoint_id] = (rule, since)
    return due


def _group(rule: Rule, each: Candidate) -> tuple[str | None, ...]:
    labels = json.loads(each.labels) if any(name.startswith("label.") for name in rule.group) else {}
    known = {"tenant": each.tenant, "kind": each.kind, "phase": each.phase, "run": each.run_id}
    return tuple(labels.get(name.removeprefix("label.")) if name.startswith("label.") else known[name] for name in rule.group)


def _item(each: Candidate, due: tuple[Rule, int] | None, around: Surroundings) -> Item | None:
    """The item of what is due, by a rule or because its deletion was refused before."""
    refused = around.refused.get(each.checkpoint_id)
    if due is not None:
        rule, since = due[0].name, due[1]
    elif refused is not None:
        rule, since = REFUSED_RULE, each.recorded_at
    else:
        return None
    item = Item(
        each.checkpoint_id,
        each.tenant,
        each.kind,
        each.phase,
        each.run_id,
        each.revision,
        each.revisions,
        each.stored_bytes,
        each.recorded_at,
        since,
        rule,
    )
    if refused is not None and refused[1] is Wanted.ERASE:
        return item._replace(kept=Kept.TO_BE_ERASED)
    if due is None and refused is not None and refused[0] != each.revision:
        return item._replace(kept=Kept.MOVED_ON)
    return item


def _kept(policy: Policy, each: Candidate, item: Item, now: int, around: Surroundings) -> Item:
    """The first reason to keep it, the strongest first."""
    holds = around.holds_on(each)
    if holds:
        return item._replace(kept=Kept.HELD, holds=holds)
    if item.kept is not None:
        return item
    if each.checkpoint_id in around.quarantined:
        return item._replace(kept=Kept.QUARANTINED)
    if is_in_flight(each.kind, each.phase):
        return item._replace(kept=Kept.IN_FLIGHT)
    floor = policy.floor_of(each.kind)
    if floor is not None and each.recorded_at + floor > now:
        return item._replace(below_floor=True) if around.floor_overridden else item._replace(kept=Kept.FLOOR)
    return item


def is_in_flight(kind: str, phase: str | None) -> bool:
    """Whether something may be under way outside that only this checkpoint knows of."""
    return (kind in RUN_KINDS and phase in IN_FLIGHT) or (kind == EFFECT_KIND and phase == EffectState.STARTED)
