-- name: lock
-- One look at a tenant's account and one reservation at a time: two runs at once would both find that there is room.
SELECT pg_advisory_xact_lock(hashtextextended('rag.usage ' || %(tenant)s, 0));

-- name: spent
-- By a run, and by all runs of a month, with what is set aside for texts that are being sent.
WITH spent AS (
    SELECT run_id = %(run)s AS own,
           used_at >= %(month)s AND used_at < %(next_month)s AS this_month,
           tokens + CASE WHEN reserved_until > %(now)s THEN reserved_tokens ELSE 0 END AS tokens,
           cost_usd + CASE WHEN reserved_until > %(now)s THEN reserved_usd ELSE 0 END AS usd
    FROM rag.usage
    WHERE tenant_id = %(tenant)s AND (run_id = %(run)s OR (used_at >= %(month)s AND used_at < %(next_month)s))
)
SELECT coalesce(sum(tokens) FILTER (WHERE own), 0)::bigint, coalesce(sum(usd) FILTER (WHERE own), 0),
       coalesce(sum(tokens) FILTER (WHERE this_month), 0)::bigint, coalesce(sum(usd) FILTER (WHERE this_month), 0)
FROM spent;

-- name: open
INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model)
VALUES (%(now)s, %(tenant)s, %(repository)s, %(run)s, %(purpose)s, %(provider)s, %(model)s)
RETURNING usage_id;

-- name: set_aside
UPDATE rag.usage AS u SET
    reserved_tokens = u.reserved_tokens + e.tokens,
    reserved_usd = (u.reserved_tokens + e.tokens) * %(price)s / 1e6,
    reserved_until = %(until)s
FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) AS e (usage_id, tokens)
WHERE u.usage_id = e.usage_id;

-- name: book
UPDATE rag.usage AS u SET
    used_at = greatest(u.used_at, %(now)s),
    tokens = u.tokens + e.tokens,
    cost_usd = (u.tokens + e.tokens) * %(price)s / 1e6,
    requests = u.requests + e.requests,
    seconds = u.seconds + e.seconds,
    reserved_tokens = greatest(u.reserved_tokens - e.released, 0),
    reserved_usd = greatest(u.reserved_tokens - e.released, 0) * %(price)s / 1e6,
    reserved_until = %(until)s
FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[], %(released)s::bigint[], %(requests)s::integer[],
            %(seconds)s::double precision[]) AS e (usage_id, tokens, released, requests, seconds)
WHERE u.usage_id = e.usage_id;

-- name: answered
-- What a language model was asked to write.
INSERT INTO rag.usage (used_at, tenant_id, repository, run_id, purpose, provider, model, requests, tokens, cost_usd)
VALUES (%(now)s, %(tenant)s, '', %(run)s, %(purpose)s, %(provider)s, %(model)s, 1, %(tokens)s, %(usd)s);

-- name: rate
-- How fast a model read, lately.
SELECT sum(tokens)::bigint, sum(seconds) FROM (
    SELECT tokens, seconds FROM rag.usage
    WHERE purpose = 'embedding' AND provider = %(provider)s AND model = %(model)s AND seconds > 0 AND tokens > 0
    ORDER BY usage_id DESC LIMIT 50
) AS recent;
