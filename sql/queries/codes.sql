-- name: create
SELECT rag.create_code(%(name)s, %(thresholds)s::text[], %(normalised)s);

-- name: has
SELECT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND proname = %(name)s);

-- name: has_column
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = %(table)s::regclass AND attname = 'code' AND NOT attisdropped);

-- name: add_column
ALTER TABLE rag.{vectors} ADD COLUMN code bit({bits}) GENERATED ALWAYS AS (rag.{code}(embedding)::bit({bits})) STORED;

-- name: drop_column
ALTER TABLE rag.{vectors} DROP COLUMN IF EXISTS code;

-- name: drop
DROP FUNCTION IF EXISTS rag.{code};

-- name: trained
UPDATE rag.embedding_spaces SET code_trained_on = %(vectors)s WHERE space_id = %(space)s;

-- name: trained_on
SELECT code_trained_on FROM rag.embedding_spaces WHERE space_id = %(space)s;

-- name: sample
SELECT embedding FROM rag.{vectors} ORDER BY text_hash LIMIT %(most)s;

-- name: count_up_to
SELECT count(*) FROM (SELECT FROM rag.{vectors} LIMIT %(most)s) AS held;
