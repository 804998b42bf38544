-- name: begin
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: commit
COMMIT;

-- name: enter
-- Everything below runs as the reader, who owns nothing and sees one tenant; all of it ends with the transaction.
-- Custom plans where there are filters: which of them are set decides what is fast.
SELECT set_config('role', 'rag_reader', true),
       set_config('rag.tenant_id', %(tenant)s, true),
       set_config('rag.scopes', %(scopes)s::text[]::text, true),
       set_config('plan_cache_mode', %(plans)s, true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true),
       -- How many neighbours the graph keeps in sight; of a space in partitions, each of its graphs. Among ten times as many vectors, a walk of the same width ends
       -- in the wrong neighbourhood more often: of real lines' vectors, 50 find .998 of the ten nearest of 100,000 and
       -- .944 of a million, where 200 find .988. pgvector takes no more than 1000.
       set_config('hnsw.ef_search', least(1000, ceil(%(neighbours)s::float8 * greatest(1, (
           SELECT max(c.reltuples) FROM (
               SELECT to_regclass(%(vectors)s)::oid UNION ALL
               SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(%(vectors)s)
           ) AS t (oid) JOIN pg_class AS c ON c.oid = t.oid AND c.relkind = 'r'
       ) / 100000) ^ 0.6))::int::text, true);

-- name: matching
-- The filters of a query: a condition on chunks c and documents d, put into the statements that name it.
c.tenant_id = %(tenant)s
      AND (%(repository)s::text IS NULL OR d.repository = %(repository)s)
      AND (%(source_type)s::text IS NULL OR d.source_type = %(source_type)s)
      AND (%(language)s::text IS NULL OR d.language = %(language)s)
      AND (%(path_prefix)s::text IS NULL OR starts_with(d.path, %(path_prefix)s))
      AND (%(metadata)s::jsonb IS NULL OR d.metadata @> %(metadata)s)
      AND (%(updated_from)s::date IS NULL OR d.source_updated_at >= %(updated_from)s::date AT TIME ZONE 'UTC')
      AND (%(updated_to)s::date IS NULL OR d.source_updated_at < (%(updated_to)s::date + 1) AT TIME ZONE 'UTC')

-- name: matching_numbers
-- The first of the chunks that match, as int64 (big endian), ascending.
SELECT coalesce(string_agg(int8send(number), ''::bytea ORDER BY number), ''::bytea) FROM (
    SELECT c.number FROM rag.chunks AS c
    JOIN rag.documents AS d ON d.document_id = c.document_id
    WHERE {matching}
    LIMIT %(enough)s
) AS matching;

-- name: which_match
SELECT c.number FROM rag.chunks AS c
JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE c.number = ANY (%(numbers)s) AND {matching};

-- name: exact
-- MATERIALIZED keeps the planner from walking the graph for a handful of rows.
WITH matching AS MATERIALIZED (
    SELECT c.number, c.text_hash
    FROM rag.chunks AS c
    JOIN rag.documents AS d ON d.document_id = c.document_id
    WHERE {matching}
)
SELECT m.number, v.embedding <=> %(query)s AS distance
FROM matching AS m
JOIN rag.{vectors} AS v ON v.text_hash = m.text_hash AND v.tenant_id = %(tenant)s
WHERE v.embedding IS NOT NULL
ORDER BY distance, m.number
LIMIT %(limit)s;

-- name: exact_everywhere
-- Without filters, the vectors are compared first, and only of the nearest it is asked whose they are. Where most of the
-- table is other tenants', it gives nothing: reading all of it would take longer than the tenant's own. The sum keeps the
-- planner from walking the graph.
WITH nearest AS MATERIALIZED (
    SELECT v.text_hash, (v.embedding <=> %(query)s) + 0.0 AS distance
    FROM rag.{vectors} AS v
    WHERE v.tenant_id = %(tenant)s AND v.embedding IS NOT NULL
      AND (SELECT reltuples FROM pg_class WHERE oid = to_regclass(%(vectors)s)) < 4 * %(enough)s::float8
    ORDER BY distance
    -- Twice as many as are wanted: some are of texts that stand in no chunk any more, or in none that the reader may see.
    FETCH FIRST (2 * %(limit)s) ROWS WITH TIES
)
SELECT c.number, n.distance
FROM nearest AS n
JOIN rag.chunks AS c ON c.text_hash = n.text_hash AND c.tenant_id = %(tenant)s
ORDER BY n.distance, c.number
LIMIT %(limit)s;

-- name: graph
SELECT c.number, v.embedding <=> %(query)s AS distance
FROM rag.{vectors} AS v
JOIN rag.chunks AS c ON c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id
JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE v.tenant_id = %(tenant)s AND v.embedding IS NOT NULL AND {matching}
ORDER BY v.embedding <=> %(query)s
LIMIT %(limit)s;

