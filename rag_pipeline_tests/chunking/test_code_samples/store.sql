-- Items on shelves, and what they weigh.
CREATE SCHEMA IF NOT EXISTS store;

-- A numbered place for items. Shelves are made when they are first used,
-- and never taken away again.
CREATE TABLE store.shelves (
    shelf_id   integer PRIMARY KEY,
    room       text NOT NULL,
    limit_kg   numeric NOT NULL DEFAULT 1000,
    opened_at  timestamptz NOT NULL DEFAULT now(),
    CHECK (limit_kg > 0)
);

-- A thing that is kept, with its weight in kilograms.
CREATE TABLE IF NOT EXISTS store.items (
    item_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shelf_id   integer NOT NULL REFERENCES store.shelves (shelf_id),
    name       text NOT NULL,
    weight_kg  numeric NOT NULL,
    added_at   timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz
);

CREATE INDEX items_by_shelf ON store.items (shelf_id, name) WHERE removed_at IS NULL;

-- One row for each shelf, with the number of items on it and what they weigh.
CREATE VIEW store.inventory AS
SELECT s.shelf_id,
       s.room,
       count(i.item_id) AS items,
       coalesce(sum(i.weight_kg), 0) AS weight_kg
FROM store.shelves s
LEFT JOIN store.items i ON i.shelf_id = s.shelf_id AND i.removed_at IS NULL
GROUP BY s.shelf_id, s.room
ORDER BY s.shelf_id;

-- Of all items on a shelf together, in kilograms.
CREATE OR REPLACE FUNCTION store.weight(shelf integer) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(weight_kg), 0) FROM store.items WHERE shelf_id = shelf AND removed_at IS NULL
$$;

INSERT INTO store.shelves (shelf_id, room) VALUES
    (1, 'by the door, where what is often asked for is kept'),
    (2, 'in the cellar, where what is heavy is kept'),
    (3, 'under the roof, where what is light is kept');

UPDATE store.items SET removed_at = now() WHERE weight_kg > 1000;

WITH heavy AS (
    SELECT shelf_id, max(weight_kg) AS weight_kg FROM store.items GROUP BY shelf_id
)
SELECT h.shelf_id, h.weight_kg, s.room
FROM heavy h
JOIN store.shelves s ON s.shelf_id = h.shelf_id
WHERE h.weight_kg > s.limit_kg / 2
ORDER BY h.weight_kg DESC;
