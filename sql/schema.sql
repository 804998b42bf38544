-- The data model, to be read in one sitting. The files in sql/migrations build it; a test proves that both are the same.
--
--   documents ──< chunks ──(text_hash, tenant_id)── vectors_N    one vector table per embedding space
--                                                      │
--   embedding_spaces ──────────────────────────────────┘
--     ├──< source_progress, stored_parts     what the pipeline remembers of its own work
--     ├──< evaluations                       how good it was at answering labelled questions
--     └──< embedding_claims                  texts that runs embed just now
--   segments ──< postings                    which chunks hold a term: exact BM25
--   windows_read · ingestion_failures        what runs have read ahead, and what could not be processed
--   checked_parts · source_freshness · usage · index_sizes · forgotten
--                                            what was checked, how fresh it is, what it cost, how it grew, what stays out
--   freshness                                a view of it for people
--   api_keys · requests_served · query_log ──< feedback · index_changes
--                                            who may ask, what was asked and what people thought of it, what changed since
--
-- Identity is computed, never numbered: the same source item has the same document_id on every machine, and the same
-- text the same text_hash. So the same work done twice, or in another order, ends in the same rows.

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
-- Where the server has it: misspelt words of questions are tried by similar ones.
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
CREATE SCHEMA rag;

-- Who may see what --------------------------------------------------------------------------------------------------

-- Queries run under this role: it owns nothing, writes nothing, and sees one tenant at a time. The role that
-- migrates owns the tables and is a member of it. A role belongs to the whole server, so it may be there already.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader') THEN
        CREATE ROLE rag_reader NOLOGIN;
    END IF;
END
$$;
GRANT USAGE ON SCHEMA rag TO rag_reader;

-- The predicate of every policy. A transaction names its tenant and scopes before it reads:
--     SET LOCAL ROLE rag_reader; SET LOCAL rag.tenant_id = 'acme'; SET LOCAL rag.scopes = '{user:ada}';
-- One that names no tenant sees nothing; a row with a scope is seen only by those who name that scope.
CREATE FUNCTION rag.visible(tenant_id text, scope text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN tenant_id = nullif(current_setting('rag.tenant_id', true), '')
        AND (scope IS NULL OR scope = ANY (nullif(current_setting('rag.scopes', true), '')::text[]));

-- Knowledge ---------------------------------------------------------------------------------------------------------

-- One row per thing in a source: a file, an issue with its thread, a dropped document. What was deleted keeps its row.
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
    source_updated_at timestamptz NOT NULL,    -- when it last changed, as the source shows it
    observed_at       timestamptz NOT NULL,
    deleted           boolean NOT NULL DEFAULT false, -- a tombstone stays, so that a late backfill cannot resurrect the dead
    indexed_at        timestamptz NOT NULL DEFAULT now(),
    as_of             timestamptz NOT NULL     -- with observed_at: which of two states is newer; the newer one stays
);
-- Unique already, by document_id. A second unique index would make two writers of a new document collide, because
-- ON CONFLICT waits for the other at one index only.
CREATE INDEX documents_source ON rag.documents (tenant_id, source_type, source_id);
CREATE INDEX documents_live ON rag.documents (tenant_id, repository, source_type) WHERE NOT deleted;

