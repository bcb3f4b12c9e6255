-- Several statements in one portal: rules and SQL functions (a server with assertions checks that nobody else holds their snapshot).
CREATE TABLE br (a int PRIMARY KEY, b text DEFAULT 'none') USING paimon;
CREATE TABLE br_log (what text, a int, b text) USING paimon;
CREATE VIEW br_view AS SELECT a, b FROM br;
CREATE RULE br_also AS ON INSERT TO br_view DO ALSO INSERT INTO br_log VALUES ('view', new.a, new.b);
INSERT INTO br_view VALUES (9, 'x'), (10, DEFAULT);
CREATE RULE br_insert AS ON INSERT TO br DO ALSO INSERT INTO br_log SELECT 'seen', count(*), max(b) FROM br;
CREATE RULE br_update AS ON UPDATE TO br DO ALSO INSERT INTO br_log VALUES ('update', new.a, new.b);
INSERT INTO br VALUES (1, 'z'), (9, 'y');
UPDATE br SET b = b || '!' WHERE a > 5;
SELECT * FROM br ORDER BY a;
SELECT * FROM br_log ORDER BY what, a;
CREATE FUNCTION br_twice(int) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO br_log VALUES ('function', $1, NULL);
    UPDATE br_log SET b = 'updated' WHERE what = 'function' AND a = $1;
    SELECT count(*) FROM br_log WHERE b = 'updated';
$$;
SELECT br_twice(1), br_twice(2);
DROP FUNCTION br_twice(int);
DROP TABLE br, br_log CASCADE;
