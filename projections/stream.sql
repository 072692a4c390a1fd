-- name: since
-- Zone maps narrow the scan: rows lie in the order of the log.
SELECT partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, stored_size
FROM revisions
WHERE partition = $partition AND "offset" >= $start AND "offset" < $end
ORDER BY "offset"
LIMIT $limit;
