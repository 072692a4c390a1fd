-- title: Access
-- answers: Who read or wrote what, when, as whom, and whether it was allowed.
-- parameter checkpoint uuid: only accesses to this checkpoint
-- parameter revision integer: only accesses to this revision
-- parameter subject text: only what this subject did
-- parameter tenant text: only this tenant
-- parameter action text: only this action, such as load
-- parameter outcome text: only this outcome: allowed, refused, failed or absent
-- parameter since time: at or after, milliseconds since 1970 UTC
-- parameter until time: before, milliseconds since 1970 UTC
-- parameter limit integer: rows at most
-- The order is the access log's own. A write is recorded before it is made; whether it was, the audit report shows by its event id.
SELECT
    try(make_timestamptz("at" * 1000)) AS "at", subject, roles, tenant, action, outcome, checkpoint_id, revision, last_revision, event_id,
    target, items, position, reason, detail, session, number, partition, "offset"
FROM access
WHERE ($checkpoint IS NULL OR checkpoint_id = $checkpoint::UUID)
    AND ($revision IS NULL OR $revision BETWEEN revision AND coalesce(last_revision, revision))
    AND ($subject IS NULL OR subject = $subject)
    AND ($tenant IS NULL OR tenant = $tenant)
    AND ($action IS NULL OR action = $action)
    AND ($outcome IS NULL OR outcome = $outcome)
    AND ($since IS NULL OR "at" >= $since)
    AND ($until IS NULL OR "at" < $until)
ORDER BY partition, "offset"
LIMIT $limit;