-- Spans of a document that can stand alone: what is embedded, found and cited. They change with their document, in
-- one transaction; a chunk whose text stays keeps its id, and with it its vector.
CREATE TABLE rag.chunks (
    chunk_id     uuid PRIMARY KEY,             -- hash(document, text, occurrence)
    document_id  uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    tenant_id    text NOT NULL,
    scope        text,
    position     integer NOT NULL,             -- order in the document, from 0
    text         text NOT NULL,
    text_hash    uuid NOT NULL,                -- key of its vector in every embedding space
    heading_path text[] NOT NULL,              -- headings, or enclosing symbols of code, outermost first
    start_char   integer NOT NULL,             -- in the cleaned text
    end_char     integer NOT NULL,
    start_line   integer NOT NULL,             -- in the source, from 1, inclusive
    end_line     integer NOT NULL,
    tokens       integer NOT NULL,             -- of the embedding model
    anchor       text,                         -- of the section (comment) it came from, in place of the document's
    lead         text NOT NULL DEFAULT '',     -- words before the text that the lexical leg sees, too
    -- What postings call it; new whenever lead or scope change, so that under a number they never do.
    number       bigint GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 4294967295)
);
CREATE INDEX chunks_document ON rag.chunks (document_id, position);
CREATE INDEX chunks_text_hash ON rag.chunks (text_hash, tenant_id);
CREATE UNIQUE INDEX chunks_number ON rag.chunks (number);

-- What a document says of others: a pull request of the issues it closes and the files it changed.
CREATE TABLE rag.links (
    document_id uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    kind        text NOT NULL,                 -- closes, mentions, changes, merged_as; is: its own name
    target      text NOT NULL,                 -- owner/name#1, repository:path or owner/name@commit
    tenant_id   text NOT NULL,
    scope       text,
    PRIMARY KEY (document_id, kind, target)
);
CREATE INDEX links_target ON rag.links (tenant_id, target);

-- Words -------------------------------------------------------------------------------------------------------------

