-- A graph may grow too large to be built in memory: a space's vectors may lie in several tables, each with its own.
ALTER TABLE rag.embedding_spaces
    ADD COLUMN partitions integer NOT NULL DEFAULT 1 CHECK (partitions BETWEEN 1 AND 256);

CREATE FUNCTION rag.create_vector_tables(name text, dimensions integer, partitions integer) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    whole text := CASE WHEN partitions > 1 THEN ' PARTITION BY HASH (text_hash)' ELSE '' END;
    part text;
BEGIN
    EXECUTE format(
        'CREATE TABLE rag.%I (
             text_hash uuid NOT NULL,
             tenant_id text NOT NULL,
             embedding halfvec(%s) NOT NULL,
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

CREATE FUNCTION rag.replace_vector_tables(present text, successor text) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    relation name;
BEGIN
    EXECUTE format('DROP TABLE rag.%I', present);
    FOR relation IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'rag'::regnamespace AND (relname = successor OR starts_with(relname, successor || '_'))
    LOOP
        EXECUTE format('ALTER TABLE rag.%I RENAME TO %I', relation, present || substr(relation, length(successor) + 1));
    END LOOP;
END
$$;
