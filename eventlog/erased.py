"""What stands in the place of a payload that was erased."""

from __future__ import annotations

from typing import Final, final


@final
class Erased:
    """The type of `PAYLOAD_ERASED`. It is no JSON value, so that it can neither be taken for a payload nor be committed as one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<payload erased>"

    def __bool__(self) -> bool:
        raise TypeError("the payload was erased: the trail has its metadata only")

    def __reduce__(self) -> str:
        return "PAYLOAD_ERASED"  # there is one of it, in other processes too


PAYLOAD_ERASED: Final = Erased()
