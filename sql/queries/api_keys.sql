-- name: add
INSERT INTO rag.api_keys (key_id, tenant_id, name, secret_hash, role, scopes, created_at, expires_at)
VALUES (%(key_id)s, %(tenant)s, %(name)s, %(secret_hash)s, %(role)s, %(scopes)s, %(now)s, %(expires_at)s);

-- name: one
SELECT key_id, tenant_id, name, role, scopes, created_at, expires_at, revoked_at, last_used_at, secret_hash
FROM rag.api_keys WHERE key_id = %(key_id)s;

-- name: all
SELECT key_id, tenant_id, name, role, scopes, created_at, expires_at, revoked_at, last_used_at
FROM rag.api_keys ORDER BY tenant_id, created_at, key_id;

-- name: note_use
-- Many requests at once find the same old moment: one of them writes.
UPDATE rag.api_keys SET last_used_at = %(now)s
WHERE key_id = %(key_id)s AND (last_used_at IS NULL OR last_used_at <= %(before)s);

-- name: revoke
UPDATE rag.api_keys SET revoked_at = %(now)s WHERE key_id = %(key_id)s AND revoked_at IS NULL;
