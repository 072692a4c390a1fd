-- title: Audit
-- answers: Who wrote which revision of what, and when, in the log's order.
-- parameter checkpoint uuid: only this checkpoint
-- parameter run uuid: only this run
-- parameter actor text: only what this actor wrote
-- parameter kind text: only this kind
-- parameter tenant text: only this tenant
-- parameter since time: recorded at or after, milliseconds since 1970 UTC
-- parameter until time: recorded before, milliseconds since 1970 UTC
-- parameter limit integer: rows at most
-- Within a partition the order is exactly the log's; across partitions it is that of the log's clock, a running maximum.
WITH chosen AS (
    SELECT
        rowid AS row, partition, "offset",
        max(recorded_at) OVER (PARTITION BY partition ORDER BY "offset" ROWS UNBOUNDED PRECEDING) AS clock
    FROM revisions
    WHERE ($checkpoint IS NULL OR checkpoint_id = $checkpoint::UUID)
        AND ($run IS NULL OR run_id = $run::UUID)
        AND ($actor IS NULL OR actor = $actor)
        AND ($kind IS NULL OR kind = $kind)
        AND ($tenant IS NULL OR tenant = $tenant)
        AND ($since IS NULL OR recorded_at >= $since)
        AND ($until IS NULL OR recorded_at < $until)
    ORDER BY clock, partition, "offset"
    LIMIT $limit
)
SELECT
    try(make_timestamptz(r.recorded_at * 1000)) AS recorded_at, r.actor, r.type, r.tenant, r.kind, r.checkpoint_id, r.revision, r.phase,
    r.run_id, r.schema_version, r.payload_size, r.event_id, lower(hex(r.event_hash)) AS event_hash, r.partition, r."offset"
FROM revisions r
JOIN chosen ON chosen.row = r.rowid
ORDER BY chosen.clock, chosen.partition, chosen."offset";
