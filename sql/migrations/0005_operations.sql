-- What the pipeline remembers so that people can trust it: what was checked, how fresh each source is, what it cost,
-- how it grew, and what must never come back.

-- Lake parts whose data passed its checks: an unchanged part costs one look-up.
CREATE TABLE rag.checked_parts (
    stage       text NOT NULL,
    tenant_id   text NOT NULL,
    repository  text NOT NULL,
    day         date NOT NULL,
    fingerprint text NOT NULL,
    checked_at  timestamptz NOT NULL,
    PRIMARY KEY (stage, tenant_id, repository, day)
);

CREATE TABLE rag.source_freshness (
    tenant_id      text NOT NULL,
    repository     text NOT NULL,
    source         text NOT NULL,
    asked_at       timestamptz,
    newest_item_at timestamptz,
    complete_until timestamptz,
    indexed_at     timestamptz,
    problem        text,
    PRIMARY KEY (tenant_id, repository, source)
);

CREATE TABLE rag.usage (
    usage_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    used_at    timestamptz NOT NULL,
    tenant_id  text NOT NULL,
    repository text NOT NULL,
    run_id     text NOT NULL,
    purpose    text NOT NULL,
    provider   text NOT NULL,
    model      text NOT NULL,
    requests   integer NOT NULL DEFAULT 0,
    tokens     bigint NOT NULL DEFAULT 0,
    cost_usd   double precision NOT NULL DEFAULT 0,
    seconds    double precision NOT NULL DEFAULT 0,
    reserved_tokens bigint NOT NULL DEFAULT 0,
    reserved_usd    double precision NOT NULL DEFAULT 0,
    reserved_until  timestamptz
);
CREATE INDEX usage_tenant ON rag.usage (tenant_id, used_at);
CREATE INDEX usage_run ON rag.usage (run_id);

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

CREATE TABLE rag.forgotten (
    tenant_id    text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('document', 'repository', 'tenant', 'author')),
    name_hash    uuid NOT NULL,
    forgotten_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, kind, name_hash)
);

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
          AND u.used_at >= date_trunc('month', now(), 'UTC')) AS cost_this_month_usd
FROM rag.source_freshness AS s;

ALTER TABLE rag.checked_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.source_freshness ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.index_sizes ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.forgotten ENABLE ROW LEVEL SECURITY;

-- Why a person leaves a quarantined item, as it is, out of the index.
ALTER TABLE rag.ingestion_failures ADD COLUMN accepted text;
