"""What a legal hold lies on, and which holds lie on a checkpoint. Pure: no I/O, no clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from eventlog.checkpoint import MAX_TENANT, check_labels, check_name
from eventlog.errors import InvalidRequest, SchemaMismatch
from eventlog.ids import CheckpointId, RunId


class HeldBy(StrEnum):
    """By what a hold finds its checkpoints."""

    CHECKPOINT = "checkpoint"
    RUN = "run"
    TENANT = "tenant"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class HoldTarget:
    """Made by `of_checkpoint`, `of_run`, `of_tenant` and `of_label`.

    Arguments:
        value: the id, the tenant, or the label's value.
        key: of a label.
        tenant: what is held is of this one; None: of whichever.
    """

    by: HeldBy
    value: str
    key: str | None = None
    tenant: str | None = None

    @classmethod
    def of_checkpoint(cls, checkpoint_id: object, *, tenant: str | None = None) -> HoldTarget:
        return cls(HeldBy.CHECKPOINT, str(CheckpointId(checkpoint_id)), None, _tenant(tenant))  # type: ignore[arg-type]

    @classmethod
    def of_run(cls, run_id: object, *, tenant: str | None = None) -> HoldTarget:
        """Every checkpoint of a run, those of its effects too, now and later."""
        return cls(HeldBy.RUN, str(RunId(run_id)), None, _tenant(tenant))  # type: ignore[arg-type]

    @classmethod
    def of_tenant(cls, tenant: str) -> HoldTarget:
        """Everything of a tenant, now and later."""
        check_name("tenant", tenant, MAX_TENANT)
        return cls(HeldBy.TENANT, tenant, None, tenant)

    @classmethod
    def of_label(cls, key: str, value: str, *, tenant: str | None = None) -> HoldTarget:
        """Whatever bears a label, or has borne it in any revision: who takes the label off does not take the hold off."""
        check_labels({key: value})
        return cls(HeldBy.LABEL, value, key, _tenant(tenant))

    def within(self, tenant: str | None) -> HoldTarget:
        """The same, limited to a tenant if one is given. Raises `InvalidRequest` for one of another."""
        if tenant is None or tenant == self.tenant:
            return self
        if self.tenant is not None:
            raise InvalidRequest("tenant", f"is {self.tenant} where this store is opened for {tenant}")
        return HoldTarget(self.by, self.value, self.key, tenant)

    def __str__(self) -> str:
        what = f"label {self.key}={self.value}" if self.by is HeldBy.LABEL else f"{self.by} {self.value}"
        return what if self.tenant is None or self.by is HeldBy.TENANT else f"{what} of tenant {self.tenant}"

    def fields(self) -> dict[str, str]:
        """As it stands in payloads, and in clear text in the labels of a hold."""
        found = {"by": self.by.value, "value": self.value, "key": self.key, "tenant": self.tenant}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> HoldTarget:
        """From `fields`. Raises `SchemaMismatch`: a hold that is not understood holds nothing, so nothing may go on without it."""
        try:
            by, value, key, tenant = HeldBy(fields["by"]), fields["value"], fields.get("key"), fields.get("tenant")
            if by is HeldBy.CHECKPOINT:
                return cls.of_checkpoint(value, tenant=tenant)
            if by is HeldBy.RUN:
                return cls.of_run(value, tenant=tenant)
            return cls.of_tenant(value) if by is HeldBy.TENANT else cls.of_label(key, value, tenant=tenant)  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, InvalidRequest) as error:
            raise SchemaMismatch(f"a legal hold lies on {dict(fields)!r:.200}, which this version does not understand") from error


def _tenant(tenant: str | None) -> str | None:
    if tenant is not None:
        check_name("tenant", tenant, MAX_TENANT)
    return tenant


class Placed(NamedTuple):
    """A hold in a register: its id, and what it lies on."""

    hold_id: str
    target: HoldTarget


class HoldIndex:
    """Holds, found by what they lie on: as quickly among thousands as among few."""

    def __init__(self, holds: Iterable[Placed]) -> None:
        self._by: defaultdict[tuple[str | None, ...], list[Placed]] = defaultdict(list)
        each_once = dict.fromkeys(holds)
        for each in each_once:
            self._by[each.target.by, each.target.key, each.target.value].append(each)
        self._count = len(each_once)
        pairs = dict.fromkeys((each.target.key, each.target.value) for each in each_once if each.target.by is HeldBy.LABEL)
        self.labels = tuple((key, value) for key, value in pairs if key is not None)  # that are held, each once

    def __len__(self) -> int:
        return self._count

    def on(self, *, checkpoint_id: str, run_id: str, tenant: str, labels: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """The ids of the holds on a checkpoint, in order. `labels`: all that it bears or has borne."""
        if not self._by:
            return ()
        places: list[tuple[str | None, ...]] = [
            (HeldBy.CHECKPOINT, None, checkpoint_id),
            (HeldBy.RUN, None, run_id),
            (HeldBy.TENANT, None, tenant),
            *((HeldBy.LABEL, key, value) for key, value in labels),
        ]
        found = (each for place in places for each in self._by.get(place, ()))
        return tuple(sorted({each.hold_id for each in found if each.target.tenant in (None, tenant)}))
