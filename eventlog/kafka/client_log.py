"""Keeps out of every log what kafka-python would write into it: its settings, passwords included, and the bytes of requests and answers.

At DEBUG the client logs the configuration of its admin client as it was given, every record that it sends, key and value, and every
frame on the wire, those of a log-in too; at ERROR the bytes of an answer that it cannot read. An application that turns on DEBUG for
everything must not get payloads and passwords with it. A filter on a logger holds for what is logged there and not below, so each of the
client's has one.
"""

from __future__ import annotations

import logging

from eventlog.diagnostics import CLIENT


class Discreet(logging.Filter):
    """Drops DEBUG, and names the bytes of anything else by their number."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return False
        if isinstance(record.args, tuple):
            record.args = tuple(f"{len(each)} bytes" if isinstance(each, bytes | bytearray | memoryview) else each for each in record.args)
        return True


_DISCREET = Discreet()


def be_discreet() -> None:
    """Puts the filter on every logger of the client, which makes them when it is imported. Doing it twice is harmless."""
    logging.getLogger(CLIENT).addHandler(_SILENT)  # quiet unless the application wants to hear it
    for name in list(logging.Logger.manager.loggerDict):
        if name == CLIENT or name.startswith(f"{CLIENT}."):
            logging.getLogger(name).addFilter(_DISCREET)


_SILENT = logging.NullHandler()
