"""What is to be erased: checkpoints by id, or all of a run, of a tenant, or of a subject that a label names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from eventlog.checkpoint import MAX_LABEL_KEY, MAX_LABEL_VALUE, MAX_TENANT, check_name, check_text
from eventlog.errors import InvalidRequest, NotFound
from eventlog.ids import CheckpointId, RunId
from eventlog.projection_errors import translated
from eventlog.store import CheckpointStore
from projections import erasing


@dataclass(frozen=True)
class Selection:
    """Exactly one of these; make it by the class methods."""

    checkpoints: tuple[CheckpointId, ...] = ()
    run_id: RunId | None = None
    tenant: str | None = None
    label: tuple[str, str] | None = None

    @classmethod
    def of_checkpoints(cls, *ids: CheckpointId | UUID | str) -> Self:
        """Checkpoints by id. Raises `InvalidRequest` for none, or for what is no id."""
        if not ids:
            raise InvalidRequest("checkpoint", "no id is given")
        return cls(checkpoints=tuple(dict.fromkeys(CheckpointId(each) for each in ids)))

    @classmethod
    def of_run(cls, run_id: RunId | UUID | str) -> Self:
        """Every checkpoint of a run: its state, and its effects, which carry the run's id."""
        return cls(run_id=RunId(run_id))

    @classmethod
    def of_tenant(cls, tenant: str) -> Self:
        """Everything that a tenant has at this moment."""
        check_name("tenant", tenant, MAX_TENANT)
        return cls(tenant=tenant)

    @classmethod
    def of_label(cls, key: str, value: str) -> Self:
        """Every checkpoint of which any revision has a label, as when it names a subject."""
        check_text("label", key, MAX_LABEL_KEY)
        check_text(f"label {key}", value, MAX_LABEL_VALUE)
        return cls(label=(key, value))

    def document(self) -> dict[str, Any]:
        """As a certificate has it."""
        if self.checkpoints:
            return {"checkpoints": list(self.checkpoints)}
        if self.run_id is not None:
            return {"run": self.run_id}
        if self.tenant is not None:
            return {"tenant": self.tenant}
        return {"label": list(self.label or ())}

    def resolve(self, store: CheckpointStore) -> list[CheckpointId]:
        """The ids that it means now, in order, deleted ones included. Raises `NotFound` for an id that this store does not have."""
        if self.checkpoints:
            for each in self.checkpoints:
                if store._reader.latest(each) is None:
                    raise NotFound(each)
            return sorted(self.checkpoints)
        if store.tenant is not None and self.tenant not in (None, store.tenant):
            return []
        with translated():
            projection = store.catalog.projection()
            tenant = self.tenant or store.tenant
            return _trusted(erasing.selected(projection, run_id=self.run_id, tenant=tenant, label=self.label))


def _trusted(ids: Iterable[str]) -> list[CheckpointId]:
    return [CheckpointId.trusted(each) for each in ids]
