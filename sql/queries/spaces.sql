-- name: find
SELECT space_id, provider, model, dimensions, recipe, status, config, partitions, graph,
       graph = 'codes' AND code_trained_on IS NOT NULL
FROM rag.embedding_spaces
WHERE provider = %(provider)s AND model = %(model)s AND recipe = %(recipe)s
  AND (%(dimensions)s::integer IS NULL OR dimensions = %(dimensions)s)
ORDER BY space_id DESC
LIMIT 1;

-- name: active
SELECT space_id, provider, model, dimensions, recipe, status, config, partitions, graph,
       graph = 'codes' AND code_trained_on IS NOT NULL
FROM rag.embedding_spaces WHERE status = 'active';

-- name: all
SELECT space_id, provider, model, dimensions, recipe, status, config, partitions, graph,
       graph = 'codes' AND code_trained_on IS NOT NULL, created_at,
       activated_at, retired_at
FROM rag.embedding_spaces ORDER BY space_id;

-- name: create
WITH created AS (
    INSERT INTO rag.embedding_spaces (provider, model, dimensions, recipe, config, partitions, graph)
    VALUES (%(provider)s, %(model)s, %(dimensions)s, %(recipe)s, %(config)s, %(partitions)s, %(graph)s)
    ON CONFLICT DO NOTHING
    RETURNING space_id, dimensions, partitions
)
SELECT rag.create_vector_tables('vectors_' || space_id, dimensions, partitions) FROM created;

-- name: remember
UPDATE rag.embedding_spaces SET config = %(config)s WHERE space_id = %(space)s AND config IS DISTINCT FROM %(config)s;

-- name: resume
UPDATE rag.embedding_spaces SET status = 'building' WHERE space_id = %(space)s AND status = 'retired';

-- name: lock
-- Two promotions at once would both find the same space active. Readers are not held up.
LOCK TABLE rag.embedding_spaces IN SHARE ROW EXCLUSIVE MODE;

-- name: lock_for_a_change
-- Who changes a space's tables, too, takes this before them, as who drops a space does.
LOCK TABLE rag.embedding_spaces IN ROW EXCLUSIVE MODE;

-- name: retire_active
UPDATE rag.embedding_spaces SET status = 'retired', retired_at = now()
WHERE status = 'active' AND space_id <> %(space)s;

-- name: activate
UPDATE rag.embedding_spaces SET status = 'active', activated_at = now() WHERE space_id = %(space)s AND status <> 'active';

-- name: adopt
-- A text another tenant has had embedded is not embedded again: its vector says nothing that the text does not.
INSERT INTO rag.{vectors} AS present (text_hash, tenant_id, embedding)
SELECT DISTINCT ON (v.text_hash) v.text_hash, %(tenant)s, v.embedding
FROM rag.{vectors} AS v
WHERE v.text_hash = ANY (%(hashes)b) AND v.embedding IS NOT NULL
  AND NOT EXISTS (SELECT FROM rag.{vectors} AS own
                  WHERE own.text_hash = v.text_hash AND own.tenant_id = %(tenant)s AND own.embedding IS NOT NULL)
ORDER BY v.text_hash
ON CONFLICT (text_hash, tenant_id) DO UPDATE SET embedding = excluded.embedding WHERE present.embedding IS NULL;

-- name: known
SELECT text_hash FROM rag.{vectors}
WHERE text_hash = ANY (%(hashes)b) AND tenant_id = %(tenant)s AND embedding IS NOT NULL;

-- name: unreadable
SELECT text_hash FROM rag.{vectors}
WHERE text_hash = ANY (%(hashes)b) AND tenant_id = %(tenant)s AND embedding IS NULL;

-- name: count_unreadable
SELECT count(*) FROM rag.{vectors} WHERE embedding IS NULL;

-- name: set_unreadable
-- A row without a vector: nothing is missing, and nothing will come. In the order of the hashes, as vectors are written.
INSERT INTO rag.{vectors} AS present (text_hash, tenant_id)
SELECT DISTINCT text_hash, %(tenant)s FROM unnest(%(hashes)s::uuid[]) AS given (text_hash) ORDER BY text_hash
ON CONFLICT (text_hash, tenant_id) DO UPDATE SET embedding = NULL WHERE present.embedding IS NOT NULL;

-- name: embedded
SELECT DISTINCT text_hash FROM rag.{vectors} WHERE text_hash = ANY (%(hashes)b);

-- name: fetch
-- In one value, which is taken apart all at once: rows of a hash and a vector as COPY has them. The second: of those that
-- the model cannot read, the hashes.
SELECT coalesce(string_agg(uuid_send(text_hash) || halfvec_send(embedding), ''::bytea), ''::bytea),
       coalesce(string_agg(uuid_send(text_hash), ''::bytea) FILTER (WHERE embedding IS NULL), ''::bytea)
FROM rag.{vectors} WHERE text_hash = ANY (%(hashes)b) AND tenant_id = %(tenant)s;

-- name: copy_vectors
COPY rag.{vectors} (text_hash, tenant_id, embedding) FROM STDIN (FORMAT binary);

-- name: stage
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_vectors (text_hash uuid, tenant_id text, embedding halfvec)
ON COMMIT DELETE ROWS;

-- name: copy_staged
COPY incoming_vectors (text_hash, tenant_id, embedding) FROM STDIN (FORMAT binary);

-- name: insert
INSERT INTO rag.{vectors} AS present (text_hash, tenant_id, embedding)
SELECT DISTINCT ON (text_hash) text_hash, tenant_id, embedding FROM incoming_vectors ORDER BY text_hash
ON CONFLICT (text_hash, tenant_id) DO UPDATE SET embedding = excluded.embedding WHERE present.embedding IS NULL;

-- name: live
-- Texts that something in the index holds; all others are of states that nobody can find any more.
SELECT DISTINCT text_hash FROM rag.chunks WHERE tenant_id = %(tenant)s AND text_hash = ANY (%(hashes)b);
