-- Which of two states is newer no longer hangs on when the source says it changed: a source that shows only the present
-- may show an earlier change than before, as when the last comment of a thread was deleted.
ALTER TABLE rag.documents ADD COLUMN as_of timestamptz;
UPDATE rag.documents SET as_of = source_updated_at;
ALTER TABLE rag.documents ALTER COLUMN as_of SET NOT NULL;

-- A chunk of a thread points at its comment.
ALTER TABLE rag.chunks ADD COLUMN anchor text;
