-- Another branch has 0010: delete this file when they are merged.
SELECT 1;
