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
SELECT
    recorded_at, actor, type, tenant, kind, checkpoint_id, revision, phase, run_id, schema_version, payload_size, event_id, event_hash,
    partition, "offset"
FROM checkpoint_history
WHERE ($checkpoint IS NULL OR checkpoint_id = $checkpoint::UUID)
    AND ($run IS NULL OR run_id = $run::UUID)
    AND ($actor IS NULL OR actor = $actor)
    AND ($kind IS NULL OR kind = $kind)
    AND ($tenant IS NULL OR tenant = $tenant)
    AND ($since IS NULL OR recorded_at >= make_timestamptz($since * 1000))
    AND ($until IS NULL OR recorded_at < make_timestamptz($until * 1000))
ORDER BY max(recorded_at) OVER (PARTITION BY partition ORDER BY "offset" ROWS UNBOUNDED PRECEDING), partition, "offset"
LIMIT $limit;
