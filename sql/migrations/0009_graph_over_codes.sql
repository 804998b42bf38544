-- A graph may be built over short codes of the vectors, three bits a dimension: in half of the time, and in less room.
-- What is nearest by the codes is compared by the vectors themselves. Graphs that are there stay what they are.
ALTER TABLE rag.embedding_spaces
    ADD COLUMN graph text NOT NULL DEFAULT 'vectors' CHECK (graph IN ('vectors', 'codes')),
    ADD COLUMN code_trained_on integer;

CREATE FUNCTION rag.create_code(name text, thresholds text[], normalised boolean) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    home text := (SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
                  WHERE e.extname = 'vector');
    bits text := (SELECT string_agg(format('%s.binary_quantize(unit OPERATOR(%s.-) %L::%s.halfvec)', home, home, value, home),
                                    ' || ' ORDER BY place)
                  FROM unnest(thresholds) WITH ORDINALITY AS t (value, place));
    whole text := CASE WHEN normalised THEN '' ELSE format('unit := %s.l2_normalize(unit); ', home) END;
BEGIN
    EXECUTE format(
        'CREATE FUNCTION rag.%I(unit %s.halfvec) RETURNS bit LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS %L',
        name, home, format('BEGIN %sRETURN %s; END', whole, bits));
    EXECUTE format('GRANT EXECUTE ON FUNCTION rag.%I TO rag_reader', name);
END
$$;
