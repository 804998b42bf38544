-- Freshness is judged by positions (a commit, a count of changes), because the time of an event proves nothing: a commit
-- may be pushed long after it was made.
ALTER TABLE rag.source_freshness
    ADD COLUMN position_seen text,             -- where the source stood when it was last read
    ADD COLUMN position_complete text;         -- where it stood when everything that was read of it was in the index

CREATE OR REPLACE VIEW rag.freshness WITH (security_invoker = true) AS
SELECT s.tenant_id,
       s.repository,
       s.source,
       s.newest_item_at AS last_item_seen,
       s.asked_at AS last_asked,
       s.indexed_at AS last_indexed,
       s.complete_until,
       now() - s.complete_until AS lag,
       s.problem,
       (SELECT count(*) FROM rag.ingestion_failures AS f
        WHERE f.tenant_id = s.tenant_id AND f.repository = s.repository AND f.resolved_at IS NULL) AS failures_waiting,
       (SELECT coalesce(sum(u.cost_usd), 0) FROM rag.usage AS u
        WHERE u.tenant_id = s.tenant_id AND u.repository = s.repository
          AND u.used_at >= date_trunc('month', now(), 'UTC')) AS cost_this_month_usd,
       s.position_seen,
       s.position_complete
FROM rag.source_freshness AS s;

-- 0009 was edited after it had landed. Databases that were migrated with an earlier text of it get what it says now.
CREATE OR REPLACE FUNCTION rag.create_code(name text, thresholds text[], normalised boolean) RETURNS void
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

DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN SELECT oid FROM pg_proc
                WHERE pronamespace = 'rag'::regnamespace AND proname ~ '^vectors_.*_code$'
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO rag_reader', made);
    END LOOP;
END
$$;
