"""Hears everything that any logger of this process says, at DEBUG, as an application's own handlers would."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from eventlog.diagnostics import JsonLines, Notice


class Listener(logging.Handler):
    """Keeps each record, its text in both formats, and the text of all that hangs on it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.texts += [logging.Formatter().format(record), JsonLines().format(record), repr(vars(record))]

    @property
    def notices(self) -> list[logging.LogRecord]:
        """The library's own, without those of its clients, whose threads go on in other tests' stores."""
        return [each for each in self.records if hasattr(each, "event")]

    def told(self, notice: Notice) -> list[logging.LogRecord]:
        return [each for each in self.notices if vars(each)["event"] == notice.value.event]


@contextmanager
def listening() -> Iterator[Listener]:
    listener, root = Listener(), logging.getLogger()
    named = [logging.getLogger(name) for name in ("eventlog", "kafka")]
    before = [(each, each.level) for each in (root, *named)]
    root.addHandler(listener)
    for each, _ in before:
        each.setLevel(logging.DEBUG)
    try:
        yield listener
    finally:
        root.removeHandler(listener)
        for each, level in before:
            each.setLevel(level)
