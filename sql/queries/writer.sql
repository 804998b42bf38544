-- name: create_staging
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_documents (LIKE rag.documents) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_chunks (LIKE rag.chunks) ON COMMIT DELETE ROWS;
ALTER TABLE incoming_chunks DROP COLUMN IF EXISTS number;
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_links (LIKE rag.links) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS accepted (document_id uuid PRIMARY KEY) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS reworded (chunk_id uuid PRIMARY KEY) ON COMMIT DELETE ROWS;

-- name: existing
SELECT document_id, as_of, observed_at, state_hash
FROM rag.documents
WHERE document_id = ANY (%(ids)b);

-- name: lock_present
-- What is there already, and from now on until the end of the transaction nobody else's. In id order, as the upsert.
SELECT document_id, tenant_id, repository, source_type, deleted
FROM rag.documents
WHERE document_id = ANY (%(ids)b)
ORDER BY document_id
FOR NO KEY UPDATE;

-- name: held
-- What the accepted documents held before: their chunks are not changed yet.
SELECT a.document_id, held.chunks, held.tokens
FROM accepted AS a
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks, coalesce(sum(c.tokens), 0)::bigint AS tokens
    FROM rag.chunks AS c WHERE c.document_id = a.document_id
) AS held;

-- name: copy_documents
COPY incoming_documents (
    document_id, tenant_id, source_type, source_id, repository, scope, path, language, title, url, anchor, metadata,
    content_hash, fingerprint, state_hash, source_updated_at, observed_at, deleted, indexed_at, as_of
) FROM STDIN (FORMAT binary);

-- name: copy_chunks
COPY incoming_chunks (
    chunk_id, document_id, tenant_id, scope, position, text, text_hash, heading_path,
    start_char, end_char, start_line, end_line, tokens, anchor, lead
) FROM STDIN (FORMAT binary);

-- name: copy_links
COPY incoming_links (document_id, kind, target, tenant_id, scope) FROM STDIN (FORMAT binary);

-- name: insert_documents
-- Of documents that are new.
COPY rag.documents (
    document_id, tenant_id, source_type, source_id, repository, scope, path, language, title, url, anchor, metadata,
    content_hash, fingerprint, state_hash, source_updated_at, observed_at, deleted, indexed_at, as_of
) FROM STDIN (FORMAT binary);

-- name: next_numbers
SELECT nextval(pg_get_serial_sequence('rag.chunks', 'number')) FROM generate_series(1, %(count)s);

-- name: insert_chunks
COPY rag.chunks (
    chunk_id, document_id, tenant_id, scope, position, text, text_hash, heading_path,
    start_char, end_char, start_line, end_line, tokens, anchor, lead, number
) FROM STDIN (FORMAT binary);

-- name: insert_links
COPY rag.links (document_id, kind, target, tenant_id, scope) FROM STDIN (FORMAT binary);

-- name: upsert_documents
-- In id order, so that two writers never wait for each other in a circle. Newer wins, a tombstone included.
WITH written AS (
    INSERT INTO rag.documents AS present
    SELECT * FROM incoming_documents ORDER BY document_id
    ON CONFLICT (document_id) DO UPDATE SET
        repository = excluded.repository,
        scope = excluded.scope,
        path = excluded.path,
        language = excluded.language,
        title = excluded.title,
        url = excluded.url,
        anchor = excluded.anchor,
        metadata = excluded.metadata,
        content_hash = excluded.content_hash,
        fingerprint = excluded.fingerprint,
        state_hash = excluded.state_hash,
        source_updated_at = excluded.source_updated_at,
        observed_at = excluded.observed_at,
        deleted = excluded.deleted,
        indexed_at = excluded.indexed_at,
        as_of = excluded.as_of
    WHERE (excluded.as_of, excluded.observed_at) >= (present.as_of, present.observed_at)
      AND (excluded.state_hash <> present.state_hash OR excluded.as_of > present.as_of)
    RETURNING document_id
)
INSERT INTO accepted SELECT document_id FROM written;

-- name: find_reworded
-- Chunks that are new to the lexical leg, or that it sees otherwise than before. What is there is looked for by an array
-- of documents (a chunk never changes its document), because the planner takes a joined temporary table for a large one
-- and reads all chunks there are.
INSERT INTO reworded
SELECT incoming.chunk_id
FROM incoming_chunks AS incoming
JOIN accepted ON accepted.document_id = incoming.document_id
LEFT JOIN rag.chunks AS present
       ON present.chunk_id = incoming.chunk_id
      AND present.document_id = ANY (ARRAY (SELECT document_id FROM accepted))
