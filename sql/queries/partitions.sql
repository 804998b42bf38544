-- name: create
SELECT rag.create_vector_tables(%(table)s, %(dimensions)s, %(partitions)s);

-- name: shape
-- Tables that a table of vectors consists of (NULL: there is none of that name), and whether they hold codes and graphs.
WITH tables AS (
    SELECT to_regclass(%(table)s)::oid AS oid
    UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(%(table)s)
)
SELECT CASE WHEN to_regclass(%(table)s) IS NOT NULL THEN greatest(1, (SELECT count(*) - 1 FROM tables)) END,
       EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attname = 'code' AND NOT attisdropped),
       EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS a ON a.oid = c.relam
               WHERE i.indrelid IN (SELECT oid FROM tables) AND a.amname = 'hnsw');

-- name: drop
DROP TABLE IF EXISTS rag.{vectors};

-- name: copy
-- A slice of them: hashes lie evenly.
INSERT INTO rag.{name} (text_hash, tenant_id, embedding)
SELECT text_hash, tenant_id, embedding FROM rag.{vectors} WHERE text_hash BETWEEN %(first)s AND %(last)s
ON CONFLICT DO NOTHING;

-- name: lock
-- Who writes waits; who searches does not.
LOCK TABLE rag.{vectors} IN SHARE ROW EXCLUSIVE MODE;

-- name: add_missing
INSERT INTO rag.{name} (text_hash, tenant_id, embedding)
SELECT text_hash, tenant_id, embedding FROM rag.{vectors} AS s
WHERE NOT EXISTS (SELECT FROM rag.{name} AS v WHERE v.text_hash = s.text_hash AND v.tenant_id = s.tenant_id)
ON CONFLICT DO NOTHING;

-- name: remove_gone
-- Also what has got a vector since, or lost it.
DELETE FROM rag.{name} AS v
WHERE NOT EXISTS (SELECT FROM rag.{vectors} AS s WHERE s.text_hash = v.text_hash AND s.tenant_id = v.tenant_id
                    AND (s.embedding IS NULL) = (v.embedding IS NULL));

-- name: replace
SELECT rag.replace_vector_tables(%(table)s, %(copy)s);

-- name: remember
UPDATE rag.embedding_spaces SET partitions = %(partitions)s, graph = %(graph)s WHERE space_id = %(space)s;
