"""The metrics by name, and what the stores of this process report to.

Labels are bounded: the kind of log, and words of this library. Never an id, a tenant, a kind of checkpoint or anything else that an
application chooses.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog.checkpoint import Receipt
from eventlog.codec import Draft
from eventlog.diagnostics import Notice, tell
from eventlog.errors import CheckpointError, Conflict, OutcomeUnknown, SchemaMismatch
from eventlog.metrics.commit_tally import CommitTally

LOG_KINDS = ("embedded", "kafka")
_AGES = (1, 10, 60, 300, 1800, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)  # seconds

_REGISTRY = CollectorRegistry()


def registry() -> CollectorRegistry:
    """Everything that the stores of this process count, for `prometheus_client.generate_latest` or an endpoint of the application's own."""
    return _REGISTRY


_CONFLICTS = Counter(
    "eventlog_revision_conflicts", "Proposals that lost: another writer's revision stood where theirs should.", ["log"], registry=_REGISTRY
)
_UNKNOWN = Counter(
    "eventlog_unknown_outcomes", "Calls that ended without knowing whether their event was committed.", ["log"], registry=_REGISTRY
)
_TAKEOVERS = Counter("eventlog_partition_takeovers", "Partitions that this process has taken over to write.", ["log"], registry=_REGISTRY)
_MISMATCHES = Counter(
    "eventlog_schema_mismatches",
    "What this version or definition does not know: an event's bytes, or a run that was to be resumed.",
    ["log", "of"],
    registry=_REGISTRY,
)
_AMBIGUOUS = Counter(
    "eventlog_ambiguous_recoveries", "Resumes that found a run in flight: refused, or allowed to be repeated.", ["log", "then"],
    registry=_REGISTRY,
)  # fmt: skip
_DECISIONS = Counter("eventlog_decisions", "What people have decided about runs left in flight.", ["log", "choice"], registry=_REGISTRY)
_RESUME_AGE = Histogram(
    "eventlog_resume_age_seconds",
    "How long ago a run that is resumed was last written, by the clocks of both processes.",
    ["log", "run"],
    buckets=_AGES,
    registry=_REGISTRY,
)


class Backlog(NamedTuple):
    """What an open store has not caught up with; None: it is not known at the moment."""

    projection: int | None  # offsets that the projection has yet to take
    tail: int | None  # offsets of the topic that this process has yet to read
    quarantined: int | None  # checkpoints that are read-only


class Watched(Protocol):
    """An open store, as it is asked for its state when metrics are collected."""

    def backlog(self) -> Backlog:
        """Without waiting for anything but the disk."""
        ...


