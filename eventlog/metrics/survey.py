"""What a store holds that somebody should look after: runs that are in flight or wait, since when, and how many checkpoints there are.

Asked of the projection when metrics are collected: a question or two each time, so it is not part of what every process serves, but of what
one is started for (`eventlog metrics serve`, `serve_metrics(..., store=...)`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog.errors import CheckpointError

if TYPE_CHECKING:
    from eventlog.archive.margin import ArchiveMargin
    from eventlog.store import CheckpointStore

MarginOf = Callable[["CheckpointStore"], "ArchiveMargin | None"]

RUNS = {"eventlog.agent": "agent", "eventlog.workflow": "workflow"}
WAITING = "waiting"  # the phase of a run that has asked for that; all other open ones are in flight
STATES = ("in_flight", "waiting")
OLDER_THAN = (0, 60, 3600, 86_400, 7 * 86_400)  # seconds
MOST_RUNS = 100_000  # of one question; beyond it the counts stay where they are

_FAMILIES = (
    (
        "eventlog_store_readable",
        "1: the store could be asked, and its archive where it has one; 0: not, and what could not be asked is not known.",
        ["log"],
    ),
    ("eventlog_open_runs", "Runs that have been in flight, or have waited, for so many seconds.", ["log", "run", "state", "older_than"]),
    ("eventlog_oldest_run_seconds", "How long the oldest run has been in flight, or has waited.", ["log", "run", "state"]),
    ("eventlog_checkpoints", "Checkpoints in the store.", ["log", "state"]),
    ("eventlog_archive_margin_seconds", "How long compaction surely leaves what is not archived; below 0: it may be gone.", ["log"]),
    ("eventlog_archive_hold_seconds", "How long compaction surely leaves every revision: the hold that the margin is a part of.", ["log"]),
)


def families() -> list[GaugeMetricFamily]:
    """All that a survey may say, empty."""
    return [GaugeMetricFamily(name, text, labels=labels) for name, text, labels in _FAMILIES]


class Survey(Collector):
    """Asks a store. Safe to share between threads.

    Arguments:
        store: open for as long as this is asked, for all tenants.
        archive_margin: how far the archive is ahead of compaction; None, or one that says None: there is no archive, or no compaction.
    """

    def __init__(self, store: CheckpointStore, *, archive_margin: MarginOf | None = None) -> None:
        self._store = store
        self._log = store.log.kind
        self._archive_margin = archive_margin

    def describe(self) -> Iterable[Metric]:
        """What it may say, without asking: registering it asks nothing."""
        return families()

    def collect(self) -> Iterable[Metric]:
        """The store's state now. One that cannot be asked is said to be so: an error would hide every other metric of the process."""
        readable, runs, oldest, checkpoints, margin, hold = families()
        found = [readable]
        try:
            self._ask_runs(runs, oldest)
            self._ask_checkpoints(checkpoints)
            found += [runs, oldest, checkpoints]
            self._ask_archive(margin, hold)
            found += [margin, hold]
        except CheckpointError:
            readable.add_sample(readable.name, {"log": self._log}, 0)
        else:
            readable.add_sample(readable.name, {"log": self._log}, 1)
        return found

    def _ask_runs(self, runs: Metric, oldest: Metric) -> None:
        table = self._store.catalog.report("recovery", {"limit": MOST_RUNS})
        now = datetime.now(UTC)
        ages: dict[tuple[str, str], list[float]] = {(run, state): [] for run in RUNS.values() for state in STATES}
        for row in table.rows:
            found = dict(zip(table.columns, row, strict=True))
            since = found["since"]
            state = "waiting" if found["phase"] == WAITING else "in_flight"
            # A time that no timestamp holds is that of a clock beyond reason; the run is there all the same.
            ages[RUNS[found["kind"]], state].append(0.0 if since is None else max(0.0, (now - since).total_seconds()))
        for (run, state), known in ages.items():
            labels = {"log": self._log, "run": run, "state": state}
            oldest.add_sample(oldest.name, labels, max(known, default=0.0))
            for bound in OLDER_THAN:
                runs.add_sample(runs.name, {**labels, "older_than": str(bound)}, sum(age >= bound for age in known))

    def _ask_checkpoints(self, checkpoints: Metric) -> None:
        counted = Counter[bool](dict(self._store.catalog.sql("SELECT deleted, count(*) FROM checkpoint_heads GROUP BY deleted").rows))
        for deleted, state in ((False, "live"), (True, "deleted")):
            checkpoints.add_sample(checkpoints.name, {"log": self._log, "state": state}, counted[deleted])

    def _ask_archive(self, margin: Metric, hold: Metric) -> None:
        known = None if self._archive_margin is None else self._archive_margin(self._store)
        if known is not None:
            margin.add_sample(margin.name, {"log": self._log}, known.left_ms / 1000)
            hold.add_sample(hold.name, {"log": self._log}, known.hold_ms / 1000)
