-- The documented views. Their names and columns are what reports, notebooks and people rely on.
-- Times are TIMESTAMPTZ (null where the writer's clock was beyond what a timestamp holds), hashes are hex text.

-- Every revision that the projection has seen.
CREATE VIEW checkpoint_history AS
SELECT
    checkpoint_id,
    revision,
    type,
    tenant,
    kind,
    schema_version,
    phase,
    actor,
    try(make_timestamptz(recorded_at * 1000)) AS recorded_at,
    try(make_timestamptz(updated_at * 1000)) AS updated_at,
    labels::JSON::MAP(VARCHAR, VARCHAR) AS labels,
    usage::JSON::MAP(VARCHAR, BIGINT) AS usage,
    payload_size,
    stored_size,
    encoding,
    key_id,
    run_id,
    event_id,
    lower(hex(payload_digest)) AS payload_digest,
    lower(hex(event_hash)) AS event_hash,
    lower(hex(previous_hash)) AS previous_hash,
    partition,
    "offset"
FROM revisions;

-- The latest revision of every checkpoint, the deleted ones too.
CREATE VIEW checkpoint_heads AS
SELECT
    checkpoint_id,
    revision,
    type,
    tenant,
    kind,
    schema_version,
    phase,
    actor,
    try(make_timestamptz(recorded_at * 1000)) AS recorded_at,
    try(make_timestamptz(updated_at * 1000)) AS updated_at,
    labels::JSON::MAP(VARCHAR, VARCHAR) AS labels,
    usage::JSON::MAP(VARCHAR, BIGINT) AS usage,
    payload_size,
    stored_size,
    run_id,
    event_id,
    lower(hex(event_hash)) AS event_hash,
    partition,
    "offset",
    type = 'DELETED' AS deleted,
    checkpoint_id IN (SELECT q.checkpoint_id FROM quarantine q WHERE NOT q.released AND q.checkpoint_id IS NOT NULL) AS quarantined
FROM heads;

-- Revisions that the log no longer held when the projection read it.
CREATE VIEW checkpoint_gaps AS
SELECT checkpoint_id, first_revision, last_revision, reason, partition, "offset"
FROM gaps;

-- Records that could not be accepted; `blocks` says whether one still keeps its checkpoint read-only.
CREATE VIEW quarantined_records AS
SELECT
    checkpoint_id,
    reason,
    try(make_timestamptz(recorded_at * 1000)) AS recorded_at,
    octet_length(key) AS key_size,
    octet_length(value) AS value_size,
    NOT released AS blocks,
    partition,
    "offset"
FROM quarantine;

-- Who read or wrote which revision, allowed or refused. Where several revisions were handed out in a row: the first and the last.
CREATE VIEW access_trail AS
SELECT
    try(make_timestamptz("at" * 1000)) AS "at",
    subject,
    roles,
    tenant,
    action,
    outcome,
    checkpoint_id,
    revision,
    coalesce(last_revision, revision) AS last_revision,
    event_id,
    target,
    items,
    position,
    reason,
    detail,
    session,
    number,
    lower(hex(hash)) AS hash,
    partition,
    "offset"
FROM access;

CREATE VIEW log_positions AS
SELECT partition, next_offset
FROM positions;
