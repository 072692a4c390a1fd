"""A plan: exactly what would go and why, and what is kept although it is due. Can be written to a file, and applied from there.

The file is JSON. Its digest is over everything else in the plan, so that one that somebody has changed is not applied as the one that
was looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from eventlog.errors import InvalidRequest, StorageError
from eventlog.ids import CheckpointId, EventId, content_id
from eventlog.retention.evaluation import Item, Kept

FORMAT = 1  # the only one that `Plan.format` takes


class Override(BaseModel):
    """That a floor does not count this time: who says so, when (milliseconds), and why."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    actor: str | None
    at: int
    reason: str


class Summary(NamedTuple):
    """How much of something there is."""

    checkpoints: int
    revisions: int
    stored_bytes: int


def _items(rows: object) -> object:
    return tuple(_item(each) for each in rows) if isinstance(rows, list) else rows


class Plan(BaseModel):
    """What a policy makes of a store at one moment. Times are milliseconds since 1970 UTC.

    `position`: the log up to which everything is taken into account. `looked_at`: how many checkpoints. `tenant`: the only one that was
    looked at. `items` go, `kept` are due and do not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    format: Literal[1] = 1
    store_id: str
    tenant: str | None
    position: str
    made_at: int
    made_by: str | None
    policy: str
    grace: int
    floor_override: Override | None
    looked_at: int
    items: Annotated[tuple[Any, ...], BeforeValidator(_items)]
    kept: Annotated[tuple[Any, ...], BeforeValidator(_items)]
    digest: str = Field(default="")

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """With its digest."""
        made = cls(**fields)
        return made.model_copy(update={"digest": made._computed()})

    def fields(self) -> dict[str, Any]:
        """As it stands in the file."""
        found = {name: getattr(self, name) for name in type(self).model_fields}
        found["floor_override"] = None if self.floor_override is None else self.floor_override.model_dump()
        found["items"] = [_fields(each) for each in self.items]
        found["kept"] = [_fields(each) for each in self.kept]
        return found

    def write(self, path: Path) -> None:
        """Writes the file, whole or not at all. Raises `StorageError`."""
        try:
            descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(_text(self.fields()))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, path)
            except BaseException:
                Path(draft).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StorageError(str(path), f"the plan cannot be written: {error.strerror}") from error

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file. Raises `InvalidRequest` for what is no plan, or not as it was written."""
        try:
            fields = json.loads(path.read_bytes())
        except OSError as error:
            raise InvalidRequest(str(path), f"cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InvalidRequest(str(path), "is no plan: it is not JSON") from error
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise InvalidRequest(str(path), f"is no plan of format {FORMAT}", hint="Make one with `eventlog retention plan --out`.")
        try:
            found = cls(**fields)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise InvalidRequest(str(path), f"{where}: {error.errors()[0]['msg']}") from error
        if found._computed() != found.digest:
            raise InvalidRequest(str(path), "was changed after it was made: its digest does not fit", hint="Make another plan.")
        return found

    def _computed(self) -> str:
        """The digest of everything else. Items as rows without their names: there may be very many."""
        found = {name: getattr(self, name) for name in type(self).model_fields if name != "digest"}
        found["floor_override"] = None if self.floor_override is None else self.floor_override.model_dump()
        return hashlib.sha256(_text(found).encode()).hexdigest()

    def event_id(self, item: Item) -> EventId:
        """Of the event that deletes an item: it follows from the plan, so that a plan that is applied again finds its own deletions."""
        return EventId(content_id("eventlog.retention", self.digest, item.checkpoint_id))


def summary(items: Iterable[Item]) -> Summary:
    """All of some together."""
    found = list(items)
    return Summary(len(found), sum(each.revisions for each in found), sum(each.stored_bytes for each in found))


_KEYS = frozenset(Item._fields)


def _item(fields: Any) -> Item:
    if not isinstance(fields, dict) or set(fields) != _KEYS:
        raise ValueError("is not an item of a plan")
    CheckpointId(fields["checkpoint_id"])
    kept = fields["kept"]
    return Item(**{**fields, "kept": None if kept is None else Kept(kept), "holds": tuple(fields["holds"])})


def _fields(item: Item) -> dict[str, Any]:
    return {**item._asdict(), "kept": None if item.kept is None else item.kept.value, "holds": list(item.holds)}


def _text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
