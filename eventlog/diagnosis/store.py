"""An open store: clocks, runs that nobody resumes, the snapshot that other processes start from."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from eventlog.diagnosis.check import Check, State, lasting
from eventlog.embedded_files import LOG_FILE
from eventlog.projection_files import SNAPSHOT_FILE

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore

MOST_SKEW = timedelta(seconds=5)
OLDEST_RUN = timedelta(days=1)
OLDEST_SNAPSHOT = 7 * 86_400.0  # seconds; a process that comes second reads what is younger from the log
_MOST_RUNS = 10_000


def clock(store: CheckpointStore) -> Check:
    """The log's clock against this machine's. An event of the future shows that one of the two is wrong; nothing shows the opposite."""
    ((newest,),) = store.catalog.sql("SELECT max(recorded_at) FROM checkpoint_history").rows
    if newest is None:
        return Check("clock", State.OK, "no event to compare with")
    ahead = newest.astimezone(UTC) - datetime.now(UTC)
    if ahead > MOST_SKEW:
        advice = "Have all machines, the brokers' too, set their clocks by NTP: ages of runs, leases and `--at` times are off by that much."
        return Check("clock", State.WARN, f"the newest event is of {lasting(ahead.total_seconds())} from now", advice)
    return Check("clock", State.OK, f"the newest event was recorded {lasting(max(0.0, -ahead.total_seconds()))} ago")


def runs(store: CheckpointStore) -> Check:
    """Runs that have been in flight for longer than anybody would take. Those that wait have asked for it."""
    table = store.catalog.report("recovery", {"limit": _MOST_RUNS})
    open_runs = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    in_flight = [each for each in open_runs if each["phase"] != "waiting"]
    before = datetime.now(UTC) - OLDEST_RUN
    old = [each for each in in_flight if each["since"] is not None and each["since"] < before]
    some = "at least " if len(table.rows) == _MOST_RUNS else ""
    counted = f"{some}{len(in_flight)} in flight, {len(open_runs) - len(in_flight)} waiting"
    if old:
        advice = "`eventlog recovery list --older-than 24h` names them: resume them, or decide about each by `eventlog recovery resolve`."
        first = old[0]["checkpoint_id"]
        return Check("runs", State.WARN, f"{counted}; {len(old)} in flight for more than a day, the oldest {first}", advice)
    return Check("runs", State.OK, counted)


def snapshot(directory: Path) -> Check:
    """What a second process starts its reports from. It is written whenever the projection's owner closes the store."""
    try:
        written = (directory / SNAPSHOT_FILE).stat().st_mtime
    except FileNotFoundError:
        return Check("snapshot", State.OK, "none yet: it is made when a store that was asked for a report is closed")
    age = time.time() - written
    changed = max((path.stat().st_mtime for path in (directory / LOG_FILE, directory / f"{LOG_FILE}-wal") if path.exists()), default=0.0)
    if age > OLDEST_SNAPSHOT and changed > written:
        advice = "Restart the process that has had the store open since then: closing it writes a new one. Reports of others start faster."
        return Check("snapshot", State.WARN, f"{lasting(age)} old, and the log has changed since", advice)
    return Check("snapshot", State.OK, f"{lasting(max(0.0, age))} old")
