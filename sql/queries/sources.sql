-- name: sources
-- What the reader may see of each repository and kind of source. Chunks are counted by themselves: a join of all chunks
-- with all documents takes longer.
WITH counted AS (
    SELECT document_id, count(*) AS chunks FROM rag.chunks WHERE tenant_id = %(tenant)s GROUP BY document_id
)
SELECT d.repository, d.source_type, count(*), coalesce(sum(counted.chunks), 0)::bigint,
       max(d.source_updated_at), max(d.indexed_at)
FROM rag.documents AS d
LEFT JOIN counted ON counted.document_id = d.document_id
WHERE d.tenant_id = %(tenant)s AND NOT d.deleted
GROUP BY d.repository, d.source_type
ORDER BY d.repository, d.source_type;
