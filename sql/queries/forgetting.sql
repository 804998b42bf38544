-- name: marks
SELECT tenant_id, kind, name_hash FROM rag.forgotten;

-- name: add_mark
INSERT INTO rag.forgotten (tenant_id, kind, name_hash, forgotten_at)
VALUES (%(tenant)s, %(kind)s, %(name_hash)s, %(now)s)
ON CONFLICT DO NOTHING;

-- name: drop_mark
DELETE FROM rag.forgotten WHERE tenant_id = %(tenant)s AND kind = %(kind)s AND name_hash = %(name_hash)s;

-- name: shut_out
-- Everybody who writes shares this lock; session-wide, because forgetting is many transactions.
SELECT pg_advisory_lock(%(lock)s);

-- name: let_in
SELECT pg_advisory_unlock(%(lock)s);

-- name: documents
SELECT document_id, tenant_id, repository, source_type, source_id, source_updated_at, metadata ->> 'author', path, url
FROM rag.documents;

-- name: failures
SELECT tenant_id, repository, source_type, source_id, source_updated_at, stage FROM rag.ingestion_failures;

-- name: delete_failure
DELETE FROM rag.ingestion_failures
WHERE tenant_id = %(tenant)s AND source_type = %(source_type)s AND source_id = %(source_id)s AND stage = %(stage)s;

-- name: lock_documents
-- In id order, as the writer does.
SELECT document_id FROM rag.documents WHERE document_id = ANY (%(ids)s) ORDER BY document_id FOR UPDATE;

-- name: chunks_of
SELECT tenant_id, scope, number, lead, text FROM rag.chunks WHERE document_id = ANY (%(ids)s);

-- name: delete_documents
-- Chunks and links go with them.
DELETE FROM rag.documents WHERE document_id = ANY (%(ids)s);

-- name: count_chunks
SELECT count(*) FROM rag.chunks WHERE document_id = ANY (%(ids)s);

-- name: count_links
SELECT count(*) FROM rag.links WHERE document_id = ANY (%(ids)s);

-- name: chunk_numbers
SELECT number FROM rag.chunks
WHERE tenant_id = %(tenant)s AND NOT (document_id = ANY (%(without)s)) ORDER BY number;

-- name: members
SELECT added, removed FROM rag.segments WHERE tenant_id = %(tenant)s;

-- name: entries_of_tenant
SELECT p.entries FROM rag.postings AS p JOIN rag.segments AS s USING (segment_id) WHERE s.tenant_id = %(tenant)s;

-- name: delete_empty_segments
DELETE FROM rag.segments WHERE tenant_id = %(tenant)s AND chunks = 0 AND removed_chunks = 0;

-- name: orphaned_vectors
SELECT v.text_hash FROM rag.{vectors} AS v
WHERE v.tenant_id = %(tenant)s
  AND NOT EXISTS (SELECT FROM rag.chunks AS c WHERE c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id
                    AND NOT (c.document_id = ANY (%(without)s)));

-- name: delete_vectors
DELETE FROM rag.{vectors} WHERE tenant_id = %(tenant)s AND text_hash = ANY (%(hashes)s);

-- name: count_memories
-- What the pipeline remembers of a repository, or of a whole tenant.
SELECT (SELECT count(*) FROM rag.source_progress
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.windows_read
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.stored_parts
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.checked_parts
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.source_freshness
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.index_sizes
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.usage
        WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s)),
       (SELECT count(*) FROM rag.evaluations WHERE tenant_id = %(tenant)s AND %(repository)s::text IS NULL),
       (SELECT count(*) FROM rag.api_keys WHERE tenant_id = %(tenant)s AND %(repository)s::text IS NULL),
       (SELECT count(*) FROM rag.requests_served WHERE tenant_id = %(tenant)s AND %(repository)s::text IS NULL),
       (SELECT count(*) FROM rag.index_changes WHERE tenant_id = %(tenant)s AND %(repository)s::text IS NULL);

-- name: delete_stored_parts
DELETE FROM rag.stored_parts
WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s);

-- name: delete_checked_parts
DELETE FROM rag.checked_parts
WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s);

-- name: delete_freshness
DELETE FROM rag.source_freshness
WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s);

-- name: delete_sizes
DELETE FROM rag.index_sizes
WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s);

-- name: anonymous_usage
-- What was spent stays spent; for whom is nobody's business any more.
UPDATE rag.usage SET repository = ''
WHERE tenant_id = %(tenant)s AND repository = %(repository)s;

-- name: delete_usage
DELETE FROM rag.usage WHERE tenant_id = %(tenant)s;

-- name: delete_evaluations
DELETE FROM rag.evaluations WHERE tenant_id = %(tenant)s;

-- name: delete_keys
DELETE FROM rag.api_keys WHERE tenant_id = %(tenant)s;

-- name: delete_served
DELETE FROM rag.requests_served WHERE tenant_id = %(tenant)s;

-- name: delete_changes
-- What is cached of a tenant's is dropped by it, too: it is good only as long as the count of these rows is the same.
DELETE FROM rag.index_changes WHERE tenant_id = %(tenant)s;

-- name: delete_marks_of_tenant
DELETE FROM rag.forgotten WHERE tenant_id = %(tenant)s;

-- name: part_records
SELECT stage, space_id, fingerprint FROM rag.stored_parts
WHERE tenant_id = %(tenant)s AND repository = %(repository)s AND day = %(day)s;

-- name: move_part_record
UPDATE rag.stored_parts SET fingerprint = %(fingerprint)s
WHERE stage = %(stage)s AND space_id = %(space)s AND tenant_id = %(tenant)s AND repository = %(repository)s
  AND day = %(day)s;

-- name: delete_part_record
DELETE FROM rag.stored_parts
WHERE stage = %(stage)s AND space_id = %(space)s AND tenant_id = %(tenant)s AND repository = %(repository)s
  AND day = %(day)s;

-- name: delete_windows
DELETE FROM rag.windows_read
WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s);

-- name: delete_progress
-- All that is read of these sources is looked at again by the next run.
DELETE FROM rag.source_progress
WHERE tenant_id = %(tenant)s AND (%(repository)s::text IS NULL OR repository = %(repository)s);

-- name: vacuum
VACUUM rag.documents, rag.chunks, rag.links, rag.segments, rag.postings, rag.ingestion_failures, rag.query_log, rag.feedback;

-- name: vacuum_vectors
VACUUM rag.{vectors};

-- name: remembered
-- Whose work the pipeline remembers.
SELECT tenant_id, repository FROM rag.source_progress
UNION SELECT tenant_id, repository FROM rag.windows_read
UNION SELECT tenant_id, repository FROM rag.stored_parts
UNION SELECT tenant_id, repository FROM rag.checked_parts
UNION SELECT tenant_id, repository FROM rag.source_freshness
UNION SELECT tenant_id, repository FROM rag.index_sizes
UNION SELECT tenant_id, repository FROM rag.usage
UNION SELECT tenant_id, '' FROM rag.evaluations
UNION SELECT tenant_id, '' FROM rag.api_keys
UNION SELECT tenant_id, '' FROM rag.requests_served
UNION SELECT tenant_id, '' FROM rag.query_log
UNION SELECT tenant_id, '' FROM rag.index_changes WHERE tenant_id IS NOT NULL
UNION SELECT tenant_id, '' FROM rag.forgotten;
