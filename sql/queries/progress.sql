-- name: position
SELECT position, position_at FROM rag.source_progress
WHERE tenant_id = %(tenant)s AND repository = %(repository)s AND source = %(source)s AND space_id = %(space)s
  AND fingerprint = %(fingerprint)s;

-- name: advance
INSERT INTO rag.source_progress AS present
    (tenant_id, repository, source, position, position_at, fingerprint, space_id, updated_at)
VALUES (%(tenant)s, %(repository)s, %(source)s, %(position)s, %(position_at)s, %(fingerprint)s, %(space)s, %(now)s)
ON CONFLICT (tenant_id, repository, source, space_id) DO UPDATE SET
    position = excluded.position, position_at = excluded.position_at, fingerprint = excluded.fingerprint,
    updated_at = excluded.updated_at
WHERE (present.position, present.position_at, present.fingerprint)
   IS DISTINCT FROM (excluded.position, excluded.position_at, excluded.fingerprint);

-- name: note_window
-- What is behind the position of these settings need not be kept.
INSERT INTO rag.windows_read AS present
    (tenant_id, repository, source, first_day, last_day, position, position_at, fingerprint)
SELECT %(tenant)s, %(repository)s, %(source)s, %(first)s, %(last)s, %(position)s, %(position_at)s, %(fingerprint)s
WHERE NOT EXISTS (SELECT FROM rag.source_progress AS p
                  WHERE p.tenant_id = %(tenant)s AND p.repository = %(repository)s AND p.source = %(source)s
                    AND p.fingerprint = %(fingerprint)s AND p.position_at >= %(position_at)s)
ON CONFLICT (tenant_id, repository, source, first_day, last_day) DO UPDATE SET
    position = excluded.position, position_at = excluded.position_at, fingerprint = excluded.fingerprint
WHERE (present.position, present.position_at, present.fingerprint)
   IS DISTINCT FROM (excluded.position, excluded.position_at, excluded.fingerprint);

-- name: windows_read
SELECT first_day, last_day, position, position_at FROM rag.windows_read
WHERE tenant_id = %(tenant)s AND repository = %(repository)s AND source = %(source)s AND fingerprint = %(fingerprint)s
ORDER BY first_day, last_day DESC;

-- name: drop_windows
DELETE FROM rag.windows_read
WHERE tenant_id = %(tenant)s AND repository = %(repository)s AND source = %(source)s
  AND (fingerprint <> %(fingerprint)s OR position_at <= %(position_at)s);

-- name: stored_parts
SELECT tenant_id, repository, day, fingerprint FROM rag.stored_parts
WHERE space_id = %(space)s AND stage = %(stage)s AND day BETWEEN %(first)s AND %(last)s;

-- name: forget_stored
DELETE FROM rag.stored_parts WHERE space_id = %(space)s AND stage = %(stage)s;

-- name: record_part
INSERT INTO rag.stored_parts AS present (stage, tenant_id, repository, day, space_id, fingerprint, stored_at)
VALUES (%(stage)s, %(tenant)s, %(repository)s, %(day)s, %(space)s, %(fingerprint)s, %(now)s)
ON CONFLICT (space_id, stage, tenant_id, repository, day) DO UPDATE SET
    fingerprint = excluded.fingerprint, stored_at = excluded.stored_at
WHERE present.fingerprint <> excluded.fingerprint;

-- name: record_failure
INSERT INTO rag.ingestion_failures AS present
    (tenant_id, source_type, source_id, stage, repository, day, source_updated_at, reason, first_failed_at, last_failed_at)
VALUES (%(tenant)s, %(source_type)s, %(source_id)s, %(stage)s, %(repository)s, %(day)s, %(source_updated_at)s, %(reason)s,
        %(now)s, %(now)s)
ON CONFLICT (tenant_id, source_type, source_id, stage) DO UPDATE SET
    repository = excluded.repository, day = excluded.day, reason = excluded.reason,
    source_updated_at = excluded.source_updated_at,
    attempts = CASE WHEN present.resolved_at IS NULL THEN present.attempts + 1 ELSE 1 END,
    first_failed_at = CASE WHEN present.resolved_at IS NULL THEN present.first_failed_at ELSE excluded.first_failed_at END,
    last_failed_at = excluded.last_failed_at,
    -- What a person has accepted stays so, until it changes.
    resolved_at = CASE WHEN excluded.source_updated_at = present.source_updated_at AND present.accepted IS NOT NULL
                       THEN present.resolved_at END,
    accepted = CASE WHEN excluded.source_updated_at = present.source_updated_at THEN present.accepted END
WHERE excluded.source_updated_at >= present.source_updated_at
RETURNING accepted IS NOT NULL;

-- name: resolve_failures
-- What failed in these days and was not recorded again by this run has succeeded; what the index holds in a newer state
-- is settled by it.
UPDATE rag.ingestion_failures AS f SET resolved_at = %(now)s
WHERE f.resolved_at IS NULL
  AND ((f.stage = %(stage)s AND f.day BETWEEN %(first)s AND %(last)s AND f.last_failed_at < %(now)s)
       OR EXISTS (SELECT FROM rag.documents AS d
                  WHERE d.tenant_id = f.tenant_id AND d.source_type = f.source_type AND d.source_id = f.source_id
                    AND d.as_of > f.source_updated_at));

-- name: accepted_states
SELECT tenant_id, source_type, source_id, source_updated_at FROM rag.ingestion_failures
WHERE stage = %(stage)s AND accepted IS NOT NULL;

-- name: failing_days
-- A withheld removal waits for a person, not for another run.
SELECT DISTINCT day FROM rag.ingestion_failures WHERE resolved_at IS NULL AND stage <> 'reconciliation' ORDER BY day;

-- name: living_ids
SELECT source_type, source_id FROM rag.documents
WHERE tenant_id = %(tenant)s AND source_type = ANY (%(source_types)s) AND starts_with(source_id, %(prefix)s)
  AND NOT deleted;

-- name: overview
SELECT d.tenant_id, d.repository, d.source_type,
       count(*) FILTER (WHERE NOT d.deleted) AS documents,
       count(*) FILTER (WHERE d.deleted) AS tombstones,
       coalesce(sum(c.chunks) FILTER (WHERE NOT d.deleted), 0)::bigint AS chunks,
       max(d.source_updated_at) AS newest_change,
       max(d.indexed_at) AS last_indexed
FROM rag.documents AS d
LEFT JOIN (SELECT document_id, count(*) AS chunks FROM rag.chunks GROUP BY document_id) AS c USING (document_id)
GROUP BY d.tenant_id, d.repository, d.source_type
ORDER BY d.tenant_id, d.repository, d.source_type;

-- name: open_failures
SELECT tenant_id, source_type, source_id, stage, reason, attempts FROM rag.ingestion_failures
WHERE resolved_at IS NULL ORDER BY last_failed_at DESC LIMIT 100;
