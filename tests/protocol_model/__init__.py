"""The protocol of the Kafka log under every interleaving: the product's own writers on a simulated broker.

What is real here: `PartitionWriter`, `Ownership`, `Hold`, `View`, `rules`, `codec`, `interpret`. What is simulated: one partition and its
transaction coordinator (`simulated_kafka`), the client that talks to them (`simulated_client`), threads (`tasks`), the clock, and the
DuckDB file behind the view (`simulated_process`). A scheduler, Hypothesis, decides who moves next, what is lost and what comes late.

`promises` holds every answer against what became committed. `removed_steps` has one variant of the writer for each step of the protocol
that can be left out; `test_removed_steps` shows that each breaks a promise.

Environment:
    EVENTLOG_MODEL_EXAMPLES=N   runs of the model; the default is a short pass
"""
