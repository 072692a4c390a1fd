-- What a projection is held against its log by.

-- name: rows
SELECT
    partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, event_id::VARCHAR, run_id::VARCHAR, type, tenant, kind,
    schema_version, phase, updated_at, actor, labels::JSON::MAP(VARCHAR, VARCHAR), usage::JSON::MAP(VARCHAR, BIGINT), payload_size,
    stored_size, payload_digest, encoding, key_id, event_hash, previous_hash
FROM revisions
WHERE partition = $partition AND "offset" BETWEEN $first AND $last;

-- name: heads
SELECT checkpoint_id::VARCHAR, partition, "offset", revision, event_hash
FROM heads
WHERE $after IS NULL OR checkpoint_id > $after::UUID
ORDER BY checkpoint_id
LIMIT $limit;

-- name: unlike_revisions
-- Heads that say something else than the row of the same place.
SELECT h.checkpoint_id::VARCHAR, h.partition, h."offset"
FROM heads h
LEFT JOIN revisions r ON r.partition = h.partition AND r."offset" = h."offset" AND r.checkpoint_id = h.checkpoint_id
WHERE r.checkpoint_id IS NULL
    OR h.recorded_at <> r.recorded_at
    OR h.revision <> r.revision
    OR h.event_id <> r.event_id
    OR h.run_id <> r.run_id
    OR h.type <> r.type
    OR h.tenant <> r.tenant
    OR h.kind <> r.kind
    OR h.schema_version <> r.schema_version
    OR h.phase IS DISTINCT FROM r.phase
    OR h.updated_at <> r.updated_at
    OR h.actor IS DISTINCT FROM r.actor
    OR h.labels <> r.labels
    OR h.usage <> r.usage
    OR h.payload_size <> r.payload_size
    OR h.stored_size <> r.stored_size
    OR h.event_hash <> r.event_hash
ORDER BY h.partition, h."offset"
LIMIT $limit;

-- name: quarantined_places
SELECT partition, "offset"
FROM quarantine;
