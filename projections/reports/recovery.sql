-- title: Recovery
-- answers: Which runs of agents and workflows are in flight or waiting, and since when, the oldest first.
-- parameter tenant text: only this tenant
-- parameter kind text: only this kind
-- parameter older_than time: in flight or waiting since before, milliseconds since 1970 UTC
-- parameter limit integer: rows at most
-- The phases are those of docs/payloads.md. `since` is the log's clock of the first revision behind the last one in another phase.
WITH unfinished AS (
    SELECT unnest(['turn_in_flight', 'step_in_flight', 'parallel_in_flight', 'race_in_flight', 'waiting']) AS phase
),
open_runs AS (
    SELECT * EXCLUDE (event)
    FROM heads
    WHERE kind IN ('eventlog.agent', 'eventlog.workflow')
        AND phase IN (SELECT phase FROM unfinished)
        AND type <> 'DELETED'
        AND ($tenant IS NULL OR tenant = $tenant)
        AND ($kind IS NULL OR kind = $kind)
),
finished AS (
    SELECT checkpoint_id, max(revision) AS revision
    FROM revisions
    SEMI JOIN open_runs USING (checkpoint_id)
    WHERE phase IS NULL OR phase NOT IN (SELECT phase FROM unfinished)
    GROUP BY checkpoint_id
),
begun AS (
    SELECT r.checkpoint_id, min(r.recorded_at) AS recorded_at
    FROM revisions r
    SEMI JOIN open_runs o ON o.checkpoint_id = r.checkpoint_id
    LEFT JOIN finished f ON f.checkpoint_id = r.checkpoint_id
    WHERE r.revision > coalesce(f.revision, -1)
    GROUP BY r.checkpoint_id
)
SELECT
    try(make_timestamptz(begun.recorded_at * 1000)) AS since, try(make_timestamptz(o.recorded_at * 1000)) AS recorded_at, o.tenant, o.kind,
    o.phase, o.checkpoint_id, o.revision, o.run_id, o.actor, o.partition, o."offset"
FROM open_runs o
JOIN begun ON begun.checkpoint_id = o.checkpoint_id
WHERE $older_than IS NULL OR begun.recorded_at < $older_than
ORDER BY begun.recorded_at, o.checkpoint_id
LIMIT $limit;
