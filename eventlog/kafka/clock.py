"""The log's clock, as far as a process can know it: the broker's, which nobody can ask for the time."""

from __future__ import annotations

import time

# The cleaner goes by the broker's clock, this process by its own: they may differ by up to a tenth of the hold (17 hours of 7 days).
_CLOCKS_DIFFER = 10


class LogClock:
    """Says since when compaction may have removed records. Safe to share between threads: `heard` is called by one alone."""

    def __init__(self, *, hold_ms: int) -> None:
        self._hold_ms = hold_ms
        self._newest = 0

    def heard(self, recorded_at: int) -> None:
        """A record of the log has this time (milliseconds): by the log's clock it is at least that late."""
        self._newest = max(self._newest, recorded_at)

    def compacted_before(self) -> int:
        """Milliseconds: what was recorded earlier may have outlived the topic's hold, and so may stand behind a gap.

        A gap that was taken for the work of a foreign writer would make a good checkpoint read-only; so this process's clock is not trusted
        to be right when the log shows that it is behind, and is granted some difference in a log that is quiet.
        """
        now = max(int(time.time() * 1000), self._newest)
        return now - self._hold_ms + self._hold_ms // _CLOCKS_DIFFER
