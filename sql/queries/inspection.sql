-- name: prepare
-- Large hashes stay in memory: what is compared are ids of all chunks there are.
SELECT set_config('work_mem', '256MB', true);

-- name: sizes
SELECT (SELECT count(*) FROM rag.documents WHERE NOT deleted), (SELECT count(*) FROM rag.documents WHERE deleted),
       (SELECT count(*) FROM rag.chunks), (SELECT count(*) FROM rag.links), (SELECT count(*) FROM rag.segments);

-- name: size_by_segments
SELECT coalesce(sum(chunks) - sum(removed_chunks), 0)::bigint FROM rag.segments;

-- name: orphan_chunks
-- As all that follow with `found`: how many rows offend, and the first of them; tables are read whole, once each.
SELECT count(*) OVER () AS found, c.chunk_id, c.document_id, d.source_id,
       CASE WHEN d.document_id IS NULL THEN 'its document is not there'
            WHEN d.deleted THEN 'its document is deleted'
            ELSE 'its document is of another tenant or scope' END AS why
FROM rag.chunks AS c
LEFT JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE d.document_id IS NULL OR d.deleted
   OR d.tenant_id <> c.tenant_id OR d.scope IS DISTINCT FROM c.scope
LIMIT 10;

-- name: orphan_links
SELECT count(*) OVER () AS found, l.document_id, l.kind, l.target, d.source_id,
       CASE WHEN d.document_id IS NULL THEN 'its document is not there'
            WHEN d.deleted THEN 'its document is deleted'
            ELSE 'its document is of another tenant or scope' END AS why
FROM rag.links AS l
LEFT JOIN rag.documents AS d ON d.document_id = l.document_id
WHERE d.document_id IS NULL OR d.deleted
   OR d.tenant_id <> l.tenant_id OR d.scope IS DISTINCT FROM l.scope
LIMIT 10;

-- name: orphan_postings
SELECT count(*) OVER () AS found, p.segment_id, p.term, 'its segment is not there' AS why
FROM rag.postings AS p
WHERE NOT EXISTS (SELECT FROM rag.segments AS s WHERE s.segment_id = p.segment_id)
LIMIT 10;

-- name: orphan_bookkeeping
-- What is remembered of spaces that are not there, vector tables that no space has, and spaces without a table.
WITH spaces AS (SELECT space_id, 'vectors_' || space_id AS vectors FROM rag.embedding_spaces),
     vector_tables AS (
         SELECT c.relname AS vectors FROM pg_class AS c
         WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
           AND starts_with(c.relname, 'vectors_')
     ),
     wrong AS (
         SELECT 'source_progress' AS what, concat_ws(' ', p.tenant_id, p.repository, p.source) AS which,
                p.space_id::text AS space
         FROM rag.source_progress AS p WHERE p.space_id NOT IN (SELECT space_id FROM spaces)
         UNION ALL
         SELECT 'stored_parts', concat_ws(' ', s.stage, s.tenant_id, s.repository, s.day), s.space_id::text
         FROM rag.stored_parts AS s WHERE s.space_id NOT IN (SELECT space_id FROM spaces)
         UNION ALL
         SELECT 'evaluations', concat_ws(' ', e.evaluation_id, e.dataset), e.space_id::text
         FROM rag.evaluations AS e WHERE e.space_id NOT IN (SELECT space_id FROM spaces)
         UNION ALL
         SELECT 'vector table', t.vectors, 'no space has this table' FROM vector_tables AS t
         WHERE t.vectors NOT IN (SELECT vectors FROM spaces)
           AND t.vectors NOT IN (SELECT vectors || '_new' FROM spaces) -- being partitioned
         UNION ALL
         SELECT 'embedding space', s.space_id::text, 'has no vector table' FROM spaces AS s
         WHERE s.vectors NOT IN (SELECT vectors FROM vector_tables)
     )
SELECT count(*) OVER () AS found, what, which, space FROM wrong LIMIT 10;

-- name: chunks_without_vector
SELECT count(*) OVER () AS found, c.chunk_id, c.text_hash, c.tenant_id, d.source_id
FROM rag.chunks AS c
LEFT JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE NOT EXISTS (SELECT FROM rag.{vectors} AS v WHERE v.text_hash = c.text_hash AND v.tenant_id = c.tenant_id)
LIMIT 10;

