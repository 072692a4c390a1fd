-- The embedded log. `events` is only ever appended to: a position is given once, in commit order. (A compact takes the body of a superseded
-- event that is archived; see embedded_stub.py.)

-- name: tables
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    position      INTEGER PRIMARY KEY, -- commit order, from 0, without gaps
    checkpoint_id TEXT    NOT NULL,
    revision      INTEGER NOT NULL,
    event_id      TEXT    NOT NULL,
    recorded_at   INTEGER NOT NULL,    -- milliseconds since 1970 UTC; never decreases
    checksum      INTEGER NOT NULL,    -- CRC-32C that binds the event to its row, see embedded_files.checksum
    event         BLOB    NOT NULL,    -- Avro single-object encoding, schemas/checkpoint_event.v1.avsc
    UNIQUE (checkpoint_id, revision)   -- arbitrates between processes; the only index, for each costs a commit 30 %
) STRICT;

-- name: tail
SELECT position, recorded_at FROM events ORDER BY position DESC LIMIT 1;

-- name: append
INSERT INTO events (position, checkpoint_id, revision, event_id, recorded_at, checksum, event) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: beginning
-- Of the event: SQLite reads no further than that, however large the payload is.
SELECT substr(event, 1, ?) FROM events WHERE checkpoint_id = ? ORDER BY revision DESC LIMIT 1;

-- name: place
SELECT position FROM events WHERE checkpoint_id = ? ORDER BY revision DESC LIMIT 1;

-- name: latest
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE checkpoint_id = ? ORDER BY revision DESC LIMIT 1;

-- name: revision
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE checkpoint_id = ? AND revision = ?;

-- name: as_of
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE checkpoint_id = ? AND position < ? ORDER BY revision DESC LIMIT 1;

-- name: history
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE checkpoint_id = ? AND revision > ? AND position < ? ORDER BY revision LIMIT ?;

-- name: by_event_id
-- Newest first: who asks wants to know what became of a recent event. A miss reads the table's leaf pages, not the payloads.
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE event_id = ? ORDER BY position DESC LIMIT 1;

-- name: read
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE position >= ? AND position < ? ORDER BY position LIMIT ?;

-- name: recorded_at
SELECT recorded_at FROM events WHERE position = ?;

-- name: settle
INSERT INTO meta (key, value) VALUES ('settled_at', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: superseded
-- Of a stretch of positions: what a later revision follows, is old enough, and is not a stub yet.
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events AS e
WHERE position BETWEEN ? AND ? AND recorded_at < ? AND substr(event, 1, 2) <> x'c302'
    AND EXISTS (SELECT 1 FROM events AS later WHERE later.checkpoint_id = e.checkpoint_id AND later.revision > e.revision)
ORDER BY position;

-- name: replace
UPDATE events SET event = ?, checksum = ? WHERE position = ? AND checksum = ?;

-- name: note
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: noted
SELECT value FROM meta WHERE key = ?;

-- name: forget
DELETE FROM meta WHERE key = ?;
