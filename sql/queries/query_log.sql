-- name: insert
-- Twice, when it is not known whether the first time was committed.
INSERT INTO rag.query_log
    (query_id, tenant_id, asked_at, entrance, key_id, question, parameters, hits, outcome, confidence, milliseconds)
VALUES (%(query_id)s, %(tenant)s, %(asked_at)s, %(entrance)s, %(key_id)s, %(question)s, %(parameters)s, %(hits)s,
        %(outcome)s, %(confidence)s, %(milliseconds)s)
ON CONFLICT (query_id) DO NOTHING;

-- name: lock_query
-- Whether the chunk was among its hits, too; none was named: the answer as a whole is meant.
SELECT %(chunk_id)s::uuid IS NULL
       OR hits @> jsonb_build_array(jsonb_build_object('chunk_id', %(chunk_id)s::uuid::text))
FROM rag.query_log WHERE query_id = %(query_id)s AND tenant_id = %(tenant)s
FOR UPDATE;

-- name: delete_feedback
DELETE FROM rag.feedback
WHERE query_id = %(query_id)s AND tenant_id = %(tenant)s AND chunk_id IS NOT DISTINCT FROM %(chunk_id)s::uuid;

-- name: insert_feedback
INSERT INTO rag.feedback (query_id, tenant_id, given_at, chunk_id, helpful, reason)
VALUES (%(query_id)s, %(tenant)s, %(now)s, %(chunk_id)s, %(helpful)s, %(reason)s);

-- name: questions
-- Worst first: what people liked least, then what was left unanswered, then what was answered with the least confidence.
-- The page searches while somebody types: a search that the same asker goes on to write within 5 seconds was no question.
WITH votes AS (
    SELECT f.query_id, count(*) FILTER (WHERE f.helpful) AS helpful, count(*) FILTER (WHERE NOT f.helpful) AS unhelpful,
           array_agg(f.reason ORDER BY f.given_at DESC) FILTER (WHERE NOT f.helpful AND f.reason <> '') AS reasons
    FROM rag.feedback AS f
    GROUP BY f.query_id
), logged AS (
    SELECT q.*, lead(q.question) OVER asker AS next_question, lead(q.asked_at) OVER asker AS next_asked_at
    FROM rag.query_log AS q
    WHERE q.asked_at >= %(since)s AND (%(tenant)s::text IS NULL OR q.tenant_id = %(tenant)s)
    WINDOW asker AS (PARTITION BY q.tenant_id, q.key_id ORDER BY q.asked_at, q.query_id)
), grouped AS (
    SELECT q.tenant_id, (array_agg(q.question ORDER BY q.asked_at DESC))[1] AS question, count(*) AS asked,
           max(q.asked_at) AS last_asked_at,
           count(*) FILTER (WHERE q.outcome IN ('nothing_found', 'unknown', 'unsupported')) AS unanswered,
           avg(q.confidence) AS confidence, coalesce(sum(v.helpful), 0)::bigint AS helpful,
           coalesce(sum(v.unhelpful), 0)::bigint AS unhelpful,
           array_remove(array_agg(v.reasons[1] ORDER BY q.asked_at DESC), NULL) AS reasons
    FROM logged AS q
    LEFT JOIN votes AS v USING (query_id)
    WHERE v.query_id IS NOT NULL
       OR (q.entrance = 'search' AND q.next_asked_at <= q.asked_at + interval '5 seconds'
           AND length(btrim(q.next_question)) > length(btrim(q.question))
           AND starts_with(lower(btrim(q.next_question)), lower(btrim(q.question)))) IS NOT TRUE
    GROUP BY q.tenant_id, lower(btrim(q.question))
)
SELECT tenant_id, question, asked, last_asked_at, unanswered, confidence, helpful, unhelpful, reasons
FROM grouped
ORDER BY unhelpful - helpful DESC, unanswered::float8 / asked DESC, confidence NULLS LAST, asked DESC, last_asked_at DESC
LIMIT %(limit)s;

-- name: helpful_hits
-- Of the chunks that more people called helpful than not: where they are now, or their documents when they are no more.
WITH judged AS (
    SELECT lower(btrim(q.question)) AS asked, f.chunk_id, (hit ->> 'document_id')::uuid AS document_id,
           max(q.asked_at) AS last_asked_at, (array_agg(q.question ORDER BY q.asked_at DESC))[1] AS question
    FROM rag.feedback AS f
    JOIN rag.query_log AS q USING (query_id)
    CROSS JOIN LATERAL jsonb_array_elements(q.hits) AS hit
    WHERE f.tenant_id = %(tenant)s AND q.tenant_id = %(tenant)s AND NOT q.parameters ? 'scopes'
      AND hit ->> 'chunk_id' = f.chunk_id::text
    GROUP BY 1, 2, 3
    HAVING count(*) FILTER (WHERE f.helpful) > count(*) FILTER (WHERE NOT f.helpful)
), newest AS (
    SELECT asked, (array_agg(question ORDER BY last_asked_at DESC))[1] AS question, max(last_asked_at) AS last_asked_at
    FROM judged GROUP BY asked ORDER BY last_asked_at DESC, asked LIMIT %(limit)s
)
SELECT DISTINCT n.question, d.source_type, d.source_id, c.start_line, c.end_line, n.last_asked_at
FROM newest AS n
JOIN judged AS j USING (asked)
JOIN rag.documents AS d ON d.document_id = j.document_id AND d.tenant_id = %(tenant)s
LEFT JOIN rag.chunks AS c ON c.chunk_id = j.chunk_id
WHERE NOT d.deleted AND d.scope IS NULL
ORDER BY n.last_asked_at DESC, n.question, d.source_type, d.source_id, c.start_line;

-- name: remove_old
DELETE FROM rag.query_log WHERE asked_at < %(before)s;

-- name: all_queries
SELECT q.query_id, q.tenant_id, q.question, q.parameters,
       ARRAY(SELECT DISTINCT (hit ->> 'document_id')::uuid FROM jsonb_array_elements(q.hits) AS hit),
       EXISTS (SELECT FROM jsonb_array_elements(q.hits) AS hit
               WHERE NOT EXISTS (SELECT FROM rag.documents AS d WHERE d.document_id = (hit ->> 'document_id')::uuid)),
       (SELECT count(*) FROM rag.feedback AS f WHERE f.query_id = q.query_id)
FROM rag.query_log AS q
WHERE q.tenant_id = ANY (%(tenants)s);

-- name: remove
-- Feedback goes with it.
DELETE FROM rag.query_log WHERE query_id = ANY (%(ids)s);
