-- name: record
INSERT INTO rag.evaluations
    (evaluated_at, tenant_id, dataset, labels_hash, space_id, queries, metrics, per_query)
VALUES (%(now)s, %(tenant)s, %(dataset)s, %(labels_hash)s, %(space)s, %(queries)s, %(metrics)s, %(per_query)s)
RETURNING evaluation_id;

-- name: latest
SELECT dataset, labels_hash, per_query, space_id, evaluated_at
FROM rag.evaluations
WHERE tenant_id = %(tenant)s AND dataset = %(dataset)s AND labels_hash = %(labels_hash)s
  AND (%(space)s::integer IS NULL OR space_id = %(space)s)
ORDER BY evaluated_at DESC, evaluation_id DESC
LIMIT 1;

-- name: history
-- The newest ones, the oldest of them first.
SELECT * FROM (
    SELECT e.evaluated_at, e.space_id, s.model, e.labels_hash, e.queries, e.metrics, e.evaluation_id
    FROM rag.evaluations AS e
    JOIN rag.embedding_spaces AS s USING (space_id)
    WHERE e.tenant_id = %(tenant)s AND e.dataset = %(dataset)s
    ORDER BY e.evaluated_at DESC, e.evaluation_id DESC
    LIMIT %(limit)s
) AS newest
ORDER BY evaluated_at, evaluation_id;

-- name: missing
-- Labelled documents that the index does not show.
SELECT wanted.source_type, wanted.source_id
FROM unnest(%(source_types)s::text[], %(source_ids)s::text[]) WITH ORDINALITY AS wanted (source_type, source_id, place)
WHERE NOT EXISTS (
    SELECT FROM rag.documents AS d
    WHERE d.tenant_id = %(tenant)s AND d.source_id = wanted.source_id AND NOT d.deleted
      AND d.source_type = coalesce(wanted.source_type, d.source_type))
ORDER BY wanted.place;

-- name: closed_issues
-- Merged pull requests and the issues that they closed, the newest first. What they closed stands in their metadata and,
-- once links are kept, among these.
WITH closing AS (
    SELECT p.document_id, p.source_id, p.source_updated_at, closed.target
    FROM rag.documents AS p
    CROSS JOIN LATERAL (
        SELECT jsonb_array_elements_text(p.metadata -> 'closes') AS target
        WHERE jsonb_typeof(p.metadata -> 'closes') = 'array'
        UNION
        SELECT l.target FROM rag.links AS l WHERE l.document_id = p.document_id AND l.kind = 'closes'
    ) AS closed
    WHERE p.tenant_id = %(tenant)s AND p.source_type = 'github_pull_request' AND NOT p.deleted AND p.scope IS NULL
      AND p.metadata ->> 'state' = 'merged'
)
SELECT i.source_id, i.metadata ->> 'reference', i.title, c.source_id,
       ARRAY(
           SELECT f.source_type || ' ' || f.source_id
           FROM rag.links AS l
           JOIN rag.documents AS f ON f.tenant_id = l.tenant_id AND f.source_id = l.target AND NOT f.deleted
           WHERE l.document_id = c.document_id AND l.kind = 'changes' AND f.source_type IN ('docs', 'code')
           ORDER BY 1
       )
FROM closing AS c
JOIN rag.documents AS i
  ON i.tenant_id = %(tenant)s AND i.source_type = 'github_issue' AND i.metadata ->> 'reference' = c.target
WHERE NOT i.deleted AND i.scope IS NULL AND i.title IS NOT NULL
ORDER BY c.source_updated_at DESC, i.source_id, c.source_id
LIMIT %(limit)s;
