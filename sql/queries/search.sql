-- name: snapshot
-- The statements of one search see one state: a chunk that was found is there when its text is fetched.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: enter
-- Everything below runs as the reader, who owns nothing and sees one tenant; all of it ends with the transaction.
SELECT set_config('role', 'rag_reader', true),
       set_config('rag.tenant_id', %(tenant)s, true),
       set_config('rag.scopes', %(scopes)s::text[]::text, true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.ef_search', %(ef_search)s, true);

-- name: count_matching
SELECT count(*) FROM (
    SELECT FROM rag.chunks AS c
    JOIN rag.documents AS d ON d.document_id = c.document_id
    WHERE c.tenant_id = %(tenant)s
      AND (%(repository)s::text IS NULL OR d.repository = %(repository)s)
      AND (%(source_type)s::text IS NULL OR d.source_type = %(source_type)s)
      AND (%(language)s::text IS NULL OR d.language = %(language)s)
      AND (%(path_prefix)s::text IS NULL OR starts_with(d.path, %(path_prefix)s))
    LIMIT %(enough)s
) AS matching;

-- name: exact
-- MATERIALIZED keeps the planner from walking the graph for a handful of rows.
WITH matching AS MATERIALIZED (
    SELECT c.chunk_id, c.text_hash
    FROM rag.chunks AS c
    JOIN rag.documents AS d ON d.document_id = c.document_id
    WHERE c.tenant_id = %(tenant)s
      AND (%(repository)s::text IS NULL OR d.repository = %(repository)s)
      AND (%(source_type)s::text IS NULL OR d.source_type = %(source_type)s)
      AND (%(language)s::text IS NULL OR d.language = %(language)s)
      AND (%(path_prefix)s::text IS NULL OR starts_with(d.path, %(path_prefix)s))
)
SELECT m.chunk_id, v.embedding <=> %(query)s AS distance
FROM matching AS m
JOIN rag.{vectors} AS v ON v.text_hash = m.text_hash AND v.tenant_id = %(tenant)s
ORDER BY distance, m.chunk_id
LIMIT %(k)s;

-- name: graph
SELECT c.chunk_id, v.embedding <=> %(query)s AS distance
FROM rag.{vectors} AS v
JOIN rag.chunks AS c ON c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id
JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE v.tenant_id = %(tenant)s
  AND (%(repository)s::text IS NULL OR d.repository = %(repository)s)
  AND (%(source_type)s::text IS NULL OR d.source_type = %(source_type)s)
  AND (%(language)s::text IS NULL OR d.language = %(language)s)
  AND (%(path_prefix)s::text IS NULL OR starts_with(d.path, %(path_prefix)s))
ORDER BY v.embedding <=> %(query)s
LIMIT %(k)s;

-- name: hits
SELECT c.chunk_id, c.document_id, d.title, c.text, d.url, d.anchor, d.path, d.repository, d.source_type, d.source_id,
       d.language, c.heading_path, c.start_line, c.end_line, d.source_updated_at, c.tokens,
       c.anchor AS chunk_anchor, d.metadata ->> 'reference' AS reference
FROM rag.chunks AS c
JOIN rag.documents AS d ON d.document_id = c.document_id
WHERE c.chunk_id = ANY (%(ids)s);
