"""The places that payloads and keys are kept in, and how each lets go of those of some checkpoints.

Each may be visited again: what is gone already is no error, and is not counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from eventlog import codec
from eventlog.archive.remembered import remembered
from eventlog.embedded import EmbeddedLog
from eventlog.embedded_files import LOG_FILE
from eventlog.erasure.archives import empty_archive, require_archive
from eventlog.erasure.certificate import Place
from eventlog.erasure.embedded_purge import purge
from eventlog.erasure.ending import events_of
from eventlog.erasure.steps import Step, passed
from eventlog.event import EventType
from eventlog.store import CheckpointStore
from projections import erasing
from projections.engine import Projection

Visit = tuple[str, Callable[[], Place]]  # how an error names the place, and what visits it


@runtime_checkable
class Compacted(Protocol):
    """A log whose old records leave it by compaction."""

    @property
    def compacted_within(self) -> int:
        """Milliseconds after which a superseded record has to be taken."""
        ...

    def withhold(self, checkpoint_ids: Collection[str]) -> None:
        """From now on what the topic still holds of these is read without its payload, by whatever reads it in this process."""
        ...

    def records_left(self, checkpoint_ids: Collection[str]) -> tuple[dict[str, int], str]:
        """Of each checkpoint that has any, how many records the topic, or the one of the keys, still holds beside the DELETED event; and
        up to where it was read.
        """
        ...


def visits(store: CheckpointStore, ids: Sequence[str], archives: Sequence[Path]) -> Iterator[Visit]:
    """Every place of a store, in the order in which they are to be visited: what opens payloads first, then the payloads themselves.

    `archives`: others than the one that the store remembers.
    """
    if store.keys is not None:
        yield "keys", lambda: _keys(store, ids)
    yield "memory", lambda: _memory(store, ids)
    if isinstance(store.log, EmbeddedLog):
        yield "log", lambda: _log(store.log.directory, ids)
    elif isinstance(store.log, Compacted):
        yield "topic", lambda: _topic(store, ids)
    yield "projection", lambda: _projection(store, ids)
    for directory in dict.fromkeys([each for each in (remembered(store.log.directory),) if each is not None] + list(archives)):
        yield f"archive {directory}", lambda directory=directory: _archive(directory, store, ids)  # type: ignore[misc]


def _keys(store: CheckpointStore, ids: Sequence[str]) -> Place:
    assert store.keys is not None
    destroyed = store.keys.table.destroy(*ids)
    passed(Step.KEYS_DESTROYED)
    return Place("keys", "the wrapped data keys", len(ids), destroyed)


def _memory(store: CheckpointStore, ids: Sequence[str]) -> Place:
    store.forget(*ids)
    note = "other processes: a payload until they ask for the checkpoint again, a data key for at most 300 s"
    return Place("memory", "this process", len(ids), len(ids), note)


def _log(directory: Path, ids: Sequence[str]) -> Place:
    purged = purge(directory, ids)
    return Place("log", str(directory / LOG_FILE), purged.events, purged.emptied, "written anew, write-ahead log emptied")


def _topic(store: CheckpointStore, ids: Sequence[str]) -> Place:
    """Nothing but compaction takes a record out of a topic. Until then it is read as if that had happened."""
    assert isinstance(store.log, Compacted)
    store.log.withhold(ids)
    left, position = store.log.records_left(frozenset(ids))
    note = "superseded by the DELETED events; bytes stay until the topic is compacted"
    return Place("topic", f"read up to {position}", sum(left.values()), 0, note)


def _projection(store: CheckpointStore, ids: Sequence[str]) -> Place:
    found = emptied = 0

    def work(projection: Projection) -> None:
        nonlocal found, emptied
        for checkpoint_id in ids:
            before = erasing.kept(projection, checkpoint_id)
            bare = {place: codec.without_body(event) for place, event in before.items()} or _bare(store, checkpoint_id)
            found += len(bare)
            emptied += sum(bare[place] != event for place, event in before.items())
            erasing.empty(projection, checkpoint_id, bare)
        passed(Step.PROJECTION_EMPTIED)

    files = store.catalog.rewrite(work)
    passed(Step.PROJECTION_REWRITTEN)
    return Place("projection", ", ".join(map(str, files)), found, emptied, "written anew")


def _bare(store: CheckpointStore, checkpoint_id: str) -> Mapping[tuple[int, int], bytes]:
    """Of a log that keeps the events itself."""
    return {
        (record.partition, record.offset): codec.without_body(record.value or b"")
        for record, header, _ in events_of(store.log, checkpoint_id)
        if header.type != EventType.DELETED
    }


def _archive(directory: Path, store: CheckpointStore, ids: Sequence[str]) -> Place:
    archive = require_archive(directory)
    archive.require_of(store.log.identity)
    done = empty_archive(archive, ids)
    return Place("archive", str(directory), done.segments, done.events, f"{done.rewritten} segments written anew")
