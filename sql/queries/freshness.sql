-- name: note_asked
-- Two may have read it at once: what was seen is never unseen.
INSERT INTO rag.source_freshness AS present
    (tenant_id, repository, source, asked_at, newest_item_at, covered_at, position_seen)
VALUES (%(tenant)s, %(repository)s, %(source)s, %(asked_at)s, %(newest_item_at)s, %(covered_at)s, %(position)s)
ON CONFLICT (tenant_id, repository, source) DO UPDATE SET
    asked_at = greatest(present.asked_at, excluded.asked_at),
    newest_item_at = greatest(present.newest_item_at, excluded.newest_item_at),
    covered_at = greatest(present.covered_at, excluded.covered_at),
    position_seen = CASE WHEN present.asked_at > excluded.asked_at THEN present.position_seen
                         ELSE coalesce(excluded.position_seen, present.position_seen) END,
    problem = CASE WHEN present.asked_at > excluded.asked_at THEN present.problem END;

-- name: note_unreadable
INSERT INTO rag.source_freshness AS present (tenant_id, repository, source, problem)
VALUES (%(tenant)s, %(repository)s, %(source)s, %(problem)s)
ON CONFLICT (tenant_id, repository, source) DO UPDATE SET problem = excluded.problem
WHERE present.asked_at IS NULL OR present.asked_at < %(now)s;

-- name: note_complete
INSERT INTO rag.source_freshness AS present (tenant_id, repository, source, asked_at, complete_until, indexed_at)
VALUES (%(tenant)s, %(repository)s, %(source)s, %(complete_until)s, %(complete_until)s, %(indexed_at)s)
ON CONFLICT (tenant_id, repository, source) DO UPDATE SET
    asked_at = greatest(present.asked_at, excluded.asked_at),
    complete_until = greatest(present.complete_until, excluded.complete_until),
    indexed_at = greatest(present.indexed_at, excluded.indexed_at);

-- name: note_position
UPDATE rag.source_freshness SET position_complete = %(position)s
WHERE tenant_id = %(tenant)s AND repository = %(repository)s AND source = %(source)s
  AND position_complete IS DISTINCT FROM %(position)s;

-- name: covered
SELECT tenant_id, repository, source, covered_at FROM rag.source_freshness
WHERE covered_at > coalesce(complete_until, '-infinity');

-- name: sources
SELECT tenant_id, repository, source, last_asked, last_item_seen, complete_until, last_indexed, problem, failures_waiting,
       cost_this_month_usd, position_seen, position_complete
FROM rag.freshness ORDER BY tenant_id, repository, source;

-- name: worst_lags
SELECT source, extract(epoch FROM %(now)s - min(complete_until))
FROM rag.source_freshness WHERE complete_until IS NOT NULL
GROUP BY source;
