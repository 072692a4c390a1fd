-- The physical tables. They are not the documented surface: people query the views in views.sql.
-- Times are milliseconds since 1970 UTC, as the log has them; the views turn them into timestamps.

CREATE TABLE meta (
    format_version INTEGER NOT NULL,
    store_id VARCHAR NOT NULL,
    partitions INTEGER NOT NULL,
    keep_events BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- The first offset, per partition, that has not been applied. Written only together with the rows below it.
CREATE TABLE positions (
    partition INTEGER NOT NULL,
    next_offset BIGINT NOT NULL
);

-- Append-only, in the log's order within a partition, so that zone maps on "offset" and recorded_at prune:
-- no index, which would slow every append and save 2 ms a question (measured at a million rows).
CREATE TABLE revisions (
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    checkpoint_id UUID NOT NULL,
    revision BIGINT NOT NULL,
    event_id UUID NOT NULL,
    run_id UUID NOT NULL,
    type VARCHAR NOT NULL,
    tenant VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    schema_version INTEGER NOT NULL,
    phase VARCHAR,
    updated_at BIGINT NOT NULL,
    actor VARCHAR,
    labels VARCHAR NOT NULL,
    usage VARCHAR NOT NULL,
    payload_size BIGINT NOT NULL,
    stored_size BIGINT NOT NULL,
    payload_digest BLOB NOT NULL,
    encoding VARCHAR NOT NULL,
    key_id VARCHAR,
    event_hash BLOB NOT NULL,
    previous_hash BLOB NOT NULL
);

-- The latest revision of each checkpoint, with its event, in one of the forms of forms.py (null where the log keeps the events).
-- Compressed by us: DuckDB's own choice from 20 KB on, ZSTD, costs 20 ms a lookup (measured). labels and usage are JSON text here: as MAP, a head cost twice as much to
-- write (7.1 against 3.0 microseconds a row, measured), and heads are rewritten with every batch.
CREATE TABLE heads (
    checkpoint_id UUID PRIMARY KEY,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    event_id UUID NOT NULL,
    run_id UUID NOT NULL,
    type VARCHAR NOT NULL,
    tenant VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    schema_version INTEGER NOT NULL,
    phase VARCHAR,
    updated_at BIGINT NOT NULL,
    actor VARCHAR,
    labels VARCHAR NOT NULL,
    usage VARCHAR NOT NULL,
    payload_size BIGINT NOT NULL,
    stored_size BIGINT NOT NULL,
    event_hash BLOB NOT NULL,
    event BLOB USING COMPRESSION 'uncompressed',
    form TINYINT NOT NULL
);

-- The events of revisions that are no head any more, standing for themselves, until `settling` moves them on. In the order of the log.
CREATE TABLE unsettled (
    checkpoint_id UUID NOT NULL,
    revision BIGINT NOT NULL,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    stored_size BIGINT NOT NULL,
    event BLOB USING COMPRESSION 'uncompressed',
    form TINYINT NOT NULL
);

-- The others of them, for good. `base` is the offset of the event that one is kept against, where it is.
CREATE TABLE superseded (
    checkpoint_id UUID NOT NULL,
    revision BIGINT NOT NULL,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    base BIGINT,
    event BLOB USING COMPRESSION 'uncompressed',
    form TINYINT NOT NULL
);

CREATE TABLE gaps (
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    checkpoint_id UUID NOT NULL,
    first_revision BIGINT NOT NULL,
    last_revision BIGINT NOT NULL,
    reason VARCHAR NOT NULL
);

-- A released record stays: that it once blocked its checkpoint is part of the trail.
CREATE TABLE quarantine (
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    checkpoint_id UUID,
    reason VARCHAR NOT NULL,
    key BLOB,
    value BLOB,
    released BOOLEAN NOT NULL
);

-- One row an access, from the access log: who read or wrote which revision, allowed or refused. Append-only, but for retention.
CREATE TABLE access (
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    subject VARCHAR NOT NULL,
    roles VARCHAR NOT NULL,
    tenant VARCHAR,
    action VARCHAR NOT NULL,
    outcome VARCHAR NOT NULL,
    checkpoint_id UUID,
    revision BIGINT,
    last_revision BIGINT,
    event_id UUID,
    target VARCHAR,
    items BIGINT,
    position VARCHAR,
    reason VARCHAR,
    detail VARCHAR,
    session VARCHAR NOT NULL,
    number BIGINT NOT NULL,
    hash BLOB NOT NULL
);

-- How far which access log was followed. Written only together with the rows below it.
CREATE TABLE access_progress (
    log_id VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    next_offset BIGINT NOT NULL
);
