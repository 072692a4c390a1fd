"""Whether a checkpoint is the one that its caller thinks it is. Pure; looked at before anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventlog.checkpoint import Checkpoint
from eventlog.errors import SchemaMismatch
from eventlog.recovery.errors import Difference, IdentityMismatch


def check_kind(checkpoint: Checkpoint, kind: str, schema_version: int) -> None:
    """Raises `SchemaMismatch` for a checkpoint of another kind, or of a version that this code does not write."""
    if (checkpoint.kind, checkpoint.schema_version) != (kind, schema_version):
        raise SchemaMismatch(
            f"checkpoint {checkpoint.id} is {checkpoint.kind} {checkpoint.schema_version}; this is for {kind} {schema_version}",
            hint="Migrate it, or resume it with the version that wrote it.",
        )


def check_identity(checkpoint_id: str, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raises `IdentityMismatch` naming every part that differs, with both sides.

    Arguments:
        stored: what the checkpoint says, by field: an agent's name, model and definition version; a workflow's name, version, layout.
        given: the same fields of whoever wants to go on.
    """
    differences = [Difference(field, stored.get(field), value) for field, value in given.items() if stored.get(field) != value]
    if differences:
        raise IdentityMismatch(checkpoint_id, differences)


def check_effect_store(checkpoint_id: str, named: str | None, given: str | None) -> None:
    """Raises `IdentityMismatch` when a run's effects are looked for in another effect store than the one it names."""
    check_identity(checkpoint_id, {"effect_store": named}, {"effect_store": given})
