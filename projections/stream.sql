-- name: since
-- Zone maps narrow the scan: rows lie in the order of the log.
SELECT partition, "offset", recorded_at, checkpoint_id::VARCHAR, revision, stored_size
FROM revisions
WHERE partition = $partition AND "offset" >= $start AND "offset" < $end
ORDER BY "offset"
LIMIT $limit;

-- name: gaps_within
SELECT partition, "offset", checkpoint_id::VARCHAR, first_revision, last_revision, reason
FROM gaps
WHERE partition = $partition AND "offset" BETWEEN $first AND $last
ORDER BY "offset";

-- name: oldest_behind
SELECT min(recorded_at)
FROM revisions
LEFT JOIN (SELECT unnest($partitions::INTEGER[]) AS partition, unnest($offsets::BIGINT[]) AS next_offset) AS bounds USING (partition)
WHERE "offset" >= coalesce(bounds.next_offset, 0);
