"""What stands in the place of a payload that is not handed out."""

from __future__ import annotations

from typing import ClassVar, Final, final


class NoPayload:
    """No JSON value, so that it can neither be taken for a payload nor be committed as one. There is one of each kind."""

    __slots__ = ()
    _SHOWN: ClassVar[str]
    _WHY: ClassVar[str]
    _NAME: ClassVar[str]

    def __repr__(self) -> str:
        return self._SHOWN

    def __bool__(self) -> bool:
        raise TypeError(self._WHY)

    def __reduce__(self) -> str:
        return self._NAME  # the one of this module, in other processes too


@final
class Withheld(NoPayload):
    """The type of `PAYLOAD_WITHHELD`: somebody may not see the payload."""

    __slots__ = ()
    _SHOWN = "<payload withheld>"
    _WHY = "the payload is withheld: this principal's roles give metadata only"
    _NAME = "PAYLOAD_WITHHELD"


@final
class Erased(NoPayload):
    """The type of `PAYLOAD_ERASED`: the payload is gone for good."""

    __slots__ = ()
    _SHOWN = "<payload erased>"
    _WHY = "the payload was erased: the trail has its metadata only"
    _NAME = "PAYLOAD_ERASED"


PAYLOAD_WITHHELD: Final = Withheld()
PAYLOAD_ERASED: Final = Erased()
