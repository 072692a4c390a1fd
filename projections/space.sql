-- name: file
SELECT block_size * total_blocks
FROM pragma_database_size()
WHERE database_name = current_database();

-- name: used
-- Bytes of events, and revisions.
SELECT
    (
        (SELECT coalesce(sum(octet_length(event)), 0) FROM heads)
        + (SELECT coalesce(sum(octet_length(event)), 0) FROM unsettled)
        + (SELECT coalesce(sum(octet_length(event)), 0) FROM superseded)
    )::BIGINT,
    (SELECT count(*) FROM revisions);
