"""The read side: DuckDB read models over the rows of a checkpoint log. Knows no Avro, no Kafka, no SQLite, nothing of eventlog."""

FLOOR = "eventlog-checkpoints"  # by which eventlog recognises that this is its own package and not another one of this name
