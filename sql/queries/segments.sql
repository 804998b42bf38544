-- name: add
INSERT INTO rag.segments (tenant_id, scope, analyzer, chunks, terms, removed_chunks, removed_terms, added, removed)
VALUES (%(tenant)s, %(scope)s, %(analyzer)s, %(chunks)s, %(terms)s, %(removed_chunks)s, %(removed_terms)s, %(added)s,
        %(removed)s)
RETURNING segment_id;

-- name: copy_postings
COPY rag.postings (segment_id, term, chunks, removed, entries) FROM STDIN (FORMAT binary);

-- name: lock_merge
-- One merger at a time per tenant and scope; it ends with the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended(%(tenant)s || chr(31) || coalesce(%(scope)s, ''), 5));

-- name: sizes
SELECT segment_id, tenant_id, scope, chunks, removed_chunks FROM rag.segments ORDER BY tenant_id, scope, segment_id;

-- name: to_merge
SELECT segment_id, added, removed
FROM rag.segments
WHERE segment_id = ANY (%(segments)s)
ORDER BY segment_id;

-- name: postings
SELECT term, removed, entries FROM rag.postings WHERE segment_id = ANY (%(segments)s) ORDER BY term, segment_id;

-- name: delete
DELETE FROM rag.segments WHERE segment_id = ANY (%(segments)s);

-- name: outdated
-- Postings that another analyzer made, and chunks from before there were postings.
SELECT EXISTS (SELECT FROM rag.segments WHERE analyzer <> %(analyzer)s)
    OR (NOT EXISTS (SELECT FROM rag.segments) AND EXISTS (SELECT FROM rag.chunks));

-- name: lock_all
-- Writers wait, searches do not.
LOCK TABLE rag.segments IN SHARE ROW EXCLUSIVE MODE;

-- name: clear
TRUNCATE rag.segments, rag.postings;

-- name: all_chunks
SELECT c.tenant_id, c.scope, c.number, c.lead, c.text FROM rag.chunks AS c ORDER BY c.tenant_id, c.scope, c.number;

-- name: visible
SELECT segment_id, chunks, terms, removed_chunks, removed_terms, removed, created_at FROM rag.segments
WHERE tenant_id = %(tenant)s AND (scope IS NULL OR scope = ANY (%(scopes)s))
ORDER BY segment_id;

-- name: holding
SELECT term, sum(chunks)::bigint, sum(removed)::bigint FROM rag.postings
WHERE segment_id = ANY (%(segments)s) AND term = ANY (%(terms)s)
GROUP BY term;

-- name: entries
SELECT term, chunks, removed, entries FROM rag.postings
WHERE segment_id = ANY (%(segments)s) AND term = ANY (%(terms)s)
ORDER BY term, segment_id;

-- name: has_accents
-- Whether any word is written with accents: the terms of those without them begin with ~.
SELECT EXISTS (SELECT FROM rag.postings WHERE segment_id = ANY (%(segments)s) AND term >= '~' AND term < chr(127));

-- name: similar_terms
-- Two letters that changed places leave a short word .27 alike. There is no index of trigrams, because every write would
-- pay for it, and few questions ask for it.
SELECT term FROM (
    SELECT term, chunks - removed AS held FROM rag.postings
    WHERE segment_id = ANY (%(segments)s)
      AND char_length(term) BETWEEN %(least)s AND %(most)s
      AND (%(everywhere)s OR (term >= %(first)s AND term < %(after)s))
    LIMIT %(compared)s
) AS compared
WHERE similarity(term, %(term)s) >= 0.2
GROUP BY term
HAVING sum(held) > 0
ORDER BY similarity(term, %(term)s) DESC, term
LIMIT 20;
