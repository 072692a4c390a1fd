-- name: progress
SELECT log_id, partition, next_offset
FROM access_progress
ORDER BY partition;

-- name: forget_progress
DELETE FROM access_progress
WHERE partition = $partition;

-- name: set_progress
INSERT INTO access_progress VALUES ($log_id, $partition, $offset);

-- name: any_before
SELECT 1
FROM access
WHERE partition = $partition AND "offset" < $start
LIMIT 1;

-- name: remove_before
DELETE FROM access
WHERE partition = $partition AND "offset" < $start;

-- name: hashes
SELECT "offset", hash
FROM access
WHERE partition = $partition AND "offset" BETWEEN $first AND $last;
