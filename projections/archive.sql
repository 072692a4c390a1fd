-- Sealed segments: Parquet files that hold revisions with their exact events beside columns that can be queried.

-- name: create
CREATE TABLE segment (
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    checkpoint_id VARCHAR NOT NULL,
    revision BIGINT NOT NULL,
    event_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
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
    previous_hash BLOB NOT NULL,
    event BLOB NOT NULL
);

-- name: write
-- Times as timestamps, maps as maps: for whoever opens the file with something else. Small row groups, so that one revision is found
-- without reading all.
COPY (
    SELECT
        partition, "offset", make_timestamptz(recorded_at * 1000) AS recorded_at, checkpoint_id::UUID AS checkpoint_id, revision,
        event_id::UUID AS event_id, run_id::UUID AS run_id, type, tenant, kind, schema_version, phase,
        updated_at, actor, labels::JSON::MAP(VARCHAR, VARCHAR) AS labels, usage::JSON::MAP(VARCHAR, BIGINT) AS usage,
        payload_size, stored_size, payload_digest, encoding, key_id, event_hash, previous_hash, event
    FROM segment
    ORDER BY "offset"
) TO /* file */ (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048);

-- name: read
-- In the order of the file, which has to be the order of the log: whoever reads it checks that.
SELECT
    partition, "offset", epoch_ms(recorded_at), checkpoint_id::VARCHAR, revision, event_id::VARCHAR, run_id::VARCHAR, type, tenant, kind,
    schema_version, phase, updated_at, actor, labels, usage, payload_size, stored_size, payload_digest, encoding, key_id, event_hash,
    previous_hash, event
FROM read_parquet($file)
WHERE "offset" >= $start
ORDER BY file_row_number;

-- name: pick
SELECT "offset", epoch_ms(recorded_at), event
FROM read_parquet($file)
WHERE "offset" IN (SELECT unnest($offsets::BIGINT[])) AND "offset" BETWEEN $first AND $last
ORDER BY "offset";

-- name: holds
SELECT count(*) > 0
FROM read_parquet($file)
WHERE checkpoint_id IN (SELECT unnest($ids::VARCHAR[])::UUID);
