-- name: enter
-- A number that no other session holds: false when this one is taken.
SELECT pg_try_advisory_lock(%(lock)s, %(run)s);

-- name: leave
SELECT pg_advisory_unlock(%(lock)s, %(run)s);

-- name: remove_dead
-- What runs have left that ended without a word.
DELETE FROM rag.embedding_claims WHERE run NOT IN (
    SELECT objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND classid = %(lock)s::bigint::oid AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
);

-- name: take
-- Those of the texts that nobody else has claimed, and what of our own is done is given up. `claimed_at <= now()`: who has
-- claimed since this statement began lives, even if its lock was not there when we looked. In the order of the hashes, so
-- that two runs never wait for each other in a circle.
WITH done AS (
    DELETE FROM rag.embedding_claims
    WHERE space_id = %(space)s AND run = %(run)s AND text_hash = ANY (%(done)b)
), living AS MATERIALIZED (
    SELECT objid::bigint AS run FROM pg_locks
    WHERE locktype = 'advisory' AND classid = %(lock)s::bigint::oid AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
INSERT INTO rag.embedding_claims AS present (space_id, text_hash, run, claimed_at)
SELECT DISTINCT %(space)s::integer, text_hash, %(run)s::integer, now()
FROM unnest(%(hashes)b::uuid[]) AS given (text_hash) ORDER BY text_hash
ON CONFLICT (space_id, text_hash) DO UPDATE SET run = excluded.run, claimed_at = excluded.claimed_at
WHERE present.run = excluded.run
   OR present.claimed_at < now() - %(lease)s::interval
   OR (present.claimed_at <= now() AND NOT EXISTS (SELECT FROM living WHERE living.run = present.run))
RETURNING text_hash;

-- name: give_up
DELETE FROM rag.embedding_claims WHERE run = %(run)s;
