-- name: has_graph
SELECT EXISTS (
    SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE i.indrelid = to_regclass(%(table)s) AND a.amname = 'hnsw' AND i.indisvalid
);

-- name: lock_vectors
LOCK TABLE rag.{vectors} IN SHARE UPDATE EXCLUSIVE MODE;

-- name: build_over_vectors
CREATE INDEX IF NOT EXISTS {index} ON rag.{vectors} USING hnsw (embedding halfvec_cosine_ops)
    WITH (m = 16, ef_construction = 100);

-- name: build_over_codes
CREATE INDEX IF NOT EXISTS {index} ON rag.{vectors} USING hnsw (code bit_hamming_ops)
    WITH (m = 12, ef_construction = 64);

-- name: drop
DROP INDEX IF EXISTS rag.{index};

-- name: is_empty
SELECT NOT EXISTS (SELECT FROM rag.{vectors});

-- name: count_vectors
SELECT count(*) FROM rag.{vectors};

-- name: memory
-- Never less than the server is set to: who runs it knows best.
SELECT set_config('maintenance_work_mem',
           greatest(%(kilobytes)s, (SELECT setting::bigint FROM pg_settings WHERE name = 'maintenance_work_mem'))::text,
           %(local)s),
       set_config('max_parallel_maintenance_workers', %(workers)s, %(local)s);

-- name: analyze
ANALYZE rag.{vectors}, rag.chunks, rag.documents, rag.links;