WHERE present.chunk_id IS NULL OR (present.scope, present.lead) IS DISTINCT FROM (incoming.scope, incoming.lead);

-- name: unworded
-- What the lexical leg must forget: chunks that go, and the former state of those that it shall see otherwise. Their
-- documents are locked by now, so nobody else changes them. By an array, as above.
SELECT present.tenant_id, present.scope, present.number, present.lead, present.text
FROM rag.chunks AS present
WHERE present.document_id = ANY (ARRAY (SELECT document_id FROM accepted))
  AND (NOT EXISTS (SELECT FROM incoming_chunks AS incoming WHERE incoming.chunk_id = present.chunk_id)
       OR EXISTS (SELECT FROM reworded WHERE reworded.chunk_id = present.chunk_id));

-- name: reworded
SELECT c.tenant_id, c.scope, c.number, c.lead, c.text
FROM rag.chunks AS c
WHERE c.chunk_id = ANY (ARRAY (SELECT chunk_id FROM reworded));

-- name: delete_chunks
-- By an array, as above.
DELETE FROM rag.chunks AS present
WHERE present.document_id = ANY (ARRAY (SELECT document_id FROM accepted))
  AND NOT EXISTS (SELECT FROM incoming_chunks AS incoming WHERE incoming.chunk_id = present.chunk_id);

-- name: upsert_chunks
-- The text of a chunk stays, because its id is of it; what it is embedded with may be another all the same (the symbol
-- that it stands in was renamed), and then so is its text_hash.
INSERT INTO rag.chunks AS present (
    chunk_id, document_id, tenant_id, scope, position, text, text_hash, heading_path,
    start_char, end_char, start_line, end_line, tokens, anchor, lead
)
SELECT incoming.chunk_id, incoming.document_id, incoming.tenant_id, incoming.scope, incoming.position, incoming.text,
       incoming.text_hash, incoming.heading_path, incoming.start_char, incoming.end_char, incoming.start_line,
       incoming.end_line, incoming.tokens, incoming.anchor, incoming.lead
FROM incoming_chunks AS incoming
JOIN accepted ON accepted.document_id = incoming.document_id
ORDER BY incoming.chunk_id
ON CONFLICT (chunk_id) DO UPDATE SET
    scope = excluded.scope,
    position = excluded.position,
    text_hash = excluded.text_hash,
    heading_path = excluded.heading_path,
    start_char = excluded.start_char,
    end_char = excluded.end_char,
    start_line = excluded.start_line,
    end_line = excluded.end_line,
    tokens = excluded.tokens,
    anchor = excluded.anchor,
    lead = excluded.lead,
    number = CASE WHEN (present.scope, present.lead) IS DISTINCT FROM (excluded.scope, excluded.lead)
                  THEN excluded.number ELSE present.number END
WHERE (present.scope, present.position, present.text_hash, present.heading_path, present.start_char,
       present.end_char, present.start_line, present.end_line, present.tokens, present.anchor, present.lead)
   IS DISTINCT FROM
      (excluded.scope, excluded.position, excluded.text_hash, excluded.heading_path, excluded.start_char,
       excluded.end_char, excluded.start_line, excluded.end_line, excluded.tokens, excluded.anchor, excluded.lead);

-- name: delete_links
-- By an array, as the chunks.
DELETE FROM rag.links AS present
WHERE present.document_id = ANY (ARRAY (SELECT document_id FROM accepted))
  AND NOT EXISTS (SELECT FROM incoming_links AS incoming
                  WHERE incoming.document_id = present.document_id AND incoming.kind = present.kind
                    AND incoming.target = present.target);

-- name: upsert_links
INSERT INTO rag.links AS present (document_id, kind, target, tenant_id, scope)
SELECT incoming.document_id, incoming.kind, incoming.target, incoming.tenant_id, incoming.scope
FROM incoming_links AS incoming
JOIN accepted ON accepted.document_id = incoming.document_id
ON CONFLICT (document_id, kind, target) DO UPDATE SET scope = excluded.scope
WHERE present.scope IS DISTINCT FROM excluded.scope;
