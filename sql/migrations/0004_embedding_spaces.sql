-- A space remembers the settings that make its vectors, so that it can be fed and asked when rag_pipeline.toml names
-- another model by now. Never a secret: the settings name the environment variable that holds one.
ALTER TABLE rag.embedding_spaces ADD COLUMN config jsonb;
