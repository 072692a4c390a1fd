"""The certificate of an erasure: what was erased, where it was looked for, when, by whom and why; sealed, and chained to the one before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from eventlog.archive.sealing import open_sealed, seal
from eventlog.errors import Corrupted, StorageError
from projections.durable import make_directory, put_in_place

FORMAT_VERSION = 1


class Place(NamedTuple):
    """A place that was visited."""

    place: str  # log | keys | projection | archive | memory | topic
    where: str
    found: int  # what was looked at: events, keys, segments, files
    erased: int  # what was taken out of it this time; what an earlier attempt took is not counted again
    note: str | None = None


class EndOf(NamedTuple):
    """The DELETED event that answers for an erased checkpoint."""

    checkpoint_id: str
    revision: int
    position: str
    recorded_at: int  # milliseconds since 1970 UTC, the log's clock
    actor: str | None
    hash: str


class Certificate(NamedTuple):
    """What was erased. Times are milliseconds since 1970 UTC, by the clock of whoever erased."""

    format_version: int
    number: int  # of the store's certificates, from 0
    erasure: str
    store_id: str
    log: str  # embedded | kafka
    encrypted: bool
    actor: str
    reason: str
    selection: dict[str, Any]
    position: str  # the log's end when the selection was made: what was begun later is none of it
    begun_at: int
    completed_at: int
    checkpoints: tuple[EndOf, ...]
    revisions: int  # events whose payload is gone, the DELETED ones not counted
    events_root: str  # Merkle root over these events' hashes: by checkpoint as listed, then by revision
    keys_destroyed_at: int | None  # None: the store is not encrypted
    bytes_gone_at: int | None  # None: the topic still holds them, until it is compacted
    bytes_due_at: int | None  # by when it has to be, by its settings
    places: tuple[Place, ...]
    not_reached: tuple[str, ...]  # what no program can visit from here, in words
    access_head: str | None  # hash of the access log's last entry, where there is one
    previous: str | None  # the seal of the certificate before
    completes: str | None = None  # the seal of the one of which this says that the bytes are gone now

    def document(self) -> dict[str, Any]:
        """As JSON, with its seal."""
        content = self._asdict()
        content["checkpoints"] = [each._asdict() for each in self.checkpoints]
        content["places"] = [each._asdict() for each in self.places]
        content["not_reached"] = list(self.not_reached)
        return seal(content, key=None)

    @property
    def hash(self) -> str:
        """Its seal: what the register and the next certificate name."""
        return str(self.document()["seal"])

    @classmethod
    def parse(cls, text: bytes, place: str) -> Self:
        """From a document. Raises `Corrupted` when it is not what was sealed, or `SchemaMismatch`."""
        content = open_sealed(text, place, format_version=FORMAT_VERSION).content
        try:
            ends = tuple(EndOf(**each) for each in content["checkpoints"])
            places = tuple(Place(**each) for each in content["places"])
            return cls(**{**content, "checkpoints": ends, "places": places, "not_reached": tuple(content["not_reached"])})
        except (TypeError, KeyError) as error:
            raise Corrupted(place, f"is no certificate: {error!r}") from error


def keep(certificate: Certificate, directory: Path) -> Path:
    """Writes a certificate under its hash; durable when it returns. Raises `StorageError`."""
    document = certificate.document()
    file = directory / f"{document['seal']}.json"
    try:
        make_directory(directory)
        draft = Path(f"{file}.new")
        draft.write_text(json.dumps(document, indent=1))
        put_in_place(draft, file)
    except OSError as error:
        raise StorageError(str(file), f"cannot be written: {error.strerror}") from error
    return file


def read(directory: Path, seals: Sequence[str]) -> list[Certificate]:
    """The certificates of some hashes. Raises `Corrupted` when one is missing or another, `StorageError`."""
    found = []
    for each in seals:
        file = directory / f"{each}.json"
        try:
            text = file.read_bytes()
        except FileNotFoundError as error:
            raise Corrupted(str(file), "is missing, and the register of erasures names it") from error
        except OSError as error:
            raise StorageError(str(file), f"cannot be read: {error.strerror}") from error
        certificate = Certificate.parse(text, str(file))
        if certificate.hash != each:
            raise Corrupted(str(file), "is another certificate than the one that the register names")
        found.append(certificate)
    return found
