-- name: limit_time
-- For the whole of a connection of our own: nobody waits for an answer that comes later.
SELECT set_config('statement_timeout', %(milliseconds)s::text, false);

-- name: sources
-- What each repository holds of each type, as far as the reader may see it.
SELECT d.repository, d.source_type, count(*) AS documents, coalesce(sum(c.chunks), 0)::bigint AS chunks,
       max(d.source_updated_at) AS newest_change, max(d.indexed_at) AS newest_indexed
FROM rag.documents AS d
LEFT JOIN (
    SELECT document_id, count(*) AS chunks FROM rag.chunks WHERE tenant_id = %(tenant)s GROUP BY document_id
) AS c ON c.document_id = d.document_id
WHERE d.tenant_id = %(tenant)s AND NOT d.deleted
GROUP BY d.repository, d.source_type
ORDER BY d.repository, d.source_type;

-- name: named
-- Documents that a name means, those that it means most exactly: an id before a source id, an address, what a thread is
-- called (owner/name#1), and a path. A name may come in several spellings, such as without the lines behind it.
SELECT found.* FROM (
    SELECT d.document_id, d.title, d.url, d.path, d.repository, d.source_type, d.source_id, d.language, d.metadata,
           d.source_updated_at, d.indexed_at,
           rank() OVER (ORDER BY CASE
               WHEN d.document_id = %(document_id)s THEN 1
               WHEN d.source_id = ANY (%(names)s) THEN 2
               WHEN d.url = ANY (%(names)s) THEN 3
               WHEN d.metadata ->> 'reference' = ANY (%(names)s) THEN 4
               ELSE 5
           END) AS place
    FROM rag.documents AS d
    WHERE d.tenant_id = %(tenant)s AND NOT d.deleted
      AND (d.document_id = %(document_id)s OR d.source_id = ANY (%(names)s) OR d.url = ANY (%(names)s)
           OR d.metadata ->> 'reference' = ANY (%(names)s) OR d.path = ANY (%(names)s))
) AS found
WHERE found.place = 1
ORDER BY found.repository, found.source_type, found.source_id
LIMIT %(limit)s;

-- name: pieces
-- A document's chunks in its order.
SELECT c.text, c.start_char, c.start_line, c.end_line FROM rag.chunks AS c
WHERE c.document_id = %(document)s AND c.tenant_id = %(tenant)s
ORDER BY c.start_char, c.position;
