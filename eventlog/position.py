"""Where something stands in a log: the past is a position, not a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, Self

from eventlog.errors import InvalidRequest

_TEXT = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18})*").fullmatch


class Position(NamedTuple):
    """A cut through a log: for each partition, the first offset that lies after it.

    The embedded log has the one partition 0. A partition that is not named is not bounded from below: nothing of it lies
    before the position. As text: `0:17,3:9`.
    """

    offsets: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, offsets: Mapping[int, int]) -> Self:
        """From partition -> first offset after the position."""
        return cls(tuple(sorted(offsets.items())))

    @classmethod
    def after(cls, partition: int, offset: int) -> Self:
        """Just behind one record."""
        return cls(((partition, offset + 1),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From text as `str()` gives it; a lone number stands for partition 0. Raises `InvalidRequest`."""
        if text.isascii() and text.isdigit() and len(text) <= 18:
            return cls(((0, int(text)),))
        if not _TEXT(text):
            raise InvalidRequest("position", f"not a position: {text[:80]!r}", hint="Positions look like 17 or 0:17,3:9.")
        pairs = [(int(partition), int(offset)) for partition, offset in (part.split(":") for part in text.split(","))]
        if len(dict(pairs)) != len(pairs):
            raise InvalidRequest("position", f"names a partition twice: {text[:80]!r}")
        return cls(tuple(sorted(pairs)))

    def next_offset(self, partition: int) -> int:
        """The first offset of a partition that lies after this position."""
        for number, offset in self.offsets:
            if number == partition:
                return offset
        return 0

    def covers(self, other: Position) -> bool:
        """Whether everything before `other` also lies before this position."""
        return all(self.next_offset(partition) >= offset for partition, offset in other.offsets)

    def __str__(self) -> str:
        return ",".join(f"{partition}:{offset}" for partition, offset in self.offsets) or "0:0"
