-- name: create
SELECT rag.create_code(%(name)s, %(thresholds)s::text[], %(normalised)s);

-- name: has
SELECT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND proname = %(name)s);

-- name: add_column
-- PLAIN: in the row, as the vector is; elsewhere each walk would have to fetch it from there.
ALTER TABLE rag.{vectors}
    ADD COLUMN IF NOT EXISTS code bit({bits}) GENERATED ALWAYS AS (rag.{code}(embedding)::bit({bits})) STORED,
    ALTER COLUMN code SET STORAGE PLAIN;

-- name: drop
DROP FUNCTION IF EXISTS rag.{code};

-- name: trained
UPDATE rag.embedding_spaces SET code_trained_on = %(vectors)s WHERE space_id = %(space)s;

-- name: sample
-- Of texts, in the order of their hashes, which is none: the same text may be there for many tenants.
SELECT DISTINCT ON (text_hash) embedding FROM rag.{vectors} WHERE embedding IS NOT NULL ORDER BY text_hash LIMIT %(most)s;
