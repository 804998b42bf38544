-- The runs of a backfill end in any order, and what a dead one has read is finished by another.

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
ALTER TABLE rag.windows_read ENABLE ROW LEVEL SECURITY;

-- The newest reading by a run that covered the day of its reading, whether or not it came to its end.
ALTER TABLE rag.source_freshness ADD COLUMN covered_at timestamptz;