-- One batch of changes to the chunks of one tenant and scope: what it added and what it took away, never edited again.
-- All of them together are the lexical index; maintenance merges several into one. Counts of what is alive are sums
-- over segments: added minus removed.
CREATE TABLE rag.segments (
    segment_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id      text NOT NULL,
    scope          text,
    analyzer       integer NOT NULL,           -- version of what made terms of texts
    chunks         integer NOT NULL,           -- added by this segment
    terms          bigint NOT NULL,            -- in them: their lengths, summed up
    removed_chunks integer NOT NULL,           -- taken away by it, from whichever segment
    removed_terms  bigint NOT NULL,
    -- Of each chunk: number (uint32, little endian) and length in terms (uint16), by number. STORAGE EXTERNAL.
    added          bytea NOT NULL,
    removed        bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX segments_tenant ON rag.segments (tenant_id, scope);

-- Which chunks a term occurs in.
CREATE TABLE rag.postings (
    segment_id bigint NOT NULL REFERENCES rag.segments ON DELETE CASCADE,
    term       text COLLATE "C" NOT NULL,
    chunks     integer NOT NULL,               -- added with this term
    removed    integer NOT NULL DEFAULT 0,     -- taken away with this term
    -- Of each chunk added: number (uint32), occurrences (uint16) and the chunk's length in terms (uint16), by number.
    entries    bytea NOT NULL,                 -- STORAGE EXTERNAL: never compressed
    PRIMARY KEY (segment_id, term)
);
ALTER TABLE rag.segments ALTER COLUMN added SET STORAGE EXTERNAL;
ALTER TABLE rag.segments ALTER COLUMN removed SET STORAGE EXTERNAL;
ALTER TABLE rag.postings ALTER COLUMN entries SET STORAGE EXTERNAL;

-- Vectors -----------------------------------------------------------------------------------------------------------

-- All vectors that may be compared with each other. A new model gets a new space beside the active one.
CREATE TABLE rag.embedding_spaces (
    space_id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider     text NOT NULL,
    model        text NOT NULL,
    dimensions   integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    recipe       text NOT NULL,                -- how a text is made into the model's input
    status       text NOT NULL DEFAULT 'building' CHECK (status IN ('building', 'active', 'retired')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    activated_at timestamptz,
    retired_at   timestamptz,
    config       jsonb,                        -- the settings that make its vectors, to feed and to ask it; no secrets
    partitions   integer NOT NULL DEFAULT 1 CHECK (partitions BETWEEN 1 AND 256), -- tables that its vectors lie in
    graph        text NOT NULL DEFAULT 'vectors' CHECK (graph IN ('vectors', 'codes')), -- what its graph is built over
    code_trained_on integer,                   -- vectors that the thresholds of its codes were taken from
    UNIQUE (provider, model, dimensions, recipe)
);
CREATE UNIQUE INDEX embedding_spaces_one_active ON rag.embedding_spaces (status) WHERE status = 'active';

-- Makes the narrow vector table of a space, so that writing text or metadata never touches the graph.
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

-- For space 1 with 384 dimensions that is
--
--     CREATE TABLE rag.vectors_1 (
--         text_hash uuid NOT NULL,            -- of chunks.text: equal texts share one vector
--         tenant_id text NOT NULL,            -- a vector is visible to the tenants that have its text
--         embedding halfvec(384),             -- STORAGE PLAIN: in the row; NULL: a text that the model cannot read
--         PRIMARY KEY (text_hash, tenant_id)
--     );
--
-- and, after its first bulk load (rag_pipeline.index.graph), kept up row by row from then on:
--
--     ALTER TABLE rag.vectors_1
--         ADD COLUMN code bit(1152) GENERATED ALWAYS AS (rag.vectors_1_code(embedding)::bit(1152)) STORED,
--         ALTER COLUMN code SET STORAGE PLAIN;
--     CREATE INDEX vectors_1_hnsw ON rag.vectors_1 USING hnsw (code bit_hamming_ops)
--         WITH (m = 16, ef_construction = 64);
--
-- or, where its graph is over the vectors themselves (embedding_spaces.graph = 'vectors'):
--
--     CREATE INDEX vectors_1_hnsw ON rag.vectors_1 USING hnsw (embedding halfvec_cosine_ops)
--         WITH (m = 16, ef_construction = 100);

-- Makes the function that turns a space's vectors into codes: for each threshold and dimension one bit, whether the unit
-- vector lies above it. It holds its thresholds itself: what is stored by it never changes.
-- `normalised`: vectors are unit vectors already.
CREATE FUNCTION rag.create_code(name text, thresholds text[], normalised boolean) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    home text := (SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
                  WHERE e.extname = 'vector');
    bits text := (SELECT string_agg(format('%s.binary_quantize(unit OPERATOR(%s.-) %L::%s.halfvec)', home, home, value, home),
                                    ' || ' ORDER BY place)
                  FROM unnest(thresholds) WITH ORDINALITY AS t (value, place));
    whole text := CASE WHEN normalised THEN '' ELSE format('unit := %s.l2_normalize(unit); ', home) END;
BEGIN
    EXECUTE format(
        'CREATE FUNCTION rag.%I(unit %s.halfvec) RETURNS bit LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS %L',
        name, home, format('BEGIN %sRETURN %s; END', whole, bits));
    EXECUTE format('GRANT EXECUTE ON FUNCTION rag.%I TO rag_reader', name);
END
$$;

-- The same under any name, in several tables by the hash of the text, each with a graph of its own: what is written and
-- asked names the whole. Only through it is a partition read, so only its policy counts.
CREATE FUNCTION rag.create_vector_tables(name text, dimensions integer, partitions integer) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    whole text := CASE WHEN partitions > 1 THEN ' PARTITION BY HASH (text_hash)' ELSE '' END;
    part text;
BEGIN
    EXECUTE format(
        'CREATE TABLE rag.%I (
             text_hash uuid NOT NULL,
             tenant_id text NOT NULL,
             embedding halfvec(%s),
             PRIMARY KEY (text_hash, tenant_id)
         )', name, dimensions) || whole;
    EXECUTE format('ALTER TABLE rag.%I ALTER COLUMN embedding SET STORAGE PLAIN', name);
    EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON rag.%I FOR SELECT TO rag_reader USING (rag.visible(tenant_id, NULL))', name);
    EXECUTE format('GRANT SELECT ON rag.%I TO rag_reader', name);
    FOR number IN 0 .. CASE WHEN partitions > 1 THEN partitions - 1 ELSE -1 END LOOP
        part := name || '_p' || number;
        EXECUTE format('CREATE TABLE rag.%I PARTITION OF rag.%I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                       part, name, partitions, number);
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', part);
    END LOOP;
END
$$;

-- Lets tables that were made so take the place of others, with all that belongs to them.
CREATE FUNCTION rag.replace_vector_tables(present text, successor text) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    relation name;
BEGIN
    EXECUTE format('DROP TABLE rag.%I', present);
    FOR relation IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'rag'::regnamespace AND (relname = successor OR starts_with(relname, successor || '_'))
    LOOP
        EXECUTE format('ALTER TABLE rag.%I RENAME TO %I', relation, present || substr(relation, length(successor) + 1));
    END LOOP;
END
$$;

-- Texts that runs embed just now, so that two runs do not embed and pay for the same one. A claim counts while the session
-- that made it holds the advisory lock (1380009815, run), and for an hour at most: a run that is killed frees its claims.
CREATE TABLE rag.embedding_claims (
    space_id   integer NOT NULL,
    text_hash  uuid NOT NULL,
    run        integer NOT NULL,               -- second key of the lock
    claimed_at timestamptz NOT NULL,
    PRIMARY KEY (space_id, text_hash)
);
CREATE INDEX embedding_claims_run ON rag.embedding_claims (run);

-- How good a space was at answering labelled questions, and when.
CREATE TABLE rag.evaluations (
    evaluation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    evaluated_at  timestamptz NOT NULL,
    tenant_id     text NOT NULL,
    dataset       text NOT NULL,
    labels_hash   text NOT NULL,               -- figures for other labels cannot be compared
    space_id      integer NOT NULL REFERENCES rag.embedding_spaces ON DELETE CASCADE,
    queries       integer NOT NULL,
    metrics       jsonb NOT NULL,              -- leg -> measure -> mean
    per_query     jsonb NOT NULL               -- leg -> query -> measure, to see which got worse
);
CREATE INDEX evaluations_dataset ON rag.evaluations (tenant_id, dataset, evaluated_at);

-- What the pipeline remembers of its own work -----------------------------------------------------------------------

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

-- Days of a source that runs have read wholly, kept until everything before them is in the index, too.
CREATE TABLE rag.windows_read (
    tenant_id   text NOT NULL,
    repository  text NOT NULL,
    source      text NOT NULL,                 -- git
    first_day   date NOT NULL,
    last_day    date NOT NULL,
    position    text NOT NULL,                 -- where the source stood at their end
    position_at timestamptz NOT NULL,
    fingerprint text NOT NULL,                 -- of the settings of that time
    PRIMARY KEY (tenant_id, repository, source, first_day, last_day)
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
    resolved_at     timestamptz,               -- NULL: still in quarantine
    accepted        text,                      -- why a person leaves this state of it out
    PRIMARY KEY (tenant_id, source_type, source_id, stage)
);
CREATE INDEX ingestion_failures_open ON rag.ingestion_failures (tenant_id, repository, day) WHERE resolved_at IS NULL;

-- Lake parts whose data passed its checks: an unchanged part costs one look-up.
CREATE TABLE rag.checked_parts (
    stage       text NOT NULL,
    tenant_id   text NOT NULL,
    repository  text NOT NULL,
    day         date NOT NULL,
    fingerprint text NOT NULL,                 -- of the data and of what is expected of it
    checked_at  timestamptz NOT NULL,
    PRIMARY KEY (stage, tenant_id, repository, day)
);

-- How fresh each source is: what it showed when it was last asked, and up to when nothing of it is missing.
CREATE TABLE rag.source_freshness (
    tenant_id      text NOT NULL,
    repository     text NOT NULL,
    source         text NOT NULL,              -- git, github, drops
    asked_at       timestamptz,                -- when it was last read, by a run or by the freshness sensor
    newest_item_at timestamptz,                -- its own high-water mark then
    complete_until timestamptz,                -- everything that it showed up to here is in the index
    indexed_at     timestamptz,                -- when a run last found or made it complete
    problem        text,                       -- why it could not be read the last time; NULL: it could
    covered_at     timestamptz,                -- the newest reading by a run that covered the day of its reading
    position_seen  text,                       -- where it stood when it was last read: a commit, a count of changes
    position_complete text,                    -- where it stood when everything that was read of it was in the index
    PRIMARY KEY (tenant_id, repository, source)
);

-- What was asked of models that cost something: rows per run, repository and purpose, one at least for each month.
CREATE TABLE rag.usage (
    usage_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    used_at    timestamptz NOT NULL,
    tenant_id  text NOT NULL,
    repository text NOT NULL,                  -- whose text it was; '' where no repository is to blame
    run_id     text NOT NULL,
    purpose    text NOT NULL,                  -- embedding, rerank, answer
    provider   text NOT NULL,
    model      text NOT NULL,
    requests   integer NOT NULL DEFAULT 0,
    tokens     bigint NOT NULL DEFAULT 0,
    cost_usd   double precision NOT NULL DEFAULT 0,
    seconds    double precision NOT NULL DEFAULT 0, -- during which the model ran
    -- Set aside for texts that are being sent just now; of a run that was killed it counts no more after a while.
    reserved_tokens bigint NOT NULL DEFAULT 0,
    reserved_usd    double precision NOT NULL DEFAULT 0,
    reserved_until  timestamptz
);
CREATE INDEX usage_tenant ON rag.usage (tenant_id, used_at);
CREATE INDEX usage_run ON rag.usage (run_id);

-- How large the index was at the end of a day (UTC).
CREATE TABLE rag.index_sizes (
    day         date NOT NULL,
    tenant_id   text NOT NULL,
    repository  text NOT NULL,
    source_type text NOT NULL,
    documents   bigint NOT NULL,
    chunks      bigint NOT NULL,
    tokens      bigint NOT NULL,
    PRIMARY KEY (day, tenant_id, repository, source_type)
);

-- What must never come back, by a hash of its name: the name itself is forgotten, too.
CREATE TABLE rag.forgotten (
    tenant_id    text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('document', 'repository', 'tenant', 'author')),
    name_hash    uuid NOT NULL,
    forgotten_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, kind, name_hash)
);

-- What `rag-pipeline status` shows of each source. Only the present counts here: a run over an old day moves nothing.
CREATE VIEW rag.freshness WITH (security_invoker = true) AS
SELECT s.tenant_id,
       s.repository,
       s.source,
       s.newest_item_at AS last_item_seen,
       s.asked_at AS last_asked,
       s.indexed_at AS last_indexed,
       s.complete_until,
       now() - s.complete_until AS lag,
       s.problem,
       (SELECT count(*) FROM rag.ingestion_failures AS f
        WHERE f.tenant_id = s.tenant_id AND f.repository = s.repository AND f.resolved_at IS NULL) AS failures_waiting,
       (SELECT coalesce(sum(u.cost_usd), 0) FROM rag.usage AS u
        WHERE u.tenant_id = s.tenant_id AND u.repository = s.repository
          AND u.used_at >= date_trunc('month', now(), 'UTC')) AS cost_this_month_usd,
       s.position_seen,
       s.position_complete
FROM rag.source_freshness AS s;

-- Answering ---------------------------------------------------------------------------------------------------------

-- Who may ask over HTTP. A key is `rag_<key_id>_<secret>`; of the secret only a hash is kept.
CREATE TABLE rag.api_keys (
    key_id          text PRIMARY KEY,          -- may be shown and logged
    tenant_id       text NOT NULL,
    name            text NOT NULL,             -- what it is for
    secret_hash     bytea NOT NULL,            -- SHA-256; the secret is random and long, so it needs no salt
    role            text NOT NULL CHECK (role IN ('read', 'write')), -- who may write may read, too
    scopes          text[] NOT NULL DEFAULT '{}', -- that its requests may name; `user:*` is every one that begins so
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,
    revoked_at      timestamptz,
    last_used_at    timestamptz
);
CREATE INDEX api_keys_tenant ON rag.api_keys (tenant_id);

-- How much of its quota a tenant has used.
CREATE TABLE rag.requests_served (
    tenant_id text NOT NULL,
    month     date NOT NULL,                   -- its first day (UTC)
    requests  bigint NOT NULL,
    PRIMARY KEY (tenant_id, month)
);

-- What was asked and what came of it, for evaluation; kept as long as the settings say.
CREATE TABLE rag.query_log (
    query_id     uuid PRIMARY KEY,
    tenant_id    text NOT NULL,
    asked_at     timestamptz NOT NULL,
    entrance     text NOT NULL,                -- search, ask, context, mcp
    key_id       text,                         -- NULL: asked without a key
    question     text NOT NULL,                -- secrets taken out
    parameters   jsonb NOT NULL DEFAULT '{}',  -- filters, scopes, k: what differs from the defaults
    hits         jsonb NOT NULL DEFAULT '[]',  -- [{document_id, chunk_id, rank, score}], best first
    outcome      text NOT NULL,                -- found, nothing_found, or the status of an answer
    confidence   double precision,             -- of an answer
    milliseconds integer NOT NULL
);
CREATE INDEX query_log_tenant ON rag.query_log (tenant_id, asked_at);

-- Thumbs up and down, on an answer or on one of its hits.
CREATE TABLE rag.feedback (
    feedback_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    query_id    uuid NOT NULL REFERENCES rag.query_log ON DELETE CASCADE,
    tenant_id   text NOT NULL,
    given_at    timestamptz NOT NULL,
    chunk_id    uuid,                          -- NULL: on the whole answer
    helpful     boolean NOT NULL,
    reason      text NOT NULL DEFAULT ''
);
CREATE INDEX feedback_query ON rag.feedback (query_id);

-- A row for each statement that changed what a search of a tenant may find: what is cached is good until there are other
-- rows (the newest number is not enough: a lower one may be committed later). Written by triggers, so that no way of
-- writing can forget it, and only ever inserted, so that writers do not wait for each other; who has written, and
-- maintenance, take away all but the newest.
CREATE TABLE rag.index_changes (
    change_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text,                           -- NULL: of everybody, as when a space is promoted
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

-- Which migrations this database has; made by rag_pipeline.index.migrations before the first of them.
CREATE TABLE rag.schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,                  -- SHA-256 of the file: an applied migration is never edited
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Row-level security ------------------------------------------------------------------------------------------------

-- On every table; the reader gets policies and grants only where queries need them, so of all others it sees nothing.
ALTER TABLE rag.documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.embedding_spaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.source_progress ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.windows_read ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.stored_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.ingestion_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.schema_migrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.postings ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.links ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.embedding_claims ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.evaluations ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.checked_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.source_freshness ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.index_sizes ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.forgotten ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.requests_served ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.query_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.feedback ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.index_changes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON rag.documents FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY tenant ON rag.chunks FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY tenant ON rag.segments FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY tenant ON rag.postings FOR SELECT TO rag_reader USING (segment_id IN (SELECT segment_id FROM rag.segments));
CREATE POLICY tenant ON rag.links FOR SELECT TO rag_reader USING (rag.visible(tenant_id, scope));
CREATE POLICY everyone ON rag.embedding_spaces FOR SELECT TO rag_reader USING (true);
GRANT SELECT ON rag.documents, rag.chunks, rag.embedding_spaces, rag.segments, rag.postings, rag.links TO rag_reader;
