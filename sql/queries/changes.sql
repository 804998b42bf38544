-- name: state
-- Which rows there are, as numbers: transactions end in another order than they begin, and maintenance takes rows away,
-- so neither the newest of them nor how many there are tells two states apart.
SELECT (SELECT space_id FROM rag.embedding_spaces WHERE status = 'active'),
       count(*), coalesce(max(change_id), 0), coalesce(sum(hashint8extended(change_id, 0)), 0)::text
FROM rag.index_changes
WHERE tenant_id = %(tenant)s OR tenant_id IS NULL;

-- name: note
INSERT INTO rag.index_changes (tenant_id) SELECT unnest(%(tenants)s::text[]);

-- name: compact
-- The newest of each tenant stays. What another process takes away just now is left to it.
DELETE FROM rag.index_changes
WHERE change_id IN (
    SELECT change_id FROM rag.index_changes AS old
    WHERE (%(before)s::timestamptz IS NULL OR changed_at < %(before)s)
      AND EXISTS (SELECT FROM rag.index_changes AS newer
                  WHERE newer.tenant_id IS NOT DISTINCT FROM old.tenant_id AND newer.change_id > old.change_id)
    FOR UPDATE SKIP LOCKED
);
