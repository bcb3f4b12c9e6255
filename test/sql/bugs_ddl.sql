-- Logical decoding does not know the changes of paimon tables: they are not published.
CREATE TABLE bd (k int PRIMARY KEY) USING paimon;
CREATE TABLE bd_heap (k int PRIMARY KEY);
SET client_min_messages = error;
CREATE PUBLICATION bd_pub FOR TABLE bd;
CREATE PUBLICATION bd_pub FOR TABLE bd_heap, bd;
CREATE PUBLICATION bd_pub FOR TABLE bd_heap;
ALTER PUBLICATION bd_pub ADD TABLE bd;
ALTER PUBLICATION bd_pub SET TABLE bd_heap, public.bd;
CREATE PUBLICATION bd_none FOR TABLE bd_missing;
SELECT tablename FROM pg_publication_tables WHERE pubname = 'bd_pub';
ALTER PUBLICATION bd_pub DROP TABLE bd;
DROP PUBLICATION bd_pub;
DROP TABLE bd, bd_heap;

-- A column added with a default, and a rewrite that leaves all types alone: rows that lack the column still get its default.
CREATE TABLE bd (k int PRIMARY KEY, v int, t varchar(10)) USING paimon;
INSERT INTO bd SELECT g, g, 'file' FROM generate_series(1, 2) g;
SELECT paimon.flush('bd') > 0 AS flushed;
INSERT INTO bd VALUES (3, 3, 'memory');
ALTER TABLE bd ADD COLUMN n numeric DEFAULT 1.50;
ALTER TABLE bd ALTER COLUMN v TYPE int USING v + 1;
SELECT * FROM bd ORDER BY k;
BEGIN;
INSERT INTO bd (k, v, t) VALUES (4, 4, 'own');
ALTER TABLE bd ADD COLUMN m text DEFAULT 'added';
ALTER TABLE bd ALTER COLUMN t TYPE varchar(8);
COMMIT;
SELECT * FROM bd ORDER BY k;
SELECT paimon.flush('bd') > 0 AS flushed;
SELECT * FROM bd ORDER BY k;
DROP TABLE bd;
