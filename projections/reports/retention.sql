-- title: Retention
-- answers: What is there, how old, how big and in which phase, by tenant and kind, and how much of it legal holds keep.
-- parameter tenant text: only this tenant
-- parameter kind text: only this kind
-- A checkpoint counts under the kind and phase that it has now, with all its revisions. Oldest and newest are of revisions;
-- idle_since is when the checkpoint that has been left alone longest was last written. A hold says in its labels what it lies on.
WITH holds AS (
    SELECT labels::JSON::MAP(VARCHAR, VARCHAR) AS target
    FROM heads
    WHERE tenant = 'eventlog.retention' AND kind = 'eventlog.hold' AND phase <> 'released'
),
on_hold AS (
    SELECT DISTINCT r.checkpoint_id
    FROM revisions r
    JOIN holds ON r.tenant <> 'eventlog.retention' AND (target['tenant'] IS NULL OR r.tenant = target['tenant'])
        AND CASE target['by']
            WHEN 'checkpoint' THEN r.checkpoint_id = try_cast(target['value'] AS UUID)
            WHEN 'run' THEN r.run_id = try_cast(target['value'] AS UUID)
            WHEN 'tenant' THEN r.tenant = target['value']
            WHEN 'label' THEN contains(r.labels, target['key'])
                AND (r.labels::JSON::MAP(VARCHAR, VARCHAR))[target['key']] = target['value']
        END
),
kept AS (
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
    count(*) FILTER (heads.checkpoint_id IN (SELECT on_hold.checkpoint_id FROM on_hold)) AS on_hold,
    sum(kept.revisions)::BIGINT AS revisions,
    sum(kept.payload_bytes)::BIGINT AS payload_bytes,
    sum(kept.stored_bytes)::BIGINT AS stored_bytes,
    make_timestamptz(min(kept.oldest) * 1000) AS oldest,
    make_timestamptz(max(kept.newest) * 1000) AS newest,
    make_timestamptz(min(heads.recorded_at) * 1000) AS idle_since
FROM heads
JOIN kept ON kept.checkpoint_id = heads.checkpoint_id
WHERE ($tenant IS NULL OR heads.tenant = $tenant) AND ($kind IS NULL OR heads.kind = $kind)
GROUP BY ALL
ORDER BY heads.tenant, heads.kind, heads.phase NULLS LAST, deleted;
