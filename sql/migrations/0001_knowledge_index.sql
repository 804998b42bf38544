-- The knowledge index: documents, their chunks, embedding spaces, and what the pipeline remembers of its own work.
-- Applied inside one transaction by rag_pipeline.index.migrations. Never edit an applied migration: add the next one.

-- Not in `rag`: others who use this database may want it too.
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

DO $$
DECLARE
    present text := (SELECT extversion FROM pg_extension WHERE extname = 'vector');
BEGIN
    IF string_to_array(substring(present FROM '^\d+\.\d+'), '.')::integer[] < '{0,8}' THEN
        RAISE EXCEPTION 'pgvector is at version %: ALTER EXTENSION vector UPDATE may be all it needs', present
            USING ERRCODE = 'feature_not_supported';
    END IF;
END
$$;

-- The role that queries run under: it owns nothing and sees only its tenant's rows.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader') THEN
        CREATE ROLE rag_reader NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this cluster was first
END
$$;
-- Queries become the reader; since PostgreSQL 16 the right to create a role does not include the right to become it.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'rag_reader',
                       CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
        GRANT rag_reader TO CURRENT_USER;
    END IF;
END
$$;
GRANT USAGE ON SCHEMA rag TO rag_reader;

-- Whether the query that runs may see a row. A session that names no tenant sees nothing.
CREATE FUNCTION rag.visible(tenant_id text, scope text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN tenant_id = nullif(current_setting('rag.tenant_id', true), '')
        AND (scope IS NULL OR scope = ANY (nullif(current_setting('rag.scopes', true), '')::text[]));

CREATE TABLE rag.documents (
    document_id       uuid PRIMARY KEY,        -- hash(tenant, source type, source id)
    tenant_id         text NOT NULL,
    source_type       text NOT NULL,           -- docs, code, ...
    source_id         text NOT NULL,           -- repository:path for files
    repository        text NOT NULL,
    scope             text,                    -- user:..., visitor:..., contact:...; NULL: all of the tenant
    path              text,
    language          text,
    title             text,
    url               text,                    -- for people, without a fragment
    anchor            text,                    -- fragment template for lines: {start}, {end}
    metadata          jsonb NOT NULL DEFAULT '{}',
    content_hash      uuid NOT NULL,
    fingerprint       text NOT NULL,           -- of the cleaning and chunking that made its chunks
    state_hash        uuid NOT NULL,           -- of all that the index shows of it: equal means nothing to write
    source_updated_at timestamptz NOT NULL,    -- with observed_at: which of two states is newer
    observed_at       timestamptz NOT NULL,
    deleted           boolean NOT NULL DEFAULT false, -- a tombstone stays, so that a late backfill cannot resurrect the dead
    indexed_at        timestamptz NOT NULL DEFAULT now()
);
-- Unique already, by document_id. A second unique index would make two writers of a new document collide, because
-- ON CONFLICT waits for the other at one index only.
CREATE INDEX documents_source ON rag.documents (tenant_id, source_type, source_id);
CREATE INDEX documents_live ON rag.documents (tenant_id, repository, source_type) WHERE NOT deleted;

CREATE TABLE rag.chunks (
    chunk_id     uuid PRIMARY KEY,             -- hash(document, text, occurrence)
    document_id  uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    tenant_id    text NOT NULL,
    scope        text,
    position     integer NOT NULL,
    text         text NOT NULL,
    text_hash    uuid NOT NULL,                -- key of its vector in every embedding space
    heading_path text[] NOT NULL,
    start_char   integer NOT NULL,
    end_char     integer NOT NULL,
    start_line   integer NOT NULL,
    end_line     integer NOT NULL,
    tokens       integer NOT NULL
);
CREATE INDEX chunks_document ON rag.chunks (document_id, position);
CREATE INDEX chunks_text_hash ON rag.chunks (text_hash, tenant_id);

CREATE TABLE rag.embedding_spaces (
    space_id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider     text NOT NULL,
    model        text NOT NULL,
    dimensions   integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    recipe       text NOT NULL,
    status       text NOT NULL DEFAULT 'building' CHECK (status IN ('building', 'active', 'retired')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    activated_at timestamptz,
    UNIQUE (provider, model, dimensions, recipe)
);
CREATE UNIQUE INDEX embedding_spaces_one_active ON rag.embedding_spaces (status) WHERE status = 'active';

-- One narrow vector table per space (rag.vectors_1, ...), so that writing text or metadata never touches the graph.
-- Its HNSW index is built after the first bulk load, by rag_pipeline.index.spaces.
CREATE FUNCTION rag.create_vector_table(space_id integer, dimensions integer) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE TABLE rag.vectors_%s (
             text_hash uuid NOT NULL,
             tenant_id text NOT NULL,
             embedding halfvec(%s) NOT NULL,
             PRIMARY KEY (text_hash, tenant_id)
         )', space_id, dimensions);
    EXECUTE format('ALTER TABLE rag.vectors_%s ALTER COLUMN embedding SET STORAGE PLAIN', space_id);
    EXECUTE format('ALTER TABLE rag.vectors_%s ENABLE ROW LEVEL SECURITY', space_id);
    EXECUTE format('CREATE POLICY tenant ON rag.vectors_%s FOR SELECT TO rag_reader USING (rag.visible(tenant_id, NULL))', space_id);
    EXECUTE format('GRANT SELECT ON rag.vectors_%s TO rag_reader', space_id);
END
$$;

-- How far a source has been indexed without a gap, and under which settings.
CREATE TABLE rag.source_progress (
    tenant_id   text NOT NULL,
    repository  text NOT NULL,
    source      text NOT NULL,                 -- git, ...
    position    text NOT NULL,                 -- a commit for git
    position_at timestamptz NOT NULL,
    fingerprint text NOT NULL,
    space_id    integer NOT NULL REFERENCES rag.embedding_spaces ON DELETE CASCADE,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, repository, source, space_id)
);

-- Lake parts that a stage has stored in this database: an unchanged part costs one look-up.
CREATE TABLE rag.stored_parts (
    stage       text NOT NULL,                 -- embeddings or knowledge_index
    tenant_id   text NOT NULL,
    repository  text NOT NULL,
    day         date NOT NULL,
    space_id    integer NOT NULL REFERENCES rag.embedding_spaces ON DELETE CASCADE,
    fingerprint text NOT NULL,
    stored_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space_id, stage, tenant_id, repository, day)
);

