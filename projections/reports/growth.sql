-- title: Growth
-- answers: How many revisions of each kind were committed on each day, and how large they are.
-- parameter kind text: only this kind
-- parameter tenant text: only this tenant
-- parameter since time: recorded at or after, milliseconds since 1970 UTC
-- parameter until time: recorded before, milliseconds since 1970 UTC
-- Days are UTC, by the log's clock. A revision counts under the kind that it was committed with; deletions count too.
SELECT
    make_timestamptz(recorded_at // 86400000 * 86400000000)::DATE AS day,
    kind,
    count(*) AS revisions,
    count(DISTINCT checkpoint_id) AS checkpoints,
    count(*) FILTER (revision = 0 OR type = 'IMPORTED') AS started,
    count(*) FILTER (type = 'DELETED') AS deleted,
    sum(payload_size)::BIGINT AS payload_bytes,
    sum(stored_size)::BIGINT AS stored_bytes
FROM revisions
WHERE ($kind IS NULL OR kind = $kind)
    AND ($tenant IS NULL OR tenant = $tenant)
    AND ($since IS NULL OR recorded_at >= $since)
    AND ($until IS NULL OR recorded_at < $until)
GROUP BY recorded_at // 86400000, kind
ORDER BY day, kind;
