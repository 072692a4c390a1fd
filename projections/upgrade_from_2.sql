-- From format 2, in which nothing was ever written to `access`.

DROP VIEW access_trail;

DROP TABLE access;

CREATE TABLE access (
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    subject VARCHAR NOT NULL,
    roles VARCHAR NOT NULL,
    tenant VARCHAR,
    action VARCHAR NOT NULL,
    outcome VARCHAR NOT NULL,
    checkpoint_id UUID,
    revision BIGINT,
    last_revision BIGINT,
    event_id UUID,
    target VARCHAR,
    items BIGINT,
    position VARCHAR,
    reason VARCHAR,
    detail VARCHAR,
    session VARCHAR NOT NULL,
    number BIGINT NOT NULL,
    hash BLOB NOT NULL
);

CREATE TABLE access_progress (
    log_id VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    next_offset BIGINT NOT NULL
);

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

UPDATE meta
SET format_version = 3;
