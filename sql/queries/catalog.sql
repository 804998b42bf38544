-- name: tables
SELECT c.relname, c.relrowsecurity, r.oid IS NOT NULL AND c.relowner = r.oid AS owned,
       coalesce(has_table_privilege(r.oid, c.oid, 'SELECT'), false) AS readable,
       coalesce(has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE, REFERENCES'), false) AS writable
FROM pg_class AS c
LEFT JOIN pg_roles AS r ON r.rolname = 'rag_reader'
WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY c.relname;

-- name: indexes
SELECT t.relname, c.relname, i.indisvalid AND i.indisready AND i.indislive
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_class AS t ON t.oid = i.indrelid
WHERE t.relnamespace = 'rag'::regnamespace AND t.relkind IN ('r', 'p')
ORDER BY c.relname;

-- name: policies
SELECT c.relname, p.polname, pg_get_expr(p.polqual, p.polrelid),
       p.polcmd = 'r' AND p.polroles = ARRAY (SELECT oid FROM pg_roles WHERE rolname = 'rag_reader')
FROM pg_policy AS p
JOIN pg_class AS c ON c.oid = p.polrelid
WHERE c.relnamespace = 'rag'::regnamespace
ORDER BY c.relname, p.polname;

-- name: reader
SELECT r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,
       has_schema_privilege(r.oid, 'rag', 'CREATE'),
       ARRAY (SELECT pg_get_userbyid(m.roleid)::text FROM pg_auth_members AS m WHERE m.member = r.oid),
       ARRAY (SELECT c.oid::regclass::text FROM pg_class AS c
              WHERE c.relowner = r.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') LIMIT 10)
FROM pg_roles AS r WHERE r.rolname = 'rag_reader';

-- name: shows_anything
-- Asked as the reader, who has named no tenant.
SELECT EXISTS (SELECT FROM rag.{name});
