-- The access log of an embedded store. `accesses` is only ever appended to, but that retention removes its beginning.

-- name: tables
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accesses (
    position    INTEGER PRIMARY KEY, -- in the order of appending, without gaps
    recorded_at INTEGER NOT NULL,    -- milliseconds since 1970 UTC; never decreases
    event       BLOB    NOT NULL     -- Avro single-object encoding, schemas/access_event.v1.avsc
) STRICT;

CREATE TRIGGER accesses_are_not_changed BEFORE UPDATE ON accesses
BEGIN
    SELECT raise(ABORT, 'a record of the access log is never changed');
END;

CREATE TRIGGER accesses_are_not_removed BEFORE DELETE ON accesses
WHEN old.position >= (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'start')
BEGIN
    SELECT raise(ABORT, 'only retention removes records of the access log');
END;

-- name: tail
SELECT position, recorded_at FROM accesses ORDER BY position DESC LIMIT 1;

-- name: append
INSERT INTO accesses (position, recorded_at, event) VALUES (?, ?, ?);

-- name: read
SELECT position, recorded_at, event FROM accesses WHERE position >= ? AND position < ? ORDER BY position LIMIT ?;

-- name: start
SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'start';

-- name: since
-- recorded_at never decreases, but has no index: this is asked by retention alone.
SELECT min(position) FROM accesses WHERE recorded_at >= ?;

-- name: move_start
UPDATE meta SET value = ? WHERE key = 'start';

-- name: remove
DELETE FROM accesses WHERE position < ?;
