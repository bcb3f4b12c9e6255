-- Keys of every type: equal bytes exactly for equal values, order of bytes = SQL order where that is claimed, values come
-- back where that is claimed.  Every SELECT below that counts must give 0.
SET client_min_messages = warning;
CREATE SCHEMA row_keys;
SET search_path = row_keys, public;

-- Compares all pairs of the values of one type.
CREATE FUNCTION check_type(typename text, vals text[], coll text DEFAULT NULL)
RETURNS TABLE (type text, n bigint, traits text, wrong_equality bigint, wrong_order bigint, not_back bigint)
LANGUAGE plpgsql AS $$
DECLARE
    c text := coalesce(' COLLATE ' || quote_ident(coll), '');
BEGIN
    RETURN QUERY EXECUTE format($q$
        WITH v AS MATERIALIZED (
            SELECT i, x::%1$s AS x, paimon.test_key(x::%1$s%2$s) AS k
            FROM unnest($1) WITH ORDINALITY AS u (x, i)
        )
        SELECT %3$L::text,
               (SELECT count(*) FROM v),
               (SELECT paimon.test_key_traits(x%2$s) FROM v LIMIT 1),
               (SELECT count(*) FROM v a, v b WHERE (a.x = b.x%2$s) <> (a.k = b.k)),
               (SELECT count(*) FROM v a, v b WHERE (a.x < b.x%2$s) <> (a.k < b.k)),
               (SELECT count(*) FROM v WHERE paimon.test_key_value(x%2$s, k) IS DISTINCT FROM x)$q$,
        typename, c, typename || c) USING vals;
END $$;

SELECT * FROM check_type('bool', '{t,f}');
SELECT * FROM check_type('"char"', '{a,b,A,\\001,\\177,\\200,\\377,"", " "}');
SELECT * FROM check_type('int2', '{-32768,-1,0,1,255,256,32767}');
SELECT * FROM check_type('int4', '{-2147483648,-65536,-1,0,1,255,256,65536,2147483647}');
SELECT * FROM check_type('int8', '{-9223372036854775808,-4294967296,-1,0,1,255,256,4294967296,9223372036854775807}');
SELECT * FROM check_type('oid', '{0,1,255,2147483648,4294967295}');
SELECT * FROM check_type('regtype', '{int4,text,bool,1,4294967295}');
SELECT * FROM check_type('money', '{-92233720368547758.08,-1,0,0.01,1,92233720368547758.07}');
SELECT * FROM check_type('pg_lsn', '{0/0,0/1,0/FFFFFFFF,1/0,FFFFFFFF/FFFFFFFF}');
SELECT * FROM check_type('xid8', '{0,1,4294967296,18446744073709551615}');
SELECT * FROM check_type('float4', '{NaN,-NaN,Infinity,-Infinity,0,-0,1e-45,-1e-45,1,-1,3.4e38,-3.4e38,1.0000001}');
SELECT * FROM check_type('float8', '{NaN,-NaN,Infinity,-Infinity,0,-0,5e-324,-5e-324,1,-1,1.7e308,-1.7e308,1.0000000000000002}');
SELECT * FROM check_type('numeric', '{NaN,Infinity,-Infinity,0,0.0,0.000,-0,1,1.0,1.00,-1,-1.0,10,100,1000,9999,10000,10001,
    99999999,100000000,0.1,0.10,0.01,0.001,0.0001,0.00001,0.00010,-0.1,-0.01,-0.0001,-0.00010,1.5,-1.5,1.4999,1.50001,
    12345678901234567890.12345678901234567890,-12345678901234567890.12345678901234567890,
    12345678901234567890.1234567890123456789,1e100,-1e100,1e-100,-1e-100,1e1000,1e-1000,9.999e1000,1e1001}');
