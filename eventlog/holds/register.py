"""Which holds are in force: one register a partition, a checkpoint that whoever deletes anything of that partition depends on.

A hold and a deletion are two checkpoints, and no log has transactions across checkpoints. But it decides all that is proposed for one
partition in one order. So a hold stands in a register of every partition in which it could hold something, and a deletion is proposed on
the condition that the register of its own partition is as it was when it was looked at: the log itself refuses it otherwise
(`rules.Condition`). Whatever comes first in the partition wins, and the other one is told.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from eventlog.checkpoint import Checkpoint
from eventlog.errors import Conflict, SchemaMismatch
from eventlog.holds.reserved import REGISTER_KIND, ReservedStreams, first
from eventlog.holds.targets import HeldBy, HoldIndex, HoldTarget, Placed
from eventlog.ids import CheckpointId, content_id
from eventlog.position import Position
from eventlog.rules import Condition


class Registered(NamedTuple):
    """A register as it was read."""

    condition: Condition  # that it is still so
    holds: tuple[Placed, ...]
    by_target: HoldIndex


_NONE = HoldIndex(())


class HoldRegister:
    """The registers of a log. Safe to share between threads."""

    def __init__(self, streams: ReservedStreams) -> None:
        self._streams = streams
        self._ids: dict[int, CheckpointId] = {}
        self._read: dict[int, tuple[tuple[int, int], Registered]] = {}  # by partition: where the register stood, and what it said

    def partitions(self, target: HoldTarget) -> list[int]:
        """Where something that a hold lies on may be."""
        log = self._streams.log
        return [log.partition_of(target.value)] if target.by is HeldBy.CHECKPOINT else list(range(log.identity.partitions))

    def read(self, partition: int, *, at_least: Position | None = None) -> Registered:
        """What is held in a partition; while nothing ever was, one look at an index. `at_least` as in `Log.place`."""
        where = self.id_of(partition)
        place = self._streams.log.place(where, at_least=at_least)
        if place is None:
            return Registered(Condition(where, None), (), _NONE)
        known = self._read.get(partition)
        if known is not None and known[0] == place:
            return known[1]
        found = self._streams.load(where, REGISTER_KIND, at_least=at_least)
        assert found is not None
        holds = _holds(found)
        registered = Registered(Condition(where, found.revision), holds, HoldIndex(holds))
        if self._streams.log.place(where, at_least=Position()) == place:  # otherwise it may be a later one that was read
            self._read[partition] = (place, registered)
        return registered

    def everywhere(self) -> HoldIndex:
        """Everything that is held, as of now."""
        self._streams.log.end()
        partitions = range(self._streams.log.identity.partitions)
        return HoldIndex(each for number in partitions for each in self.read(number, at_least=Position()).holds)

    def add(self, hold: Placed) -> None:
        """Enters a hold wherever it belongs. Adding twice is harmless."""
        for partition in self.partitions(hold.target):
            self._change(partition, lambda holds: holds if hold in holds else (*holds, hold))

    def remove(self, hold: Placed) -> None:
        """Takes a hold off wherever it stands."""
        for partition in self.partitions(hold.target):
            self._change(partition, lambda holds: tuple(each for each in holds if each.hold_id != hold.hold_id))

    def id_of(self, partition: int) -> CheckpointId:
        """The checkpoint that is a partition's register: the first of a series of ids that falls into it."""
        if partition not in self._ids:
            names = (content_id(REGISTER_KIND, str(partition), str(number)) for number in itertools.count())
            found = (CheckpointId(each) for each in names)
            self._ids[partition] = next(each for each in found if self._streams.log.partition_of(each) == partition)
        return self._ids[partition]

    def _change(self, partition: int, change: Callable[[tuple[Placed, ...]], tuple[Placed, ...]]) -> None:
        """By compare-and-swap, as often as another change comes first."""
        where = self.id_of(partition)
        while True:
            found = self._streams.load(where, REGISTER_KIND)
            before = () if found is None else _holds(found)
            after = change(before)
            if after == before:
                return
            payload = {"holds": [{"id": each.hold_id, "target": each.target.fields()} for each in after]}
            try:
                if found is None:
                    self._streams.commit(first(where, REGISTER_KIND, payload), None)
                else:
                    self._streams.commit(found.next(payload), found.revision)
            except Conflict:
                continue
            return


def _holds(register: Checkpoint) -> tuple[Placed, ...]:
    try:
        entries: list[Any] = register.payload["holds"]
        return tuple(Placed(str(CheckpointId(each["id"])), HoldTarget.read(each["target"])) for each in entries)
    except (KeyError, TypeError) as error:
        raise SchemaMismatch(f"checkpoint {register.id} revision {register.revision} is no register of holds") from error
