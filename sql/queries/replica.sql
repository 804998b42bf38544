-- name: position
-- What is flushed is what a standby is sent. A standby of a standby is asked what it has itself.
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text;

-- name: standing
-- Whether something of what the primary had is missing here (NULL: nobody knows), for how many seconds at most, and when
-- the last transaction that is here was committed.
SELECT pg_last_wal_replay_lsn() < %(primary)s::text::pg_lsn,
       extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8,
       pg_last_xact_replay_timestamp();
