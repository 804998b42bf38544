-- name: texts
SELECT count(*) FROM (SELECT DISTINCT tenant_id, text_hash FROM rag.chunks) AS texts;

-- name: missing
SELECT count(*) FROM (
    SELECT DISTINCT c.tenant_id, c.text_hash FROM rag.chunks AS c
    WHERE NOT EXISTS (SELECT FROM rag.{vectors} AS v WHERE v.text_hash = c.text_hash AND v.tenant_id = c.tenant_id)
) AS missing;

-- name: size
SELECT count(embedding),
       (SELECT coalesce(sum(pg_total_relation_size(t.oid)), 0)::bigint FROM (
           SELECT %(table)s::regclass AS oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = %(table)s::regclass
       ) AS t),
       count(*) - count(embedding)
FROM rag.{vectors};

-- name: previous
SELECT space_id FROM rag.embedding_spaces
WHERE status <> 'active' AND retired_at IS NOT NULL ORDER BY retired_at DESC LIMIT 1;

-- name: carry_progress
-- What is in the index is in it for every complete space: without this the next run would read all sources again.
INSERT INTO rag.source_progress AS present
    (tenant_id, repository, source, position, position_at, fingerprint, space_id, updated_at)
SELECT tenant_id, repository, source, position, position_at, fingerprint, %(to)s, now()
FROM rag.source_progress WHERE space_id = %(from)s
ON CONFLICT (tenant_id, repository, source, space_id) DO UPDATE SET
    position = excluded.position, position_at = excluded.position_at, fingerprint = excluded.fingerprint,
    updated_at = excluded.updated_at;

-- name: carry_parts
INSERT INTO rag.stored_parts AS present (stage, tenant_id, repository, day, space_id, fingerprint, stored_at)
SELECT stage, tenant_id, repository, day, %(to)s, fingerprint, now()
FROM rag.stored_parts WHERE space_id = %(from)s AND stage = 'knowledge_index'
ON CONFLICT (space_id, stage, tenant_id, repository, day) DO UPDATE SET
    fingerprint = excluded.fingerprint, stored_at = excluded.stored_at;

-- name: drop_vectors
DROP TABLE rag.{vectors};

-- name: drop_space
-- What the pipeline remembers of it, and its evaluations, go with it.
DELETE FROM rag.embedding_spaces WHERE space_id = %(space)s;
