-- name: add
INSERT INTO rag.requests_served AS served (tenant_id, month, requests)
VALUES (%(tenant)s, %(month)s, %(requests)s)
ON CONFLICT (tenant_id, month) DO UPDATE SET requests = served.requests + EXCLUDED.requests
RETURNING requests;

-- name: served
SELECT requests FROM rag.requests_served WHERE tenant_id = %(tenant)s AND month = %(month)s;
