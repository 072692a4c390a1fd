"""What can go wrong in a projection. A projection is disposable: every error here can be answered by a rebuild from the log."""

from __future__ import annotations

from pathlib import Path


class ProjectionError(Exception):
    """Root of this package's errors. DuckDB's own exception, where there was one, is the cause."""


class ProjectionLocked(ProjectionError):
    """Another process, or another `Projection` of this one, owns the file.

    Attributes: `path`, and `owner`, the process id as text (`unknown` if the owner left no name).
    """

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(f"{path} is owned by process {owner}; one process at a time may open a projection: use a snapshot of it instead")
        self.path = path
        self.owner = owner


class ProjectionForeign(ProjectionError):
    """The file is not what was asked for: another store's, another partition count, another format version.

    Attributes: `path`, `expected` and `found`, both as text for people.
    """

    def __init__(self, path: Path | None, expected: str, found: str) -> None:
        super().__init__(
            f"{path or 'the in-memory projection'} has {found}, expected {expected}: point to another file, or rebuild this one"
        )
        self.path = path
        self.expected = expected
        self.found = found


class ProjectionDamaged(ProjectionError):
    """The file cannot be read. Delete it and rebuild from the log. Attributes: `path`, `cause` (text)."""

    def __init__(self, path: Path | None, cause: str) -> None:
        super().__init__(f"{path or 'the in-memory projection'} cannot be read, rebuild it from the log: {cause}")
        self.path = path
        self.cause = cause


class PastGone(ProjectionError):
    """The log no longer holds what is needed to answer for that position.

    Attributes: `checkpoint_id`, `first_revision` and `last_revision` of the gap that the position falls into, `reason`
    (compaction | import), and `count`, the number of such gaps (more than one when a list was asked for).
    """

    def __init__(self, checkpoint_id: str, first_revision: int, last_revision: int, reason: str, count: int = 1) -> None:
        more = f" (and {count - 1} more gaps)" if count > 1 else ""
        super().__init__(f"checkpoint {checkpoint_id}: revisions {first_revision} to {last_revision} are gone by {reason}{more}")
        self.checkpoint_id = checkpoint_id
        self.first_revision = first_revision
        self.last_revision = last_revision
        self.reason = reason
        self.count = count


class InvalidQuery(ProjectionError):
    """A question that cannot be asked: an unknown or ill-typed filter, parameter, report or statement. It is never ignored."""


class InvalidBatch(ProjectionError):
    """A batch that contradicts itself or holds a value that its column cannot. Nothing of it was applied."""
