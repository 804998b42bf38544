-- name: record_sizes
-- A row where something changed since the last day on record: a day without one was like the day before it.
WITH present AS (
    SELECT d.tenant_id, d.repository, d.source_type, count(DISTINCT d.document_id) AS documents,
           count(c.chunk_id) AS chunks, coalesce(sum(c.tokens), 0)::bigint AS tokens
    FROM rag.documents AS d
    LEFT JOIN rag.chunks AS c USING (document_id)
    WHERE NOT d.deleted AND (%(everything)s OR (d.tenant_id, d.repository) IN (
        SELECT wanted.tenant_id, wanted.repository
        FROM unnest(%(tenants)s::text[], %(repositories)s::text[]) AS wanted (tenant_id, repository)))
    GROUP BY d.tenant_id, d.repository, d.source_type
), latest AS (
    SELECT DISTINCT ON (s.tenant_id, s.repository, s.source_type)
           s.tenant_id, s.repository, s.source_type, s.documents, s.chunks, s.tokens
    FROM rag.index_sizes AS s
    WHERE s.day <= %(day)s AND (%(everything)s OR (s.tenant_id, s.repository) IN (
        SELECT wanted.tenant_id, wanted.repository
        FROM unnest(%(tenants)s::text[], %(repositories)s::text[]) AS wanted (tenant_id, repository)))
    ORDER BY s.tenant_id, s.repository, s.source_type, s.day DESC
)
INSERT INTO rag.index_sizes (day, tenant_id, repository, source_type, documents, chunks, tokens)
SELECT %(day)s, tenant_id, repository, source_type, coalesce(p.documents, 0), coalesce(p.chunks, 0),
       coalesce(p.tokens, 0)
FROM present AS p
FULL JOIN latest AS l USING (tenant_id, repository, source_type)
WHERE (coalesce(p.documents, 0), coalesce(p.chunks, 0), coalesce(p.tokens, 0))
   IS DISTINCT FROM (coalesce(l.documents, 0), coalesce(l.chunks, 0), coalesce(l.tokens, 0))
-- In one order, so that two runs never wait for each other in a circle.
ORDER BY tenant_id, repository, source_type
ON CONFLICT (day, tenant_id, repository, source_type) DO UPDATE SET
    documents = excluded.documents, chunks = excluded.chunks, tokens = excluded.tokens;

-- name: record_growth
-- What came and went since the last size on record, on top of it.
INSERT INTO rag.index_sizes AS present (day, tenant_id, repository, source_type, documents, chunks, tokens)
SELECT %(day)s, g.tenant_id, g.repository, g.source_type, l.documents + g.documents, l.chunks + g.chunks,
       l.tokens + g.tokens
FROM unnest(%(tenants)s::text[], %(repositories)s::text[], %(source_types)s::text[], %(documents)s::bigint[],
            %(chunks)s::bigint[], %(tokens)s::bigint[])
     AS g (tenant_id, repository, source_type, documents, chunks, tokens)
CROSS JOIN LATERAL (
    SELECT s.documents, s.chunks, s.tokens FROM rag.index_sizes AS s
    WHERE s.tenant_id = g.tenant_id AND s.repository = g.repository AND s.source_type = g.source_type
      AND s.day <= %(day)s
    ORDER BY s.day DESC LIMIT 1
) AS l
WHERE (g.documents, g.chunks, g.tokens) IS DISTINCT FROM (0::bigint, 0::bigint, 0::bigint)
-- In one order, so that two runs never wait for each other in a circle.
ORDER BY g.tenant_id, g.repository, g.source_type
ON CONFLICT (day, tenant_id, repository, source_type) DO UPDATE SET
    documents = excluded.documents, chunks = excluded.chunks, tokens = excluded.tokens;

-- name: lock_sizes
-- Who adds to the last size must not miss what another run has just added; it ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('rag.index_sizes', 7));

-- name: latest_sizes
-- The last size of each source on record.
SELECT DISTINCT ON (tenant_id, repository, source_type)
       day, tenant_id, repository, source_type, documents, chunks, tokens
FROM rag.index_sizes
ORDER BY tenant_id, repository, source_type, day DESC;

-- name: sizes
-- Every size on record from a day on, and before them the last one of each source.
SELECT day, tenant_id, repository, source_type, documents, chunks, tokens FROM rag.index_sizes WHERE day >= %(first)s
UNION ALL
(SELECT DISTINCT ON (tenant_id, repository, source_type)
        day, tenant_id, repository, source_type, documents, chunks, tokens
 FROM rag.index_sizes WHERE day < %(first)s
 ORDER BY tenant_id, repository, source_type, day DESC)
ORDER BY 1, 2, 3, 4;

-- name: freshness
SELECT tenant_id, repository, source, last_item_seen, last_asked, last_indexed, complete_until, failures_waiting,
       cost_this_month_usd
FROM rag.freshness ORDER BY complete_until NULLS FIRST, tenant_id, repository, source;

-- name: quality
SELECT e.evaluated_at, e.tenant_id, e.dataset, e.labels_hash, e.space_id, s.model, e.queries, e.metrics
FROM rag.evaluations AS e
JOIN rag.embedding_spaces AS s USING (space_id)
WHERE e.evaluated_at >= %(since)s
ORDER BY e.tenant_id, e.dataset, e.evaluated_at, e.evaluation_id;

-- name: usage
SELECT (used_at AT TIME ZONE 'UTC')::date AS day, tenant_id, purpose, provider, model, sum(requests)::bigint,
       sum(tokens)::bigint, sum(cost_usd)
FROM rag.usage
WHERE used_at >= %(since)s
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1, 2, 3, 4, 5;

-- name: waiting_failures
SELECT tenant_id, repository, stage, count(*), min(first_failed_at), max(attempts),
       (array_agg(reason ORDER BY last_failed_at DESC))[1]
FROM rag.ingestion_failures
WHERE resolved_at IS NULL
GROUP BY tenant_id, repository, stage
ORDER BY 4 DESC, 1, 2, 3;

-- name: space_sizes
SELECT s.space_id, s.provider, s.model, s.dimensions, s.status, s.activated_at,
       sum(pg_total_relation_size(c.oid))::bigint AS bytes,
       sum(CASE WHEN c.relkind = 'r' THEN greatest(c.reltuples, 0) ELSE 0 END)::bigint AS vectors
FROM rag.embedding_spaces AS s
JOIN pg_class AS c ON c.oid = to_regclass('rag.vectors_' || s.space_id)
    OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('rag.vectors_' || s.space_id))
GROUP BY s.space_id
ORDER BY s.space_id;

-- name: table_sizes
-- Rows are the server's own estimate, as of its last look.
SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid)
FROM pg_class AS c
WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind = 'r'
ORDER BY pg_total_relation_size(c.oid) DESC, c.relname;

-- name: database_size
SELECT pg_database_size(current_database());
