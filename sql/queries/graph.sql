-- name: has_graph
SELECT EXISTS (
    SELECT FROM pg_index AS i
    JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_am AS a ON a.oid = c.relam
    JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = i.indkey[0]
    WHERE i.indrelid = to_regclass(%(table)s) AND a.amname = 'hnsw' AND i.indisvalid AND k.attname = %(column)s
);

-- name: lock_vectors
LOCK TABLE rag.{vectors} IN SHARE UPDATE EXCLUSIVE MODE;

-- name: build_over_vectors
CREATE INDEX IF NOT EXISTS {index} ON rag.{vectors} USING hnsw (embedding halfvec_cosine_ops)
    WITH (m = 16, ef_construction = 100);

-- name: build_over_codes
CREATE INDEX IF NOT EXISTS {index} ON rag.{vectors} USING hnsw (code bit_hamming_ops)
    WITH (m = 16, ef_construction = 64);

-- name: count_up_to
SELECT count(*) FROM (SELECT FROM rag.{vectors} WHERE embedding IS NOT NULL LIMIT %(most)s) AS held;

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
