-- name: selected
-- By any revision, not the latest alone: a label may have been taken off since. What is null does not limit.
SELECT DISTINCT checkpoint_id::VARCHAR
FROM revisions
WHERE ($run_id IS NULL OR run_id = $run_id::UUID)
    AND ($tenant IS NULL OR tenant = $tenant)
    AND ($label IS NULL OR coalesce((labels::JSON::MAP(VARCHAR, VARCHAR))[$label] = $value, false))
ORDER BY 1;

-- name: places
SELECT partition, "offset", revision
FROM revisions
WHERE checkpoint_id = $id::UUID AND type <> 'DELETED'
ORDER BY revision, "offset";

-- name: forget_superseded
DELETE FROM superseded
WHERE checkpoint_id = $id::UUID;

-- name: forget_unsettled
DELETE FROM unsettled
WHERE checkpoint_id = $id::UUID;

-- name: resize
-- A row says how large its event is as the log has it: afterwards, without its body.
UPDATE revisions
SET stored_size = sizes.stored_size
FROM (
    SELECT unnest($partitions::INTEGER[]) AS partition, unnest($offsets::BIGINT[]) AS "offset", unnest($sizes::BIGINT[]) AS stored_size
) AS sizes
WHERE revisions.checkpoint_id = $id::UUID AND revisions.partition = sizes.partition AND revisions."offset" = sizes."offset"
    AND revisions.stored_size <> sizes.stored_size;

-- name: empty_quarantine
UPDATE quarantine
SET value = NULL
WHERE checkpoint_id = $id::UUID AND value IS NOT NULL;
