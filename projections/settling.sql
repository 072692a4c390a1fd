-- name: due
-- The oldest unsettled events, each with the event that follows it: an unsettled one (`base_row`), or its checkpoint's head.
WITH due AS (
    SELECT rowid AS row, checkpoint_id
    FROM unsettled
    ORDER BY row
    LIMIT $rows
),
chains AS (
    SELECT rowid AS row, checkpoint_id, revision, partition, "offset", stored_size
    FROM unsettled
    WHERE checkpoint_id IN (SELECT due.checkpoint_id FROM due)
    UNION ALL
    SELECT NULL, checkpoint_id, revision, partition, "offset", stored_size
    FROM heads
    WHERE checkpoint_id IN (SELECT due.checkpoint_id FROM due)
),
followed AS (
    SELECT
        row, checkpoint_id, revision, partition, "offset", stored_size, lead(row) OVER chain AS base_row,
        lead(partition) OVER chain AS base_partition, lead("offset") OVER chain AS base, lead(revision) OVER chain AS base_revision
    FROM chains
    WINDOW chain AS (PARTITION BY checkpoint_id ORDER BY revision, "offset")
)
SELECT row, checkpoint_id::VARCHAR, revision, partition, "offset", stored_size, base_row, base_partition, base, base_revision
FROM followed
WHERE row IN (SELECT due.row FROM due)
ORDER BY row;

-- name: unsettled_events
SELECT rowid, event, form
FROM unsettled
WHERE rowid IN (SELECT unnest($rows::BIGINT[]));

-- name: head_events
SELECT checkpoint_id::VARCHAR, event, form
FROM heads
WHERE checkpoint_id IN (/* ids */);

-- name: forget
DELETE FROM unsettled
WHERE rowid BETWEEN $first AND $last;
