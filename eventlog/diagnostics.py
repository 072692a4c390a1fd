"""What the library tells an operator, through `logging`: few notices, each with fields, none with anything that a user has stored.

A notice names its store by kind, a topic, a partition, an offset, a checkpoint's or an event's id. It never has payloads, labels, keys, an
address's settings or an error's text, which may quote any of them: of an error it names the class. docs/operations.md lists them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from time import perf_counter
from typing import NamedTuple

ROOT = "eventlog"
CLIENT = "kafka"  # whose log is kept free of payloads and passwords by `kafka/client_log.py`
FIELDS = ("store", "store_id", "topic", "partition", "offset", "checkpoint_id", "event_id", "events", "seconds", "reason")

logging.getLogger(ROOT).addHandler(logging.NullHandler())  # quiet unless the application wants to hear it


class _Kind(NamedTuple):
    event: str
    logger: str
    level: int
    says: str


class Notice(Enum):
    """Every notice there is: its name in the field `event`, its logger, its level and its words."""

    STORE_OPENED = _Kind("store_opened", "eventlog.store", logging.INFO, "a store was opened")
    STORE_CLOSED = _Kind("store_closed", "eventlog.store", logging.INFO, "a store was closed")
    OUTCOME_UNKNOWN = _Kind(
        "outcome_unknown", "eventlog.store", logging.WARNING, "a call ended without knowing whether its event is in the log"
    )
    PARTITION_TAKEN_OVER = _Kind("partition_taken_over", "eventlog.kafka", logging.INFO, "a partition was taken over")
    PARTITION_LOST = _Kind(
        "partition_lost", "eventlog.kafka", logging.WARNING, "a partition was lost, and is taken over again when it is needed"
    )
    TAIL_INTERRUPTED = _Kind("tail_interrupted", "eventlog.kafka", logging.WARNING, "the topic cannot be read; it is tried again")
    TAIL_RESUMED = _Kind("tail_resumed", "eventlog.kafka", logging.INFO, "the topic is read again")
    TAIL_STOPPED = _Kind("tail_stopped", "eventlog.kafka", logging.ERROR, "the store has stopped following its topic: open it anew")
    QUARANTINED = _Kind("quarantined", "eventlog.projection", logging.WARNING, "records break the rules; `eventlog doctor` says why")
    REBUILD_BEGUN = _Kind("rebuild_begun", "eventlog.projection", logging.INFO, "a projection is made anew")
    REBUILD_ENDED = _Kind("rebuild_ended", "eventlog.projection", logging.INFO, "a projection was made anew")


def tell(
    notice: Notice,
    *,
    store: str,
    store_id: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
    checkpoint_id: str | None = None,
    event_id: str | None = None,
    events: int | None = None,
    seconds: float | None = None,
    reason: str | BaseException | None = None,
) -> None:
    """Logs a notice. What it may say is what it has parameters for.

    Arguments:
        store: the kind of its log.
        reason: words of this library, or an error, of which only the class is named.
    """
    kind = notice.value
    logger = logging.getLogger(kind.logger)
    if not logger.isEnabledFor(kind.level):
        return
    given = {
        "store": store,
        "store_id": store_id,
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "checkpoint_id": checkpoint_id,
        "event_id": event_id,
        "events": events,
        "seconds": None if seconds is None else round(seconds, 3),
        "reason": type(reason).__name__ if isinstance(reason, BaseException) else reason,
    }
    fields = {name: value for name, value in given.items() if value is not None}
    text = " ".join(f"{name}={value}" for name, value in fields.items())
    logger.log(kind.level, "%s: %s", kind.says, text, extra={"event": kind.event, **fields})


@contextmanager
def told_rebuild(store: str) -> Iterator[None]:
    """Tells when a projection begins to be made anew, and when it is."""
    begun = perf_counter()
    tell(Notice.REBUILD_BEGUN, store=store)
    yield
    tell(Notice.REBUILD_ENDED, store=store, seconds=perf_counter() - begun)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and a notice's fields."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: vars(record)[name] for name in ("event", *FIELDS) if name in vars(record)}
        return json.dumps(line, ensure_ascii=False, default=str)