-- name: vectors_without_chunk
SELECT count(*) OVER () AS found, v.text_hash, v.tenant_id
FROM rag.{vectors} AS v
WHERE NOT EXISTS (SELECT FROM rag.chunks AS c WHERE c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id)
LIMIT 10;

-- name: vectors_of_wrong_length
-- Of halfvec's values pgvector refuses NaN and infinity when they are written; a row of zeros it takes, and keeps out of
-- a graph over vectors. In a comparison NaN is greater than everything, so it would be found as well.
SELECT count(*) OVER () AS found, v.text_hash, v.tenant_id, l2_norm(v.embedding) AS norm
FROM rag.{vectors} AS v
WHERE l2_norm(v.embedding) NOT BETWEEN %(least)s AND %(most)s
LIMIT 10;

-- name: vector_count
SELECT count(*) FROM rag.{vectors};

-- name: segment_sums
-- What is alive by the segments' own counts, and what really is.
SELECT count(*) OVER () AS found, tenant_id, scope, sum(living) AS living_chunks, sum(counted) AS by_segments
FROM (
    SELECT tenant_id, scope, count(*) AS living, 0::bigint AS counted FROM rag.chunks GROUP BY tenant_id, scope
    UNION ALL
    SELECT tenant_id, scope, 0, sum(chunks)::bigint - sum(removed_chunks)::bigint FROM rag.segments
    GROUP BY tenant_id, scope
) AS both_sides
GROUP BY tenant_id, scope
HAVING sum(living) <> sum(counted)
LIMIT 10;

-- name: broken_segments
-- Bytes that are not as many as the counts beside them say, and segments whose postings are gone.
WITH wrong AS (
    SELECT s.segment_id, NULL::text AS term, 'its members are not as many as it says' AS why
    FROM rag.segments AS s
    WHERE octet_length(s.added) <> 6 * s.chunks OR octet_length(s.removed) <> 6 * s.removed_chunks
    UNION ALL
    SELECT s.segment_id, NULL, 'it has no postings'
    FROM rag.segments AS s
    WHERE s.terms > 0 AND NOT EXISTS (SELECT FROM rag.postings AS p WHERE p.segment_id = s.segment_id)
    UNION ALL
    SELECT p.segment_id, p.term, 'its entries are not as many as it says'
    FROM rag.postings AS p
    WHERE octet_length(p.entries) <> 8 * p.chunks
)
SELECT count(*) OVER () AS found, segment_id, term, why FROM wrong LIMIT 10;

-- name: members
SELECT segment_id, tenant_id, scope, analyzer, added, removed FROM rag.segments ORDER BY tenant_id, scope, segment_id;

-- name: living_numbers
-- As int64 (big endian), in no order.
SELECT tenant_id, scope, string_agg(int8send(number), ''::bytea) FROM rag.chunks GROUP BY tenant_id, scope;

-- name: numbered
SELECT c.number, c.chunk_id, c.document_id, d.source_id
FROM rag.chunks AS c
LEFT JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE c.number = ANY (%(numbers)s);

-- name: worded
SELECT tenant_id, scope, number, lead, text FROM rag.chunks WHERE number = ANY (%(numbers)s) ORDER BY number;

-- name: posted
-- Entries of common words are megabytes: of these only whether they are there.
SELECT p.segment_id, p.term, CASE WHEN p.chunks <= %(most)s THEN p.entries END
FROM unnest(%(segments)s::bigint[], %(terms)s::text[]) AS asked (segment_id, term)
JOIN rag.postings AS p ON p.segment_id = asked.segment_id AND p.term = asked.term COLLATE "C";

-- name: states
SELECT document_id, as_of, observed_at, state_hash, fingerprint, deleted FROM rag.documents
WHERE document_id = ANY (%(ids)s);

-- name: chunks_held
-- Which chunks, and as what each of them is embedded.
SELECT document_id, string_agg(uuid_send(chunk_id) || uuid_send(text_hash), ''::bytea) FROM rag.chunks
WHERE document_id = ANY (%(ids)s) GROUP BY document_id;

-- name: quarantined
SELECT tenant_id, source_type, source_id, repository, day FROM rag.ingestion_failures WHERE resolved_at IS NULL;
