-- title: Retention
-- answers: What is held, how old, how big and in which phase, by tenant and kind.
-- parameter tenant text: only this tenant
-- parameter kind text: only this kind
-- A checkpoint counts under the kind and phase that it has now, with all its revisions. Oldest and newest are of revisions;
-- idle_since is when the checkpoint that has been left alone longest was last written.
WITH held AS (
    SELECT
        checkpoint_id, count(*) AS revisions, min(recorded_at) AS oldest, max(recorded_at) AS newest, sum(payload_size) AS payload_bytes,
        sum(stored_size) AS stored_bytes
    FROM revisions
    WHERE $tenant IS NULL OR tenant = $tenant
    GROUP BY checkpoint_id
)
SELECT
    heads.tenant,
    heads.kind,
    heads.phase,
    heads.type = 'DELETED' AS deleted,
    count(*) AS checkpoints,
    sum(held.revisions)::BIGINT AS revisions,
    sum(held.payload_bytes)::BIGINT AS payload_bytes,
    sum(held.stored_bytes)::BIGINT AS stored_bytes,
    make_timestamptz(min(held.oldest) * 1000) AS oldest,
    make_timestamptz(max(held.newest) * 1000) AS newest,
    make_timestamptz(min(heads.recorded_at) * 1000) AS idle_since
FROM heads
JOIN held ON held.checkpoint_id = heads.checkpoint_id
WHERE ($tenant IS NULL OR heads.tenant = $tenant) AND ($kind IS NULL OR heads.kind = $kind)
GROUP BY ALL
ORDER BY heads.tenant, heads.kind, heads.phase NULLS LAST, deleted;
