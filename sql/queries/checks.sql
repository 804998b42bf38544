-- name: passed_parts
SELECT tenant_id, repository, day, fingerprint
FROM rag.checked_parts
WHERE stage = %(stage)s AND day BETWEEN %(first)s AND %(last)s;

-- name: record_passed
INSERT INTO rag.checked_parts (stage, tenant_id, repository, day, fingerprint, checked_at)
SELECT %(stage)s, p.tenant_id, p.repository, p.day, p.fingerprint, %(now)s
FROM unnest(%(tenants)s::text[], %(repositories)s::text[], %(days)s::date[], %(fingerprints)s::text[])
    AS p (tenant_id, repository, day, fingerprint)
ORDER BY p.tenant_id, p.repository, p.day
ON CONFLICT (stage, tenant_id, repository, day)
DO UPDATE SET fingerprint = excluded.fingerprint, checked_at = excluded.checked_at;

-- name: last_passed
SELECT fingerprint, checked_at FROM rag.checked_parts
WHERE stage = %(stage)s AND tenant_id = %(tenant)s AND repository = %(repository)s AND day = %(day)s;

-- name: forget_passed
DELETE FROM rag.checked_parts
WHERE stage = %(stage)s AND tenant_id = %(tenant)s AND repository = %(repository)s AND day = %(day)s;
