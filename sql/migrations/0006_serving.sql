-- Who may ask, what was asked, what people thought of it, and that something changed since.

CREATE TABLE rag.api_keys (
    key_id          text PRIMARY KEY,
    tenant_id       text NOT NULL,
    name            text NOT NULL,
    secret_hash     bytea NOT NULL,
    role            text NOT NULL CHECK (role IN ('read', 'write')),
    scopes          text[] NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,
    revoked_at      timestamptz,
    last_used_at    timestamptz
);
CREATE INDEX api_keys_tenant ON rag.api_keys (tenant_id);

CREATE TABLE rag.requests_served (
    tenant_id text NOT NULL,
    month     date NOT NULL,
    requests  bigint NOT NULL,
    PRIMARY KEY (tenant_id, month)
);

CREATE TABLE rag.query_log (
    query_id     uuid PRIMARY KEY,
    tenant_id    text NOT NULL,
    asked_at     timestamptz NOT NULL,
    entrance     text NOT NULL,
    key_id       text,
    question     text NOT NULL,
    parameters   jsonb NOT NULL DEFAULT '{}',
    hits         jsonb NOT NULL DEFAULT '[]',
    outcome      text NOT NULL,
    confidence   double precision,
    milliseconds integer NOT NULL
);
CREATE INDEX query_log_tenant ON rag.query_log (tenant_id, asked_at);

CREATE TABLE rag.feedback (
    feedback_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    query_id    uuid NOT NULL REFERENCES rag.query_log ON DELETE CASCADE,
    tenant_id   text NOT NULL,
    given_at    timestamptz NOT NULL,
    chunk_id    uuid,
    helpful     boolean NOT NULL,
    reason      text NOT NULL DEFAULT ''
);
CREATE INDEX feedback_query ON rag.feedback (query_id);

CREATE TABLE rag.index_changes (
    change_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text,
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX index_changes_tenant ON rag.index_changes (tenant_id);

CREATE FUNCTION rag.note_changed_documents() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rag.index_changes (tenant_id) SELECT DISTINCT tenant_id FROM changed;
    RETURN NULL;
END
$$;

CREATE TRIGGER documents_inserted AFTER INSERT ON rag.documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_changed_documents();
CREATE TRIGGER documents_updated AFTER UPDATE ON rag.documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_changed_documents();
CREATE TRIGGER documents_deleted AFTER DELETE ON rag.documents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_changed_documents();

CREATE FUNCTION rag.note_changed_spaces() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rag.index_changes (tenant_id) SELECT NULL WHERE EXISTS (SELECT FROM changed);
    RETURN NULL;
END
$$;

CREATE TRIGGER embedding_spaces_updated AFTER UPDATE ON rag.embedding_spaces
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_changed_spaces();

ALTER TABLE rag.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.requests_served ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.query_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.feedback ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.index_changes ENABLE ROW LEVEL SECURITY;
