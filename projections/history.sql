-- name: history
-- One row a revision: where a repair appended one again, the newer record, which is the one that compaction keeps.
SELECT
    partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, event_id::VARCHAR, run_id::VARCHAR, type, tenant, kind,
    schema_version, phase, updated_at, actor, labels::JSON::MAP(VARCHAR, VARCHAR), usage::JSON::MAP(VARCHAR, BIGINT), payload_size, stored_size, payload_digest, encoding, key_id, event_hash,
    previous_hash
FROM revisions
WHERE checkpoint_id = $checkpoint_id::UUID
    AND revision > $after_revision
    AND ($partitions IS NULL OR "offset" < list_extract($offsets::BIGINT[], list_position($partitions::INTEGER[], partition)))
QUALIFY row_number() OVER (PARTITION BY revision ORDER BY "offset" DESC) = 1
ORDER BY revision
LIMIT $limit;

-- name: as_of
SELECT
    partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, event_id::VARCHAR, run_id::VARCHAR, type, tenant, kind,
    schema_version, phase, updated_at, actor, labels::JSON::MAP(VARCHAR, VARCHAR), usage::JSON::MAP(VARCHAR, BIGINT), payload_size, stored_size, payload_digest, encoding, key_id, event_hash,
    previous_hash
FROM revisions
WHERE checkpoint_id = $checkpoint_id::UUID AND partition = $partition AND "offset" < $offset
ORDER BY revision DESC, "offset" DESC
LIMIT 1;

-- name: by_event_id
SELECT
    partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, event_id::VARCHAR, run_id::VARCHAR, type, tenant, kind,
    schema_version, phase, updated_at, actor, labels::JSON::MAP(VARCHAR, VARCHAR), usage::JSON::MAP(VARCHAR, BIGINT), payload_size, stored_size, payload_digest, encoding, key_id, event_hash,
    previous_hash
FROM revisions
WHERE event_id = $event_id::UUID
ORDER BY "offset"
LIMIT 1;

-- name: by_position
SELECT
    partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, event_id::VARCHAR, run_id::VARCHAR, type, tenant, kind,
    schema_version, phase, updated_at, actor, labels::JSON::MAP(VARCHAR, VARCHAR), usage::JSON::MAP(VARCHAR, BIGINT), payload_size, stored_size, payload_digest, encoding, key_id, event_hash,
    previous_hash
FROM revisions
WHERE partition = $partition AND "offset" = $offset;

-- name: gap_across
-- The gap that a position falls into: noticed at or after it, with no known revision between the gap's start and the position.
SELECT g.checkpoint_id::VARCHAR, g.first_revision, g.last_revision, g.reason
FROM gaps g
WHERE g.checkpoint_id = $checkpoint_id::UUID
    AND g.partition = $partition
    AND g."offset" >= $offset
    AND g.reason <> 'import'
    AND NOT EXISTS (
        SELECT 1
        FROM revisions r
        WHERE r.checkpoint_id = g.checkpoint_id AND r.revision < g.first_revision AND r."offset" >= $offset
    )
ORDER BY g."offset"
LIMIT 1;

-- name: position_at
-- The log's clock is the running maximum of recorded_at within a partition; it first exceeds a time where recorded_at first does.
-- Quarantined records are part of the log and of its clock.
SELECT positions.partition, coalesce(min(later."offset"), any_value(positions.next_offset))
FROM positions
LEFT JOIN (
    SELECT partition, "offset" FROM revisions WHERE recorded_at > $time
    UNION ALL
    SELECT partition, "offset" FROM quarantine WHERE recorded_at > $time
) AS later ON later.partition = positions.partition
GROUP BY positions.partition;

-- name: gaps
SELECT partition, "offset", checkpoint_id::VARCHAR, first_revision, last_revision, reason
FROM gaps
WHERE checkpoint_id = $checkpoint_id::UUID
ORDER BY first_revision, "offset";

-- name: any_gap
SELECT 1 FROM gaps WHERE reason <> 'import' LIMIT 1;