SELECT * FROM check_type('numeric(20,4)', '{NaN,0,0.0001,-0.0001,1,10000,9999999999999999.9999,-9999999999999999.9999,0.1,0.1000}');
SELECT * FROM check_type('text', '{"",a,A,aa,ab,b,"a b","a ",ä,z,Z,"\u0001","\u0001a","\u0002",日本,日,𝄞,_,-}', 'C');
SELECT * FROM check_type('varchar', '{"",a,A,aa,ab,b,"a b","a ",ä,z}', 'POSIX');
SELECT * FROM check_type('varchar(3)', '{"",a,A,aa,ab,b,"a b","a ",ä,z}', 'C');
SELECT * FROM check_type('bpchar', '{"",a,A,aa,ab,b,"a b","a ","a   ","b ",ä,z," "," a"}', 'C');
SELECT * FROM check_type('char(4)', '{"",a,A,aa,ab,b,"a b","a ",ä,z," "," a"}', 'C');
SELECT * FROM check_type('name', '{"",a,A,aa,ab,b,"a b","a ",ä,z}', 'C');
SELECT * FROM check_type('bytea', '{"",\\x00,\\x0000,\\x01,\\x0001,\\x0100,\\x0101,\\x02,\\xff,\\xff00,\\xffff,\\x0002,\\x000102}');
SELECT * FROM check_type('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,
    80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}');
SELECT * FROM check_type('date', '{-infinity,infinity,4713-01-01 BC,1970-01-01,1999-12-31,2000-01-01,2024-02-29,5874897-12-31}');
SELECT * FROM check_type('time', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}');
SELECT * FROM check_type('timetz', '{00:00+00,01:00+01,02:00+02,00:00+01,00:00-01,23:59:59.999999-15:59,24:00+15:59,12:00:00+00,13:00:00+01,12:00:00.000001+00:00:01}');
SELECT * FROM check_type('timestamp', '{-infinity,infinity,4713-01-01 BC,1970-01-01,2000-01-01,1999-12-31 23:59:59.999999,294276-12-31 23:59:59.999999}');
SELECT * FROM check_type('timestamptz', '{-infinity,infinity,4713-01-02 BC,1970-01-01 00:00+00,2000-01-01 00:00+01,1999-12-31 23:00+00,294276-12-31 00:00+00}');
SELECT * FROM check_type('interval', '{0,1 mon,30 days,720 hours,1 mon -30 days,1 day,24 hours,-1 day,-24 hours,23:59:59.999999,-00:00:00.000001,
    1 year,360 days,1 mon 1 us,1 mon -1 us,-1 mon,-30 days,178000000 years,-178000000 years,2147483647 days,-2147483648 days,
    2562047788 hours,-2562047788 hours,178000000 years 2147483647 days 2562047788 hours,1 day -24 hours,-1 day 24 hours}');
SELECT * FROM check_type('inet', '{10.0.0.0/8,10.0.0.0/9,10.0.0.1/8,10.0.0.1,10.0.0.1/32,10.128.0.0/9,10.0.0.0/16,10.0.0.0,0.0.0.0/0,1.2.3.4/0,255.255.255.255,
    10.0.0.0/7,10.0.0.0/15,10.0.0.0/17,11.0.0.0/8,9.255.255.255,10.1.0.0/16,10.0.0.1/31,10.0.0.0/31,::,::1,::/0,ff::/8,fe80::1/64,fe80::2/64,fe80::/10,ffff::ffff,::ffff:1.2.3.4}');
SELECT * FROM check_type('cidr', '{10.0.0.0/8,10.0.0.0/9,10.0.0.1/32,10.128.0.0/9,10.0.0.0/16,0.0.0.0/0,::/0,::1/128,fe80::/10}');
SELECT * FROM check_type('macaddr', '{00:00:00:00:00:00,08:00:2b:01:02:03,ff:ff:ff:ff:ff:ff,80:00:00:00:00:00,00:00:00:80:00:00}');
SELECT * FROM check_type('macaddr8', '{00:00:00:00:00:00:00:00,08:00:2b:01:02:03:04:05,ff:ff:ff:ff:ff:ff:ff:ff,80:00:00:00:00:00:00:00,00:00:00:00:80:00:00:00}');
SELECT * FROM check_type('varbit', '{"",0,1,00,01,10,11,000,100,10000000,100000000,100000001,0000000000,11111111,111111111,1111111100000000}');
SELECT * FROM check_type('bit(10)', '{0000000000,0000000001,1000000000,1111111111,0111111111}');
SELECT * FROM check_type('int4[]', '{"{}","{1}","{1,2}","{2}","{NULL}","{1,NULL}","{NULL,1}","{{1,2}}","{{1},{2}}","[0:1]={1,2}","[2:3]={1,2}","{-1}","{1,2,3}",
    "{{1,2},{3,4}}","{1,2,3,4}","{{{1,2},{3,4}}}"}');