-- name: graph_everywhere
-- Without filters, no document has to be looked at.
SELECT c.number, v.embedding <=> %(query)s AS distance
FROM rag.{vectors} AS v
JOIN rag.chunks AS c ON c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id
WHERE v.tenant_id = %(tenant)s AND v.embedding IS NOT NULL
ORDER BY v.embedding <=> %(query)s
LIMIT %(limit)s;

-- name: graph_by_codes
-- The graph is one of short codes: of the nearest by them four times as many as are wanted are compared by their vectors
-- (of a million chunks of which a fifth match, 200 hold .999 of the ten nearest, 100 .979). The question's own code is
-- made once, not for each row.
WITH near AS MATERIALIZED (
    SELECT c.number, v.embedding <=> %(query)s AS distance
    FROM rag.{vectors} AS v
    JOIN rag.chunks AS c ON c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id
    JOIN rag.documents AS d ON d.document_id = c.document_id
    WHERE v.tenant_id = %(tenant)s AND {matching}
    ORDER BY v.code <~> (SELECT rag.{code}(%(query)s))
    LIMIT greatest(200, 4 * %(limit)s)
)
SELECT number, distance FROM near WHERE distance <> 'NaN' ORDER BY distance, number LIMIT %(limit)s;

-- name: graph_everywhere_by_codes
-- Twice as many as are wanted are compared by their vectors, and whose they are is only asked of the nearest of them.
WITH near AS MATERIALIZED (
    SELECT v.text_hash, v.embedding <=> %(query)s AS distance
    FROM rag.{vectors} AS v
    WHERE v.tenant_id = %(tenant)s
    ORDER BY v.code <~> (SELECT rag.{code}(%(query)s))
    LIMIT greatest(100, 2 * %(limit)s)
), nearest AS MATERIALIZED (
    -- A vector of zeros has a code, and no direction.
    SELECT text_hash, distance FROM near WHERE distance <> 'NaN'
    ORDER BY distance FETCH FIRST (2 * %(limit)s) ROWS WITH TIES
)
SELECT c.number, n.distance
FROM nearest AS n
JOIN rag.chunks AS c ON c.text_hash = n.text_hash AND c.tenant_id = %(tenant)s
ORDER BY n.distance, c.number
LIMIT %(limit)s;

-- name: distances
SELECT c.number, v.embedding <=> %(query)s AS distance
FROM rag.chunks AS c
JOIN rag.{vectors} AS v ON v.text_hash = c.text_hash AND v.tenant_id = c.tenant_id
WHERE c.number = ANY (%(numbers)s) AND c.tenant_id = %(tenant)s AND v.embedding IS NOT NULL;

-- name: vectors
SELECT c.chunk_id, v.embedding
FROM rag.chunks AS c
JOIN rag.{vectors} AS v ON v.text_hash = c.text_hash AND v.tenant_id = c.tenant_id
WHERE c.chunk_id = ANY (%(chunks)s) AND c.tenant_id = %(tenant)s AND v.embedding IS NOT NULL;

-- name: places
SELECT chunk_id, position, start_char, end_char FROM rag.chunks
WHERE chunk_id = ANY (%(chunks)s) AND tenant_id = %(tenant)s;

-- name: hits
SELECT c.number, c.chunk_id, c.document_id, d.title, c.text, d.url, d.anchor, d.path, d.repository, d.source_type,
       d.source_id, d.language, c.heading_path, c.start_line, c.end_line, d.source_updated_at, c.tokens,
       c.anchor AS chunk_anchor, d.metadata ->> 'reference' AS reference
FROM rag.chunks AS c
JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE c.number = ANY (%(numbers)s) AND c.tenant_id = %(tenant)s;

-- name: tenants_by_size
SELECT tenant_id, count(*) FROM rag.chunks GROUP BY tenant_id ORDER BY count(*) DESC, tenant_id;

-- name: sample_vectors
-- Hashes lie evenly, so those that follow any one of them are a random sample.
SELECT v.text_hash, v.embedding
FROM rag.{vectors} AS v
WHERE v.tenant_id = %(tenant)s AND v.text_hash >= %(start)s AND v.embedding IS NOT NULL
  AND EXISTS (SELECT FROM rag.chunks AS c WHERE c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id)
ORDER BY v.text_hash
LIMIT %(limit)s;

-- name: exhaustive
-- The graph left aside: an order by an expression of its own is none that the index knows.
SELECT distance FROM (
    SELECT v.text_hash, (v.embedding <=> %(query)s) + 0.0 AS distance
    FROM rag.{vectors} AS v
    WHERE v.tenant_id = %(tenant)s AND v.embedding IS NOT NULL
    ORDER BY distance
    LIMIT %(most)s
) AS near
JOIN rag.chunks AS c ON c.text_hash = near.text_hash AND c.tenant_id = %(tenant)s
ORDER BY distance
LIMIT %(limit)s;
