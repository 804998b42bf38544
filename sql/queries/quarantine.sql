-- name: items
SELECT tenant_id, source_type, source_id, stage, repository, day, reason, attempts, last_failed_at
FROM rag.ingestion_failures
WHERE resolved_at IS NULL
ORDER BY tenant_id, day, source_type, source_id, stage;

-- name: accept
-- It stays out as long as it stays as it is: a newer state that fails too opens it again.
UPDATE rag.ingestion_failures SET resolved_at = %(now)s, accepted = %(note)s
WHERE resolved_at IS NULL AND source_id = %(source_id)s
  AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s);