SELECT * FROM check_type('text[]', '{"{}","{a}","{a,b}","{ab}","{\"\"}","{NULL}","{\"\",a}","{a,NULL}"}', 'C');
SELECT * FROM check_type('numeric[]', '{"{}","{1}","{1.0}","{1.00,2}","{1,2.0}","{NaN}","{-1}"}');
SELECT * FROM check_type('float8[]', '{"{}","{0}","{-0}","{NaN,1}","{1,NaN}"}');
SELECT * FROM check_type('interval[]', '{"{1 mon}","{30 days}","{31 days}"}');
SELECT * FROM check_type('bpchar[]', '{"{a}","{\"a \"}","{b}"}', 'C');
SELECT * FROM check_type('bool[]', '{"{t}","{f}","{t,t}"}');
SELECT * FROM check_type('uuid[]', '{"{00000000-0000-0000-0000-000000000001}","{}"}');

-- Numbers in numbers.
SELECT * FROM check_type('numeric', (SELECT array_agg(s || m || 'e' || e) FROM unnest('{"",-}'::text[]) s,
    unnest('{1,10,12,1.2,99,123456789,0.5,10000,1000000001}'::text[]) m, unnest('{-9,-5,-4,-3,-1,0,1,2,3,4,5,8,20}'::int[]) e));
SELECT sum(wrong_equality), sum(wrong_order) FROM check_type('int8', (SELECT array_agg(((i::int8 * 6700417) # (i::int8 << 40))::text) FROM generate_series(-150, 150) i));
SELECT sum(wrong_equality), sum(wrong_order) FROM check_type('inet', (SELECT array_agg(host(a) || '/' || m)
    FROM unnest('{10.0.0.0,10.0.1.255,10.128.77.1,255.255.255.255,0.0.0.0}'::inet[]) a, generate_series(0, 32) m));
SELECT sum(wrong_equality), sum(wrong_order) FROM check_type('varbit', (SELECT array_agg(substr((i * 77)::bit(20)::text, 1, i % 21)) FROM generate_series(1, 200) i));
SELECT sum(wrong_equality), sum(wrong_order) FROM check_type('bytea', (SELECT array_agg('\x' || substr(md5(i::text) || '0001000100', 30 - i % 8 * 2 + 1, i % 8 * 2))
    FROM generate_series(1, 200) i));

-- Order of types whose bytes sort otherwise: only equality is claimed.
CREATE TYPE mood AS ENUM ('sad', 'happy');
ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy';
SELECT type, traits, wrong_equality, wrong_order > 0 AS order_differs, not_back FROM check_type('mood', '{sad,ok,happy}');
CREATE COLLATION reverse_case (provider = icu, locale = 'en-u-kf-upper');
SELECT type, traits, wrong_equality, wrong_order > 0 AS order_differs, not_back FROM check_type('text', '{a,A,b,B}', 'reverse_case');
CREATE DOMAIN posint AS int4 CHECK (VALUE > 0);
SELECT * FROM check_type('posint', '{1,2,300}');

-- What cannot be a key.
CREATE TYPE pair AS (a int, b int);
SELECT paimon.test_key('{}'::jsonb);
SELECT paimon.test_key('[1,2]'::int4range);
SELECT paimon.test_key(ROW(1, 2)::pair);
SELECT paimon.test_key('{1}'::json[]);
SELECT paimon.test_key('(1,2)'::point);
CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT paimon.test_key('a'::text COLLATE no_case);
SELECT paimon.test_key(repeat('x', 2699)::text COLLATE "C") IS NULL AS too_long;
SELECT paimon.test_key(repeat('x', 2701)::text COLLATE "C") IS NULL AS too_long;
SELECT paimon.test_key(('1' || repeat('0', 20000) || '.5')::numeric) IS NULL AS too_long;

-- Damaged keys.
SELECT paimon.test_key_value(0::int4, '\x0000');
SELECT paimon.test_key_value(''::text, '\x6161');
SELECT paimon.test_key_value('0.0.0.0'::inet, '\x020109');
SELECT paimon.test_key_value('{}'::int4[], '\x0007');
SELECT paimon.test_key_value('{}'::int4[], '\x00017fffffff00000001');
SELECT paimon.test_key_value(B'0', '\x0080000009');

DROP SCHEMA row_keys CASCADE;
