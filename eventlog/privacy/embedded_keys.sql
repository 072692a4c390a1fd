-- The wrapped data keys of an embedded store, in a file of their own: what is deleted in here must leave no bytes behind.

-- name: tables
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    checkpoint_id TEXT    NOT NULL,
    key_id        TEXT    NOT NULL,
    tenant        TEXT    NOT NULL,
    version       TEXT    NOT NULL,  -- of the tenant's key that wraps it
    wrapped       BLOB    NOT NULL,
    made_at       INTEGER NOT NULL,  -- milliseconds since 1970 UTC
    PRIMARY KEY (checkpoint_id, key_id)
) STRICT, WITHOUT ROWID;

-- name: get
SELECT checkpoint_id, key_id, tenant, version, wrapped, made_at FROM keys WHERE checkpoint_id = ? AND key_id = ?;

-- name: of
SELECT checkpoint_id, key_id, tenant, version, wrapped, made_at FROM keys WHERE checkpoint_id = ? ORDER BY made_at, key_id;

-- name: put
INSERT INTO keys (checkpoint_id, key_id, tenant, version, wrapped, made_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: replace
-- Only where it is still what it was: a key that was destroyed meanwhile does not come back.
UPDATE keys SET version = ?, wrapped = ? WHERE checkpoint_id = ? AND key_id = ? AND version = ? AND wrapped = ?;

-- name: destroy
DELETE FROM keys WHERE checkpoint_id = ?;

-- name: page
SELECT checkpoint_id, key_id, tenant, version, wrapped, made_at FROM keys
WHERE (checkpoint_id, key_id) > (?, ?) ORDER BY checkpoint_id, key_id LIMIT ?;
