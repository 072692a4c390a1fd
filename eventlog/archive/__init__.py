"""The archive: sealed segments of a log's events, kept ahead of compaction, and what shows that they are unchanged."""
