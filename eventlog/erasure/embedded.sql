-- What an erasure does to the embedded log. Header, position and chain of every event stay.

-- name: events
SELECT position, checkpoint_id, revision, recorded_at, checksum, event
FROM events WHERE checkpoint_id = ? AND revision > ? ORDER BY revision LIMIT 200;

-- name: replace
UPDATE events SET event = ?, checksum = ? WHERE position = ? AND checksum = ?;
