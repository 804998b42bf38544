-- name: try_alone
-- One maintenance at a time; it ends with the connection, if not before.
SELECT pg_try_advisory_lock(%(lock)s);

-- name: leave_alone
SELECT pg_advisory_unlock(%(lock)s);

-- name: create_waiting
CREATE TEMPORARY TABLE waiting_texts (tenant_id text, text_hash uuid) ON COMMIT DROP;

-- name: clear_waiting
TRUNCATE waiting_texts;

-- name: copy_waiting
COPY waiting_texts (tenant_id, text_hash) FROM STDIN (FORMAT binary);

-- name: analyze_waiting
ANALYZE waiting_texts;

-- name: remove_orphans
DELETE FROM rag.{vectors} AS v
WHERE NOT EXISTS (SELECT FROM rag.chunks AS c WHERE c.text_hash = v.text_hash AND c.tenant_id = v.tenant_id)
  AND NOT EXISTS (SELECT FROM waiting_texts AS w WHERE w.text_hash = v.text_hash AND w.tenant_id = v.tenant_id);

-- name: old_tombstones
SELECT tenant_id, repository, source_type, document_id FROM rag.documents
WHERE deleted AND as_of < %(before)s AND indexed_at < %(before)s;

-- name: remove_tombstones
-- Asked again under the row's lock: it may have come back meanwhile.
DELETE FROM rag.documents
WHERE document_id = ANY (%(ids)s) AND deleted AND as_of < %(before)s AND indexed_at < %(before)s;

-- name: remove_resolved
-- What a person has accepted is remembered: its next failure would bring it back.
DELETE FROM rag.ingestion_failures WHERE resolved_at < %(before)s AND accepted IS NULL;

-- name: create_parts
CREATE TEMPORARY TABLE lake_parts (tenant_id text, repository text, day date) ON COMMIT DROP;

-- name: copy_parts
COPY lake_parts (tenant_id, repository, day) FROM STDIN (FORMAT binary);

-- name: forget_stored_parts
DELETE FROM rag.stored_parts AS s
WHERE s.stored_at < %(before)s
  AND NOT EXISTS (SELECT FROM lake_parts AS p
                  WHERE p.tenant_id = s.tenant_id AND p.repository = s.repository AND p.day = s.day);

-- name: forget_checked_parts
DELETE FROM rag.checked_parts AS s
WHERE s.checked_at < %(before)s
  AND NOT EXISTS (SELECT FROM lake_parts AS p
                  WHERE p.tenant_id = s.tenant_id AND p.repository = s.repository AND p.day = s.day);

-- name: segments
SELECT count(*) FROM rag.segments;

-- name: flush_statistics
SELECT pg_stat_force_next_flush();

-- name: tables
SELECT relname, pg_total_relation_size(relid), n_live_tup, n_dead_tup,
       coalesce(last_vacuum, last_autovacuum, last_analyze, last_autoanalyze) IS NULL AS unknown
FROM pg_stat_user_tables
WHERE schemaname = 'rag' AND relname <> 'schema_migrations'
ORDER BY relname;

-- name: vacuum
-- A table that somebody has locked is left for the next time.
VACUUM (ANALYZE, SKIP_LOCKED) rag.{name};

-- name: indexes
-- `entry_bytes`: of one entry of a B-tree, by the mean widths of its columns: header, key and line pointer.
SELECT c.relname, t.relname, a.amname, i.indisvalid, pg_relation_size(c.oid), c.reltuples::bigint,
       (SELECT sum(s.avg_width) FROM pg_attribute AS k
        JOIN pg_stats AS s ON s.schemaname = 'rag' AND s.tablename = t.relname AND s.attname = k.attname
        WHERE k.attrelid = c.oid)::bigint AS key_bytes,
       EXISTS (SELECT FROM pg_stat_progress_create_index AS p WHERE p.index_relid = c.oid) AS in_work
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_class AS t ON t.oid = i.indrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_am AS a ON a.oid = c.relam
WHERE n.nspname = 'rag' AND c.relkind = 'i' -- an index of several tables is in order when each of theirs is
ORDER BY c.relname;

-- name: reindex
REINDEX INDEX CONCURRENTLY rag.{index};

-- name: drop_index
DROP INDEX CONCURRENTLY IF EXISTS rag.{index};

-- name: index_size
SELECT pg_relation_size(to_regclass(%(index)s));
