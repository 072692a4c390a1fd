"""What a store on Kafka consists of besides its log, in a backup: wrapped data keys and accesses, a line each."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

from eventlog.address import KafkaAddress
from eventlog.backup.companions import ACCESS, KEYS
from eventlog.backup.manifest import Backup
from eventlog.errors import Corrupted, StorageError
from eventlog.kafka.access import open_access_topic
from eventlog.kafka.keys import KafkaKeys
from eventlog.kafka.keys_record import decode, encode
from eventlog.kafka.keys_topic import open_new_table
from eventlog.kafka.restoring import produce_accesses
from eventlog.position import Position
from eventlog.privacy.access_log import AccessLog, AccessMode, AccessRecord

KEY_RECORDS = "keys.jsonl"
ACCESS_RECORDS = "accesses.jsonl"
_AT_ONCE = 500

Item = TypeVar("Item")


def copy_keys(keys: KafkaKeys, folder: Path) -> None:
    """Writes every wrapped key into a folder. Raises `StorageError` or `Unavailable`."""
    _write(folder / KEY_RECORDS, (encode(key) for key in keys.all()))


def put_keys_back(backup: Backup, where: KafkaAddress, erased: Collection[str]) -> None:
    """Fills the new topic of keys, but with none of an erased checkpoint: it never gets to where it would have to be destroyed."""
    assert backup.manifest.key_source is not None
    with closing(open_new_table(where)) as table:
        table.remember(backup.manifest.key_source)
        if not backup.lacks(KEYS):
            keys = _read(backup.folder(KEYS) / KEY_RECORDS, decode)
            for some in _stretches(key for key in keys if key.checkpoint_id not in erased):
                table.put_all(some)


@contextmanager
def access_topic(where: KafkaAddress) -> Iterator[tuple[AccessLog | None, AccessMode]]:
    """The access log of a store, if it has one, and the mode that it remembers."""
    found, mode = open_access_topic(where) or (None, AccessMode.OFF)
    try:
        yield found, mode
    finally:
        if found is not None:
            found.close()


def copy_accesses(accesses: AccessLog, folder: Path) -> None:
    """Writes every access into a folder. Raises `StorageError` or `Unavailable`."""
    _write(folder / ACCESS_RECORDS, (_line(each) for records, _ in accesses.read(Position()) for each in records))


def put_accesses_back(backup: Backup, where: KafkaAddress) -> None:
    """Fills the new topic of accesses: the same bytes, times and order. Raises `Corrupted`, `StorageError` or `Unavailable`."""
    if not backup.lacks(ACCESS):
        produce_accesses(where, _stretches(_read(backup.folder(ACCESS) / ACCESS_RECORDS, _parsed)))


def _line(record: AccessRecord) -> bytes:
    return json.dumps({"recorded_at": record.recorded_at, "event": base64.b64encode(record.value).decode()}).encode()


def _parsed(line: bytes) -> tuple[int, bytes]:
    content = json.loads(line)
    return int(content["recorded_at"]), base64.b64decode(content["event"], validate=True)


def _write(path: Path, lines: Iterator[bytes]) -> None:
    try:
        with path.open("wb") as file:
            file.writelines(line + b"\n" for line in lines)
    except OSError as error:
        raise StorageError(str(path), f"cannot be written: {error.strerror}") from error


def _read(path: Path, parse: Callable[[bytes], Item]) -> Iterator[Item]:
    try:
        with path.open("rb") as file:
            yield from map(parse, file)
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupted(str(path), f"has a line that no backup writes: {error!r}") from error
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error


def _stretches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while some := list(islice(items, _AT_ONCE)):
        yield some
