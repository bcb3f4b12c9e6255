-- Publications: what names a paimon table is refused, what includes one gives a warning
create schema publications; set search_path = publications;
create table t (k int primary key, v text) using paimon;
create table h (k int primary key, v text);
\set VERBOSITY terse
create publication pa for all tables;
\set VERBOSITY default
create table t2 (k int primary key, v text) using paimon;
create temp table t3 (k int primary key, v text) using paimon;
drop publication pa;
create publication ps for tables in schema publications;
create table t4 (k int primary key, v text) using paimon;
drop publication ps;
create table pt (k int primary key, v text) partition by range (k) using paimon;
create table pt1 partition of pt for values from (1) to (10);
create publication p for table pt;
drop table pt1;
create publication p for table pt;
create table pt1 partition of pt for values from (1) to (10);
create table pt2 (k int primary key, v text) using paimon;
alter table pt attach partition pt2 for values from (10) to (20);
create publication p2 for table h;
alter table h set access method paimon;
drop publication p, p2;
alter table h set access method paimon;
create table hh (k int primary key); create table hhc () inherits (hh) using paimon;
create publication p for table only hh;
alter publication p add table hh;
alter publication p set table hh;
alter publication p add tables in schema current_schema;
drop publication p;
set client_min_messages = error;
drop schema publications cascade;
