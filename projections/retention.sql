-- name: candidates
-- Everything that is not deleted, in the log's order, with the size of all its revisions. labels as JSON text: a MAP costs 2 microseconds a row.
WITH sizes AS (
    SELECT checkpoint_id, count(*) AS revisions, sum(stored_size)::BIGINT AS stored_bytes
    FROM revisions
    WHERE $tenant IS NULL OR tenant = $tenant
    GROUP BY checkpoint_id
)
SELECT
    h.checkpoint_id::VARCHAR, h.partition, h."offset", h.recorded_at, h.revision, h.run_id::VARCHAR, h.tenant, h.kind, h.phase, h.labels,
    sizes.revisions, sizes.stored_bytes
FROM (SELECT * EXCLUDE (event) FROM heads WHERE type <> 'DELETED' AND tenant <> $without AND ($tenant IS NULL OR tenant = $tenant)) h
JOIN sizes ON sizes.checkpoint_id = h.checkpoint_id
ORDER BY h.partition, h."offset";

-- name: borne
-- Who bears a label, or has borne it in any revision. A key needs no escape in JSON, so most rows need not be parsed.
SELECT DISTINCT checkpoint_id::VARCHAR
FROM revisions
WHERE contains(labels, $key) AND (labels::JSON::MAP(VARCHAR, VARCHAR))[$key] = $value;

-- name: kinds
-- Of these checkpoints, how many there are by tenant and kind.
SELECT tenant, kind, count(*)
FROM heads
WHERE checkpoint_id IN (SELECT unnest($ids::VARCHAR[])::UUID) AND ($tenant IS NULL OR tenant = $tenant)
GROUP BY ALL
ORDER BY ALL;

-- name: covered
-- What a hold lies on: each checkpoint, and whether it is deleted.
SELECT checkpoint_id::VARCHAR, type = 'DELETED'
FROM heads
WHERE tenant <> $without
    AND ($tenant IS NULL OR tenant = $tenant)
    AND ($checkpoint_id IS NULL OR checkpoint_id = $checkpoint_id::UUID)
    AND ($run_id IS NULL OR run_id = $run_id::UUID)
    AND (
        $key IS NULL
        OR checkpoint_id IN (
            SELECT r.checkpoint_id
            FROM revisions r
            WHERE contains(r.labels, $key) AND (r.labels::JSON::MAP(VARCHAR, VARCHAR))[$key] = $value
        )
    )
ORDER BY checkpoint_id;
