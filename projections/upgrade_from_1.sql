-- From format 1, in which `revisions` held every event, and `heads` the latest ones once more.
-- Rows were appended in the order of the log, and are copied in it.

CREATE TABLE unsettled (
    checkpoint_id UUID NOT NULL,
    revision BIGINT NOT NULL,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    stored_size BIGINT NOT NULL,
    event BLOB USING COMPRESSION 'uncompressed',
    form TINYINT NOT NULL
);

CREATE TABLE superseded (
    checkpoint_id UUID NOT NULL,
    revision BIGINT NOT NULL,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    base BIGINT,
    event BLOB USING COMPRESSION 'uncompressed',
    form TINYINT NOT NULL
);

INSERT INTO unsettled
SELECT checkpoint_id, revision, partition, "offset", stored_size, event, 0
FROM revisions
WHERE event IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM heads
        WHERE heads.checkpoint_id = revisions.checkpoint_id
            AND heads.partition = revisions.partition
            AND heads."offset" = revisions."offset"
    );

ALTER TABLE revisions DROP COLUMN event;

ALTER TABLE heads ADD COLUMN form TINYINT DEFAULT 0;

UPDATE meta
SET format_version = 2;
