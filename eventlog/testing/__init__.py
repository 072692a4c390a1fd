"""Proof for checkpoint stores, ours or another's: recorded histories, a checker of them, a reference store, a conformance suite.

docs/testing-a-store.md shows how. The suite is `eventlog.testing.suite`; it alone needs pytest: `eventlog-checkpoints[testing]`.
"""

from eventlog.testing.checker import check
from eventlog.testing.history import Action, FinalLog, LogEntry, Mode, Operation, Outcome, Removed
from eventlog.testing.journal import FileJournal, Journal, MemoryJournal, RecordedHistory
from eventlog.testing.recorder import Recorder, log_of
from eventlog.testing.recorder_aio import AsyncRecorder
from eventlog.testing.verdict import Rule, Summary, Verdict, Violation

__all__ = [
    "Action",
    "AsyncRecorder",
    "FileJournal",
    "FinalLog",
    "Journal",
    "LogEntry",
    "MemoryJournal",
    "Mode",
    "Operation",
    "Outcome",
    "RecordedHistory",
    "Recorder",
    "Removed",
    "Rule",
    "Summary",
    "Verdict",
    "Violation",
    "check",
    "log_of",
]
