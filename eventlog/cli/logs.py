"""The log of a command, on stderr beside its errors: off unless somebody asks for it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@contextmanager
def begin_logging(log_format: LogFormat | None, level: LogLevel) -> Iterator[None]:
    """Logs on stderr for the length of the block: the library's notices, and the Kafka client's warnings (at `debug` more of it)."""
    if log_format is None:
        yield
        return
    from eventlog.diagnostics import CLIENT, ROOT, JsonLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if log_format is LogFormat.JSON else logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    )
    loggers = [logging.getLogger(name) for name in (ROOT, CLIENT)]
    before = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(level.name)
    if level is LogLevel.INFO:
        loggers[-1].setLevel(logging.WARNING)  # it tells of each of its connections
    try:
        yield
    finally:
        for each, earlier in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.setLevel(earlier)
