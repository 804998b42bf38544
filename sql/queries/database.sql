-- name: exists
SELECT 1 FROM pg_database WHERE datname = %(name)s;

-- name: create
CREATE DATABASE {name};

-- name: drop
DROP DATABASE IF EXISTS {name} WITH (FORCE);

-- name: own_number
SELECT oid::bigint FROM pg_database WHERE datname = current_database();

-- name: scratch
SELECT datname FROM pg_database WHERE starts_with(datname, %(prefix)s) ORDER BY datname;

-- name: hold
SELECT pg_advisory_lock(hashtextextended(%(name)s, 0));

-- name: try_hold
SELECT pg_try_advisory_lock(hashtextextended(%(name)s, 0));

-- name: release
SELECT pg_advisory_unlock(hashtextextended(%(name)s, 0));

-- name: limit_statements
SELECT set_config('statement_timeout', %(milliseconds)s, false);

-- name: answers
SELECT 1;

-- name: start_anew
-- What DISCARD ALL does, but for prepared statements, which the driver counts on.
SET SESSION AUTHORIZATION DEFAULT;
RESET ALL;
CLOSE ALL;
UNLISTEN *;
SELECT pg_advisory_unlock_all();
DISCARD TEMP;
DISCARD SEQUENCES;
