-- Texts that a model cannot read have a row without a vector: they are settled, found by their words, and not asked again.
DO $$
DECLARE
    vectors name;
BEGIN
    FOR vectors IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
          AND relname ~ '^vectors_[0-9]+(_new)?$'
    LOOP
        EXECUTE format('ALTER TABLE rag.%I ALTER COLUMN embedding DROP NOT NULL', vectors);
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION rag.create_vector_tables(name text, dimensions integer, partitions integer) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    whole text := CASE WHEN partitions > 1 THEN ' PARTITION BY HASH (text_hash)' ELSE '' END;
    part text;
BEGIN
    EXECUTE format(
        'CREATE TABLE rag.%I (
             text_hash uuid NOT NULL,
             tenant_id text NOT NULL,
             embedding halfvec(%s),
             PRIMARY KEY (text_hash, tenant_id)
         )', name, dimensions) || whole;
    EXECUTE format('ALTER TABLE rag.%I ALTER COLUMN embedding SET STORAGE PLAIN', name);
    EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON rag.%I FOR SELECT TO rag_reader USING (rag.visible(tenant_id, NULL))', name);
    EXECUTE format('GRANT SELECT ON rag.%I TO rag_reader', name);
    FOR number IN 0 .. CASE WHEN partitions > 1 THEN partitions - 1 ELSE -1 END LOOP
        part := name || '_p' || number;
        EXECUTE format('CREATE TABLE rag.%I PARTITION OF rag.%I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                       part, name, partitions, number);
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', part);
    END LOOP;
END
$$;

-- Texts that runs embed just now. A claim counts while the session that made it holds the advisory lock (1380009815, run).
CREATE TABLE rag.embedding_claims (
    space_id   integer NOT NULL,
    text_hash  uuid NOT NULL,
    run        integer NOT NULL,
    claimed_at timestamptz NOT NULL,
    PRIMARY KEY (space_id, text_hash)
);
CREATE INDEX embedding_claims_run ON rag.embedding_claims (run);
ALTER TABLE rag.embedding_claims ENABLE ROW LEVEL SECURITY;
