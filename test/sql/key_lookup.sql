-- Point lookups by the primary key: equality and lists of values, also of other integer types.
create table i1 (a int, b text, v int, primary key(a,b)) using paimon with (bucket=3);
insert into i1 select g, 'k'||(g%10), g from generate_series(1,100000) g; analyze i1; select paimon.flush('i1');
explain (costs off) select * from i1 where a in (5,7,9,7) and b = 'k5';
select * from i1 where a in (5,7,9,7,15,null) and b = 'k5' order by 1;
select * from i1 where a = any('{5,7,9}'::int8[]) and b in ('k5','k7') order by 1;
select count(*) from i1 where a in (5,7) ;
prepare p(int[]) as select count(*) from i1 where a = any($1) and b='k1'; execute p('{1,11,21,21}'); execute p(null); execute p('{}');
explain (costs off) select * from i1 where a=5 or b='k6';
select * from i1 where (a=5 or a=6) and b='k5';
create table i2 (a int primary key, v int) using paimon; insert into i2 select g,g from generate_series(1,100000) g; analyze i2;
explain (costs off) select * from i2 where a in (1,2,3); update i2 set v=0 where a in (1,2,3); delete from i2 where a in (select g from generate_series(5,10) g); select count(*), sum(v) from i2;
select * from i2 where a in (1,2,7);
drop table i1, i2;