class StoreMetrics:
    """What the stores over one kind of log report."""

    def __init__(self, log: str) -> None:
        self.log = log
        self.commits = CommitTally()
        self._add = self.commits.add
        self._conflicts = _CONFLICTS.labels(log)
        self._unknown = _UNKNOWN.labels(log)
        self._open = weakref.WeakSet[Watched]()  # weak: a store that nobody has closed is not kept alive
        self._lock = threading.Lock()
        for of in ("event", "run"):
            _MISMATCHES.labels(log, of)  # a series is there from the start, so that its first count is an increase
        for then in ("refused", "repeated"):
            _AMBIGUOUS.labels(log, then)
        for choice in ("retry", "roll_back", "mark_failed"):
            _DECISIONS.labels(log, choice)
        for run in ("agent", "workflow"):
            _RESUME_AGE.labels(log, run)

    def answered(self, outcome: Receipt | CheckpointError, draft: Draft, seconds: float) -> None:
        """A proposal's outcome.

        Arguments:
            draft: of its event.
            seconds: how long its caller has waited.
        """
        if isinstance(outcome, Receipt):
            if not outcome.duplicate:
                self._add(seconds, draft.size)
        elif isinstance(outcome, Conflict):
            self._conflicts.inc()
        elif isinstance(outcome, OutcomeUnknown):
            self._unknown.inc()
            tell(Notice.OUTCOME_UNKNOWN, store=self.log, checkpoint_id=outcome.checkpoint_id, event_id=outcome.event_id, seconds=seconds)
        elif isinstance(outcome, SchemaMismatch):
            self.mismatched("event")

    def taken_over(self) -> None:
        """A partition was taken over."""
        _TAKEOVERS.labels(self.log).inc()

    def mismatched(self, of: str) -> None:
        """A `SchemaMismatch`: of an `event`, or of a `run`."""
        _MISMATCHES.labels(self.log, of).inc()

    def ambiguous(self, then: str) -> None:
        """A run was found in flight: `refused` or `repeated`."""
        _AMBIGUOUS.labels(self.log, then).inc()

    def decided(self, choice: str) -> None:
        """A person's decision was committed."""
        _DECISIONS.labels(self.log, choice).inc()

    def resumed(self, run: str, age: float) -> None:
        """A run (`agent` or `workflow`) was looked at to be gone on with, so many seconds after it was last written."""
        _RESUME_AGE.labels(self.log, run).observe(max(0.0, age))

    def opened(self, store: Watched) -> None:
        """From now on a store is asked for its backlog."""
        with self._lock:
            self._open.add(store)

    def closed(self, store: Watched) -> bool:
        """No longer; whether it was until now."""
        with self._lock:
            was_open = store in self._open
            self._open.discard(store)
        return was_open

    def backlogs(self) -> list[Backlog]:
        """Of every open store."""
        with self._lock:
            stores = list(self._open)
        found: list[Backlog] = []
        for each in stores:
            try:
                found.append(each.backlog())
            except CheckpointError:
                continue  # it is being closed, or cannot be read: its own callers are told, and the other stores are reported all the same
        return found


class _OnDemand(Collector):
    """What is not counted by the client library: commits, and the state of open stores."""

    def collect(self) -> Iterable[Metric]:
        appended = CounterMetricFamily("eventlog_appended_events", "Events that were committed.", labels=["log"])
        seconds = HistogramMetricFamily(
            "eventlog_commit_seconds", "How long the caller of a revision that was committed has waited.", labels=["log"]
        )
        sizes = HistogramMetricFamily("eventlog_checkpoint_size_bytes", "Events that were committed, as the log gets them.", labels=["log"])
        projection = GaugeMetricFamily(
            "eventlog_projection_lag_offsets",
            "Offsets that this process has seen, or can see, and its projection has yet to take.",
            labels=["log"],
        )
        tail = GaugeMetricFamily("eventlog_tail_lag_offsets", "Offsets of the topic that this process has yet to read.", labels=["log"])
        quarantined = GaugeMetricFamily("eventlog_quarantined_checkpoints", "Checkpoints that are read-only.", labels=["log"])
        for kind, each in _BY_KIND.items():
            times, bytes_ = each.commits.read()
            appended.add_metric([kind], times.total)
            seconds.add_metric([kind], times.buckets, times.sum)
            sizes.add_metric([kind], bytes_.buckets, bytes_.sum)
            backlogs = each.backlogs()
            for gauge, values in (
                (projection, [one.projection for one in backlogs]),
                (tail, [one.tail for one in backlogs]),
                (quarantined, [one.quarantined for one in backlogs]),
            ):
                known = [value for value in values if value is not None]
                if known:
                    gauge.add_metric([kind], sum(known))
        yield from (appended, seconds, sizes, projection, tail, quarantined)


_BY_KIND = {kind: StoreMetrics(kind) for kind in LOG_KINDS}
_TAKEOVERS.labels("kafka")  # the other log has no partitions to take
_REGISTRY.register(_OnDemand())


def metrics_of(kind: str) -> StoreMetrics:
    """Where the stores over a kind of log report: one of `LOG_KINDS`."""
    return _BY_KIND[kind]
