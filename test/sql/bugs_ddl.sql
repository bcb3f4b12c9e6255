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
