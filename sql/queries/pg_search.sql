-- name: available
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_search');

-- name: create_registry
-- Unlogged on purpose: a crash empties it. The index below is not written to the log either, so that after a crash it
-- lacks what was written since the last checkpoint, without a word. A tenant named here has an index that is whole.
CREATE EXTENSION IF NOT EXISTS pg_search;
CREATE UNLOGGED TABLE IF NOT EXISTS rag.pg_search_indexes (
    tenant_id text PRIMARY KEY,
    analyzer  integer NOT NULL
);
GRANT USAGE ON SCHEMA pdb, paradedb TO rag_reader;
GRANT SELECT ON rag.pg_search_indexes TO rag_reader;
ALTER TABLE rag.pg_search_indexes ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS tenant ON rag.pg_search_indexes;
CREATE POLICY tenant ON rag.pg_search_indexes FOR SELECT TO rag_reader USING (rag.visible(tenant_id, NULL));

-- name: present
-- A standby has neither what is unlogged nor what writes no log: asked there, the registry is an error.
SELECT to_regclass('rag.pg_search_indexes') IS NOT NULL AND NOT pg_is_in_recovery();

-- name: lock
-- Two syncs of one tenant would write the same rows.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, 1380009812));

-- name: is_whole
SELECT EXISTS (SELECT FROM rag.pg_search_indexes WHERE tenant_id = %(tenant)s AND analyzer = %(analyzer)s);

-- name: drop
DROP FUNCTION IF EXISTS rag.{name};
DROP TABLE IF EXISTS rag.{name};

-- name: create
-- A table for each tenant, because document frequencies count all rows of an index. The reader has no right to it: under
-- a policy pg_search reads every row (15 times slower), adds to scores, or refuses the query. It asks the function, which
-- answers only inside the tenant; whoever calls it joins the numbers with the chunks, whose policy has the last word.
CREATE TABLE rag.{name} (
    number    bigint PRIMARY KEY,
    tenant_id text NOT NULL,
    scope     text,
    terms     text NOT NULL
);
ALTER TABLE rag.{name} ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION rag.{name}(asked text[], most integer) RETURNS TABLE (chunk bigint, weight real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    -- pg_search refuses a parameter whose value is not known when the query is planned.
    SET plan_cache_mode = force_custom_plan
    -- The workers of a parallel scan take 50 ms to load the extension, the scan itself takes a few.
    SET max_parallel_workers_per_gather = 0
    AS $$
BEGIN
    IF current_setting('rag.tenant_id', true) = (SELECT t.tenant_id FROM rag.{name} AS t LIMIT 1) THEN
        RETURN QUERY
        SELECT t.number, pdb.score(t.number) FROM rag.{name} AS t WHERE t.terms ||| asked
        ORDER BY pdb.score(t.number) DESC, t.number LIMIT most;
    END IF;
END
$$;
REVOKE ALL ON FUNCTION rag.{name} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.{name} TO rag_reader;

-- name: build
-- After the rows: one segment instead of one for each batch.
CREATE INDEX {index} ON rag.{name} USING bm25 (number, (terms::pdb.whitespace('lowercase=false')))
    WITH (key_field = 'number');

-- name: register
INSERT INTO rag.pg_search_indexes (tenant_id, analyzer) VALUES (%(tenant)s, %(analyzer)s)
ON CONFLICT (tenant_id) DO UPDATE SET analyzer = excluded.analyzer;

-- name: remove
DELETE FROM rag.{name} AS present
WHERE NOT EXISTS (SELECT FROM rag.chunks AS c
                  WHERE c.number = present.number AND c.tenant_id = %(tenant)s
                    AND c.scope IS NOT DISTINCT FROM present.scope);

-- name: missing
SELECT c.tenant_id, c.scope, c.number, c.lead, c.text
FROM rag.chunks AS c
WHERE c.tenant_id = %(tenant)s AND c.number > %(after)s
  AND NOT EXISTS (SELECT FROM rag.{name} AS present WHERE present.number = c.number)
ORDER BY c.number
LIMIT %(limit)s;

-- name: copy
COPY rag.{name} (number, tenant_id, scope, terms) FROM STDIN;

-- name: best
-- Hidden and unwanted chunks come, too, without their numbers, so that the caller sees whether there may be more.
SELECT c.number, best.weight
FROM rag.{name}(%(terms)s::text[], %(most)s) AS best
LEFT JOIN rag.chunks AS c
    ON c.number = best.chunk AND (%(allowed)s::bigint[] IS NULL OR c.number = ANY (%(allowed)s::bigint[]))
ORDER BY best.weight DESC, best.chunk;

-- name: worded
SELECT tenant_id, scope, number, lead, text FROM rag.chunks
WHERE number = ANY (%(numbers)s) AND tenant_id = %(tenant)s;
