-- name: lock
SELECT pg_advisory_lock(%(lock)s);

-- name: ensure_table
CREATE SCHEMA IF NOT EXISTS rag;
CREATE TABLE IF NOT EXISTS rag.schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE rag.schema_migrations ENABLE ROW LEVEL SECURITY;

-- name: applied
SELECT version, checksum FROM rag.schema_migrations ORDER BY version;

-- name: record
INSERT INTO rag.schema_migrations (version, name, checksum) VALUES (%(version)s, %(name)s, %(checksum)s);

-- name: present
SELECT to_regclass('rag.schema_migrations') IS NOT NULL;

-- name: has_trigrams
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm');

-- name: create_trigrams
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
