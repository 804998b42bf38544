-- name: exists
SELECT 1 FROM pg_database WHERE datname = %(name)s;

-- name: create
CREATE DATABASE {name};
