-- name: linked
-- What is one link away from the hits: of a pull request the issues it closes or mentions, of an issue the pull requests
-- that close it, of a file those that changed it, unless they were closed without being merged. Of each hit the closest
-- `limit`, each document once, for the best of the hits that lead to it; a document is shown by its first chunk.
--
-- Targets are compared as texts and within one tenant, which row-level security lets the index answer.
WITH hit AS MATERIALIZED (
    SELECT given.rank, d.document_id, d.tenant_id, d.source_type, d.source_id
    FROM unnest(%(documents)s::uuid[]) WITH ORDINALITY AS given (document_id, rank)
    JOIN rag.documents AS d ON d.document_id = given.document_id
), near AS (
    SELECT hit.rank, named.document_id, said.kind = 'mentions' AS is_loose, 'github_issue' AS wanted
    FROM hit
    JOIN rag.links AS said ON said.document_id = hit.document_id AND said.kind IN ('closes', 'mentions')
    JOIN rag.links AS named ON named.tenant_id = hit.tenant_id AND named.target = said.target AND named.kind = 'is'
    WHERE hit.source_type = 'github_pull_request'
    UNION ALL
    SELECT hit.rank, closing.document_id, false, 'github_pull_request'
    FROM hit
    JOIN rag.links AS named ON named.document_id = hit.document_id AND named.kind = 'is'
    JOIN rag.links AS closing
        ON closing.tenant_id = hit.tenant_id AND closing.target = named.target AND closing.kind = 'closes'
    WHERE hit.source_type = 'github_issue'
    UNION ALL
    SELECT hit.rank, changing.document_id, false, 'github_pull_request'
    FROM hit
    JOIN rag.links AS changing
        ON changing.tenant_id = hit.tenant_id AND changing.target = hit.source_id AND changing.kind = 'changes'
    WHERE hit.source_type IN ('docs', 'code')
), numbered AS (
    SELECT near.rank, near.document_id,
           row_number() OVER (PARTITION BY near.rank ORDER BY near.is_loose, d.source_updated_at DESC, d.document_id) AS n
    FROM near
    JOIN rag.documents AS d ON d.document_id = near.document_id AND d.source_type = near.wanted
    WHERE near.document_id <> ALL (%(documents)s::uuid[])
      AND (near.wanted = 'github_issue' OR d.metadata ->> 'state' IS DISTINCT FROM 'closed')
      AND EXISTS (SELECT FROM rag.chunks AS c WHERE c.document_id = near.document_id AND c.position = 0)
), chosen AS (
    SELECT DISTINCT ON (document_id) document_id, rank, n FROM numbered WHERE n <= %(limit)s ORDER BY document_id, rank, n
)
SELECT hit.document_id AS linked_from, c.chunk_id, c.document_id, d.title, c.text, d.url, d.anchor, d.path, d.repository,
       d.source_type, d.source_id, d.language, c.heading_path, c.start_line, c.end_line, d.source_updated_at, c.tokens,
       c.anchor AS chunk_anchor, d.metadata ->> 'reference' AS reference
FROM chosen
JOIN hit ON hit.rank = chosen.rank
JOIN rag.documents AS d ON d.document_id = chosen.document_id
JOIN rag.chunks AS c ON c.document_id = chosen.document_id AND c.position = 0
ORDER BY chosen.rank, chosen.n;
