"""What an embedded log notes of the register: how many certificates it has gone through. One that was restored from a backup lacks some."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from eventlog.embedded import EmbeddedLog
from eventlog.embedded_files import LOG_FILE, connect, translate
from eventlog.statements import named
from eventlog.store import CheckpointStore

_NOTE = "erasures"  # in meta
_SQL = named("embedded.sql")


def note_applied(store: CheckpointStore, certificates: int) -> None:
    """Notes that the log has gone through so many. Does nothing on Kafka, where the topic is not restored by its readers."""
    if not isinstance(store.log, EmbeddedLog):
        return
    path = store.log.directory / LOG_FILE
    try:
        with closing(connect(path)) as connection:
            connection.execute(_SQL["note"], (_NOTE, str(certificates)))
    except sqlite3.Error as error:
        raise translate(error, path) from error


def applied(store: CheckpointStore) -> int | None:
    """How many the log has gone through; None on Kafka."""
    if not isinstance(store.log, EmbeddedLog):
        return None
    path = store.log.directory / LOG_FILE
    try:
        with closing(connect(path)) as connection:
            row = connection.execute(_SQL["noted"], (_NOTE,)).fetchone()
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return 0 if row is None else int(row[0])
