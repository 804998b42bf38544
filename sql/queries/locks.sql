-- name: share
-- For a session: what it is held for is many transactions.
SELECT pg_advisory_lock_shared(%(lock)s);

-- name: leave
SELECT pg_advisory_unlock_shared(%(lock)s);

-- name: patience
SELECT set_config('lock_timeout', %(milliseconds)s, %(local)s);

-- name: exclude
SELECT pg_advisory_xact_lock(%(lock)s);
