"""What stands in the place of a payload that somebody may not see."""

from __future__ import annotations

from typing import Final, final


@final
class Withheld:
    """The type of `PAYLOAD_WITHHELD`. It is no JSON value, so that it can neither be taken for a payload nor be committed as one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<payload withheld>"

    def __bool__(self) -> bool:
        raise TypeError("the payload is withheld: this principal's roles give metadata only")

    def __reduce__(self) -> str:
        return "PAYLOAD_WITHHELD"  # there is one of it, in other processes too


PAYLOAD_WITHHELD: Final = Withheld()
