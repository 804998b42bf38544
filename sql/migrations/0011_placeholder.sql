-- Another branch has 0011: delete this file when they are merged.
SELECT 1;
