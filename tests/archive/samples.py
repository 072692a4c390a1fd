"""What the tests of this folder write, and how they look at it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from eventlog import Checkpoint, CheckpointStore, Position
from eventlog.archive.directory import Archive
from eventlog.embedded_files import checksum
from projections.archive import read_segment
from tests.store.samples import initial


def noise(seed: object, size: int) -> str:
    """Text that no compression makes much smaller than half."""
    return random.Random(str(seed)).randbytes(size // 2).hex()


def grown(store: CheckpointStore, revisions: int, *, size: int = 200, kind: str = "acme.order") -> list[Checkpoint]:
    """A committed checkpoint with so many revisions."""
    written = [initial({"step": 0, "said": noise(kind, size)}, kind=kind, labels={"of": "a test"}, usage={"turns": 0})]
    store.compare_and_swap(written[0], None)
    for step in range(1, revisions):
        following = written[-1].next({"step": step, "said": noise((kind, step), size)}, usage={"turns": step})
        store.compare_and_swap(following, step - 1)
        written.append(following)
    return written


def logged(store: CheckpointStore) -> list[tuple[int, int, int, bytes | None]]:
    """Partition, offset, time and event of everything in the log."""
    found = [record for records, _ in store.log.revisions(Position()) for record in records]
    return sorted((each.partition, each.offset, each.recorded_at, each.value) for each in found)


def archived(archive: Archive) -> list[tuple[int, int, int, bytes | None]]:
    """The same of an archive."""
    return [
        (row.partition, row.offset, row.recorded_at, row.event)
        for partition in archive.partitions()
        for segment in archive.segments(partition)
        for row in read_segment(segment.path)
    ]


def keys(folder: Path, name: str = "key") -> tuple[Path, Path]:
    """A private and a public key in PEM files."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@contextmanager
def tampering(directory: Path) -> Iterator[sqlite3.Connection]:
    """The log's database, for somebody who knows about the rows' checksums: they are right again afterwards."""
    with closing(sqlite3.connect(directory / "log.sqlite3", isolation_level=None)) as connection:
        yield connection
        columns = "position, checkpoint_id, revision, recorded_at, event"
        for row in connection.execute(f"SELECT {columns} FROM events").fetchall():
            connection.execute("UPDATE events SET checksum = ? WHERE position = ?", (checksum(*row), row[0]))


def forget_projection(directory: Path) -> None:
    """What somebody does who wants the projection to be made anew from a changed log."""
    for each in (*directory.glob("projection.duckdb*"), *directory.glob("snapshot.duckdb*")):
        each.unlink()