-- Items that could not be processed: never lost, retried by the next run.
CREATE TABLE rag.ingestion_failures (
    tenant_id       text NOT NULL,
    source_type     text NOT NULL,
    source_id       text NOT NULL,
    stage           text NOT NULL,
    repository      text NOT NULL,
    day             date NOT NULL,
    source_updated_at timestamptz NOT NULL,    -- of the state that failed: a newer one in the index settles it
    reason          text NOT NULL,
    attempts        integer NOT NULL DEFAULT 1,
    first_failed_at timestamptz NOT NULL DEFAULT now(),
    last_failed_at  timestamptz NOT NULL DEFAULT now(),
    resolved_at     timestamptz,
    PRIMARY KEY (tenant_id, source_type, source_id, stage)
);
CREATE INDEX ingestion_failures_open ON rag.ingestion_failures (tenant_id, repository, day) WHERE resolved_at IS NULL;

-- Row-level security on every table; the reader gets policies only on what queries need.
ALTER TABLE rag.documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.embedding_spaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.source_progress ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.stored_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.ingestion_failures ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON rag.documents FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY tenant ON rag.chunks FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY everyone ON rag.embedding_spaces FOR SELECT TO rag_reader USING (true);
GRANT SELECT ON rag.documents, rag.chunks, rag.embedding_spaces TO rag_reader;
