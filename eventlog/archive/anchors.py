"""Anchors: the heads of a log's Merkle trees, to be kept where whoever can change the log cannot reach.

A log is a continuation of an anchored one exactly if, partition by partition, its first events have the anchored root.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from eventlog import codec
from eventlog.archive.sealing import open_sealed, seal
from eventlog.errors import ConfigurationError, Corrupted, InvalidRequest, StorageError
from eventlog.log import Log, LogIdentity, Record
from eventlog.merkle import Tree, leaf_hash
from eventlog.position import Position

FORMAT_VERSION = 1


class TreeHead(NamedTuple):
    """The head of one partition's tree."""

    partition: int
    size: int  # events
    root: str  # hex
    last_offset: int | None  # of the last event; None: there is none
    last_recorded_at: int | None  # milliseconds since 1970 UTC, the log's clock


class Anchor(NamedTuple):
    """What a log was at some moment."""

    store_id: str
    partitions: int
    position: Position
    taken_at: int  # milliseconds since 1970 UTC, the clock of whoever took it
    heads: tuple[TreeHead, ...]
    signed_by: bytes | None = None  # the public key; whose it is, is for the reader to say

    def content(self) -> dict[str, Any]:
        """As it is sealed."""
        return {
            "format_version": FORMAT_VERSION,
            "store_id": self.store_id,
            "partitions": self.partitions,
            "position": str(self.position),
            "taken_at": self.taken_at,
            "heads": [head._asdict() for head in self.heads],
        }

    @classmethod
    def parse(cls, text: bytes, place: str, *, trusted: bytes | None = None) -> Self:
        """From a document as `document` makes it.

        Arguments:
            place: names it in errors.
            trusted: the public key that must have signed it.

        Raises `Corrupted` or `SchemaMismatch`.
        """
        document = open_sealed(text, place, format_version=FORMAT_VERSION, trusted=trusted)
        content = document.content
        try:
            heads = tuple(TreeHead(**head) for head in content["heads"])
            position = Position.parse(content["position"])
            if not all(type(head.size) is int and head.size >= 0 and len(bytes.fromhex(head.root)) == 32 for head in heads):
                raise ValueError("a head is malformed")
            return cls(content["store_id"], content["partitions"], position, content["taken_at"], heads, document.signed_by)
        except (KeyError, TypeError, ValueError, AttributeError, InvalidRequest) as error:
            raise Corrupted(place, f"is no anchor: {error!r}") from error

    def require_of(self, identity: LogIdentity) -> None:
        """Raises `ConfigurationError` when it is another log's."""
        if (self.store_id, self.partitions) != (identity.store_id, identity.partitions):
            what = f"the anchor is of store {self.store_id} ({self.partitions} partitions), not of {identity.store_id}"
            raise ConfigurationError(what, hint="Give the anchor of this store: another store is no continuation of it.")


def take_anchor(log: Log) -> Anchor:
    """The heads of a log's trees now. Reads every event's header. Raises `Corrupted` where one cannot be read."""
    return anchor_of(log.identity, (records for records, _ in log.revisions(Position())))


def anchor_of(identity: LogIdentity, batches: Iterable[Sequence[Record]]) -> Anchor:
    """The heads of the trees over all records of a log, which come in order. Raises `Corrupted` where one cannot be read."""
    trees = {number: Tree() for number in range(identity.partitions)}
    last: dict[int, tuple[int, int]] = {}
    for records in batches:
        for record in records:
            if record.damage is not None or record.value is None:
                raise Corrupted(f"log at {record.partition}:{record.offset}", record.damage or "there is no event")
            trees[record.partition].append(leaf_hash(codec.decode_header(record.value)[1]))
            last[record.partition] = (record.offset, record.recorded_at)
    heads = [TreeHead(number, tree.size, tree.root.hex(), *last.get(number, (None, None))) for number, tree in trees.items()]
    position = Position.of({number: offset + 1 for number, (offset, _) in last.items()})
    return Anchor(identity.store_id, identity.partitions, position, int(time.time() * 1000), tuple(heads))


def document(anchor: Anchor, *, key: Ed25519PrivateKey | None) -> dict[str, Any]:
    """The anchor as a JSON document, signed where there is a key."""
    return seal(anchor.content(), key=key)


def read_anchor(path: Path, *, trusted: bytes | None = None) -> Anchor:
    """The anchor in a file. Raises `StorageError`, `Corrupted` or `SchemaMismatch`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error
    return Anchor.parse(text, str(path), trusted=trusted)
