-- Each in one statement, because settling moves events from table to table; newest first, so that what an event is kept against comes
-- before it.

-- name: of_checkpoint
SELECT partition, "offset", base, event, form
FROM (
    SELECT revision, partition, "offset", base, event, form
    FROM superseded
    WHERE checkpoint_id = $checkpoint_id::UUID AND revision BETWEEN $first AND $last
    UNION ALL
    SELECT revision, partition, "offset", NULL, event, form
    FROM unsettled
    WHERE checkpoint_id = $checkpoint_id::UUID AND revision BETWEEN $first AND $last
    UNION ALL
    SELECT revision, partition, "offset", NULL, event, form
    FROM heads
    WHERE checkpoint_id = $checkpoint_id::UUID AND revision BETWEEN $first AND $last
)
ORDER BY revision DESC, "offset" DESC;

-- name: of_blocks
WITH wanted AS (
    SELECT unnest($ids::VARCHAR[])::UUID AS checkpoint_id, unnest($blocks::BIGINT[]) AS block
)
SELECT partition, "offset", base, event, form
FROM (
    SELECT s.revision, s.partition, s."offset", s.base, s.event, s.form
    FROM superseded s
    JOIN wanted ON wanted.checkpoint_id = s.checkpoint_id AND wanted.block = s.revision >> $bits
    UNION ALL
    SELECT u.revision, u.partition, u."offset", NULL, u.event, u.form
    FROM unsettled u
    JOIN wanted ON wanted.checkpoint_id = u.checkpoint_id AND wanted.block = u.revision >> $bits
    UNION ALL
    SELECT h.revision, h.partition, h."offset", NULL, h.event, h.form
    FROM heads h
    JOIN wanted ON wanted.checkpoint_id = h.checkpoint_id AND wanted.block = h.revision >> $bits
)
ORDER BY revision DESC, "offset" DESC;
