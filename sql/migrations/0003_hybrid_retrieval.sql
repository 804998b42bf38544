-- The lexical leg: exact BM25 over postings in plain PostgreSQL.
--
-- A chunk gets a number, because postings name chunks by the thousand; it keeps the number for as long as it lives.
ALTER TABLE rag.chunks ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 4294967295);
CREATE UNIQUE INDEX chunks_number ON rag.chunks (number);

-- One batch of changes to the chunks of one tenant and scope: what it added and what it took away, never edited again.
-- All of them together are the index; maintenance merges several into one.
CREATE TABLE rag.segments (
    segment_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id      text NOT NULL,
    scope          text,
    analyzer       integer NOT NULL,
    chunks         integer NOT NULL,
    terms          bigint NOT NULL,
    removed_chunks integer NOT NULL,
    removed_terms  bigint NOT NULL,
    removed        bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX segments_tenant ON rag.segments (tenant_id, scope);

CREATE TABLE rag.postings (
    segment_id bigint NOT NULL REFERENCES rag.segments ON DELETE CASCADE,
    term       text COLLATE "C" NOT NULL,
    chunks     integer NOT NULL,
    removed    integer NOT NULL DEFAULT 0,
    entries    bytea NOT NULL,
    PRIMARY KEY (segment_id, term)
);
ALTER TABLE rag.postings ALTER COLUMN entries SET STORAGE EXTERNAL;

-- What a document says of others: a pull request of the issues it closes and the files it changed.
CREATE TABLE rag.links (
    document_id uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    kind        text NOT NULL,
    target      text NOT NULL,
    tenant_id   text NOT NULL,
    scope       text,
    PRIMARY KEY (document_id, kind, target)
);
CREATE INDEX links_target ON rag.links (tenant_id, target);

-- Filters on author, label, state and other metadata.
CREATE INDEX documents_metadata ON rag.documents USING gin (metadata jsonb_path_ops);

-- How good a space was at answering labelled questions, and when.
CREATE TABLE rag.evaluations (
    evaluation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    evaluated_at  timestamptz NOT NULL,
    tenant_id     text NOT NULL,
    dataset       text NOT NULL,
    labels_hash   text NOT NULL,
    space_id      integer NOT NULL REFERENCES rag.embedding_spaces ON DELETE CASCADE,
    queries       integer NOT NULL,
    metrics       jsonb NOT NULL,
    per_query     jsonb NOT NULL
);
CREATE INDEX evaluations_dataset ON rag.evaluations (tenant_id, dataset, evaluated_at);

ALTER TABLE rag.embedding_spaces ADD COLUMN retired_at timestamptz;

ALTER TABLE rag.segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.postings ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.links ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.evaluations ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON rag.segments FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY tenant ON rag.postings FOR SELECT TO rag_reader USING (segment_id IN (SELECT segment_id FROM rag.segments));
CREATE POLICY tenant ON rag.links FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
GRANT SELECT ON rag.segments, rag.postings, rag.links TO rag_reader;
