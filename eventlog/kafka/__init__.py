"""The log on Kafka: a compacted topic keyed by checkpoint id, one fenced writer a partition."""
