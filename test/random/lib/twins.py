"""Twin tables: one of paimon, one of heap, that are to hold the same rows, and the SQL that changes both in the same way.

Every row has a number g, from which its key follows, and the session that owns it.  Where a key decides, a plain INSERT into paimon stands
beside INSERT … ON CONFLICT DO UPDATE SET every column on heap.
"""

# Key columns by kind: (type, expression over {g}, the row's number, and {s}, which varies between rows of the same key)
KEYS = {
    'int': [('int', '{g}')],
    'bigint': [('bigint', '({g})::bigint * 100003 - 7000000000')],
    'text': [('text', "repeat('ab', ({g}) % 7) || ({g})")],
    'varchar': [('varchar(40)', "md5(({g})::text)")],
    'char': [('char(14)', "'k' || ({g})")],
    'uuid': [('uuid', "md5(({g})::text)::uuid")],
    'numeric': [('numeric', "round(({g})::numeric * 1.7 - 20, 1 + (({s}) % 4)::int)")],
    'date': [('date', "date '1998-12-30' + ({g})::int")],
    'timestamptz': [('timestamptz', "timestamptz '2020-01-01 00:00:00+00' + ({g}) * interval '37 minutes'")],
    'float8': [('float8', "({g})::float8 / 3 - 2")],
    'bytea': [('bytea', "decode(md5(({g})::text), 'hex')")],
    'bool,smallint': [('bool', '({g}) % 2 = 0'), ('int', '({g}) / 2')],
    'int,text': [('int', '({g}) % 3'), ('text', "'x' || ({g})")],
    'text,int,uuid': [('text', "chr(65 + (({g}) % 20)::int)"), ('int', '-({g})'), ('uuid', "md5('u' || (({g}) % 5))::uuid")],
    'date,numeric': [('date', "date '2001-01-01' + (({g}) % 30)::int"), ('numeric(12,3)', '({g})::numeric / 8')],
}

# Value columns beside own and g: (type, expressions to choose from over {g} and {s})
VALUES = {
    'v': ('int', ['(({g}) * 7 + ({s})) % 1000', 'nullif((({g}) + ({s})) % 5, 0)', 'NULL::int', '({s})::int']),
    't': ('text', ["md5((({g}) + ({s}))::text)", "''", 'NULL::text', "repeat('paimon ', (({g}) + ({s}))::int % 40)"]),
    'n': ('numeric', ['(({g}) + ({s}))::numeric / 3', "'NaN'::numeric", 'NULL::numeric', '1.500', '(({s}) % 7)::numeric']),
    'b': ('bytea', ["decode(md5((({g}) * 3 + ({s}))::text), 'hex')", 'NULL::bytea', "''::bytea"]),
    'j': ('jsonb', ["jsonb_build_object('g', ({g}), 's', md5(({s})::text))", 'NULL::jsonb', "'[1, {{\"a\": null}}]'::jsonb"]),
    'a': ('int[]', ['ARRAY[({g}), NULL, ({s})]::int[]', 'NULL::int[]', "'{{}}'::int[]"]),
    'd': ('timestamp', ["timestamp '2000-01-01' + ({s}) * interval '1 second'", 'NULL::timestamp', "'infinity'::timestamp"]),
    'f': ('float4', ['(({g}) + ({s}))::float4 / 7', "'-0'::float4", "'NaN'::float4"]),
    'o': ('bool', ['({s}) % 2 = 0', 'NULL::bool']),
}
OTHERS = '/* others */'    # in a statement that sets all columns: those that the test has added
FAR = 10000000    # added to g: away from all other rows


class Twins:
    """Definition of a pair of tables and statements on them; `{T}` in SQL stands for the table."""

    def __init__(self, name, rng, sessions):
        self.rng = rng
        self.paimon = 'p_' + name
        self.heap = 'h_' + name
        self.sessions = sessions
        self.kind = rng.choice(list(KEYS)) if rng.random() < 0.85 else None
        self.keys = KEYS[self.kind or 'int']
        self.columns = {c: VALUES[c] for c in VALUES if c in 'vt' or rng.random() < 0.4}
        self.buckets = rng.choice([1, 1, 2, 3, 5, 16]) if self.kind else 1
        self.buffer = rng.choice(['64kb', '64kb', '128kb', '1mb', '64mb'])
        self.spill = rng.choice([None, None, '64kb', '256kb'])
        self.persistence = rng.choices(['', 'UNLOGGED ', 'TEMP '], [10, 1, 2 if sessions == 1 else 0])[0]
        self.on_commit = rng.choice(['', ' ON COMMIT DELETE ROWS']) if self.persistence == 'TEMP ' else ''
        self.spread = rng.choice([4, 30, 300, 3000])    # of rows per session
        self.partitioned = bool(self.kind) and rng.random() < 0.15
        self.added = 0
        self.compaction = self.some_compaction_options()

    def some_compaction_options(self):
        """Compactions of all kinds on tables this small: often, to few levels or many, into small files, lifted or rewritten."""
        choices = {'num-sorted-run.compaction-trigger': [1, 2, 3, 3, 5, 8], 'num-levels': [2, 3, 3, 4, 6], 'target-file-size': ['64 kb', '128 mb'],
                   'compaction.small-file-ratio': [0, 0.7], 'compaction.max-size-amplification-percent': [10, 200, 100000],
                   'compaction.size-ratio': [0, 1, 100], 'full-compaction.delta-commits': [1, 3], 'compaction.force-up-level-0': ['true'],
                   'compaction.force-rewrite-all-files': ['true'], 'write-only': ['true']}
        chance = {'full-compaction.delta-commits': 0.15, 'compaction.force-up-level-0': 0.1, 'compaction.force-rewrite-all-files': 0.1, 'write-only': 0.1}
        return {name: self.rng.choice(values) for name, values in choices.items() if self.rng.random() < chance.get(name, 0.4)}

    def describe(self):
        return '%s%skey %s, %d buckets, write-buffer-size %s, spill-size %s, columns %s, %d numbers, %s%s' % (
            'partitioned ' if self.partitioned else '', self.persistence, self.kind, self.buckets, self.buffer, self.spill, ' '.join(self.columns), self.spread,
            self.compaction, self.on_commit)

    @property
    def key_names(self):
        return ['k%d' % (i + 1) for i in range(len(self.keys))]

    def create(self):
        columns = ['%s %s' % (name, key[0]) for name, key in zip(self.key_names, self.keys)]
        columns += ['own int', 'g int'] + ['%s %s' % (name, self.columns[name][0]) for name in self.columns]
        if self.kind:
            columns.append('PRIMARY KEY (%s)' % ', '.join(self.key_names))
        body = ', '.join(columns)
        how = ' PARTITION BY HASH (k1)' if self.partitioned else ''
        # ON COMMIT is of partitions, too
        end = '' if self.partitioned else self.on_commit
        made = ['CREATE %sTABLE %s (%s)%s USING paimon WITH (%s)%s' % (self.persistence, self.paimon, body, how, self.options, end),
                'CREATE %sTABLE %s (%s)%s%s%s' % (self.persistence, self.heap, body, how, '' if how else ' USING heap', end)]
        for table in (self.paimon, self.heap) if self.partitioned else ():
            made += ['CREATE %sTABLE %s_%d PARTITION OF %s FOR VALUES WITH (MODULUS 3, REMAINDER %d)%s' % (self.persistence, table, n, table, n, self.on_commit) for n in range(3)]
        return made

    @property
    def options(self):
        options = '"write-buffer-size" = \'%s\'' % self.buffer
        if self.spill:
            options += ', "write-buffer-spill-size" = \'%s\'' % self.spill
        if self.kind and self.buckets > 1:
            options += ', bucket = %d' % self.buckets
        return options + ''.join(', "%s" = \'%s\'' % option for option in self.compaction.items())

    def drop(self):
        return 'DROP TABLE IF EXISTS %s, %s' % (self.paimon, self.heap)

    def names(self):
        return self.key_names + ['own', 'g'] + list(self.columns)

    def key_list(self, g, s='0'):
        return [key[1].format(g=g, s=s) for key in self.keys]

    def where_key(self, g):
        """The row number g by its key; without one, by the number itself."""
        if not self.kind:
            return 'g = %s' % g
        return ' AND '.join('%s = %s' % pair for pair in zip(self.key_names, ['(%s)::%s' % (e, k[0]) for e, k in zip(self.key_list(g), self.keys)]))

    def value(self, column, g, s):
        return self.rng.choice(self.columns[column][1]).format(g=g, s=s)

    def select(self, own, source, salt, large=None):
        """Rows over a source with columns g and o; `large`: an expression for column t."""
        s = '%d + o' % salt
        values = [self.value(c, 'g', s) for c in self.columns]
        if large:
            values[list(self.columns).index('t')] = large
        return 'SELECT %s FROM %s' % (', '.join(self.key_list('g', s) + [str(own), 'g'] + values), source)

    def insert(self, select):
        """The statement for paimon and for heap."""
        names = self.names()
        paimon = 'INSERT INTO %s (%s) %s' % (self.paimon, ', '.join(names), select)
        return paimon, self.heap_insert(select)

    def heap_insert(self, select):
        names = self.names()
        sql = 'INSERT INTO %s (%s) %s' % (self.heap, ', '.join(names), select)
        if self.kind:
            sql += ' ON CONFLICT (%s) DO UPDATE SET %s%s' % (', '.join(self.key_names), ', '.join('%s = EXCLUDED.%s' % (n, n) for n in names), OTHERS)
        return sql

    def set_values(self, salt):
        """A SET list of non-key columns that may refer to the old row."""
        rng = self.rng
        sets = []
        for c in self.columns:
            if rng.random() < 0.5:
                sets.append('%s = %s' % (c, self.value(c, 'g', str(salt))))
            elif c == 'v' and rng.random() < 0.5:
                sets.append('v = v + 1')
            elif c == 't' and rng.random() < 0.5:
                sets.append("t = left(t || '%d', 100000)" % salt)
        return ', '.join(sets or ['v = %d' % salt])

    def set_key(self, new_g):
        return ', '.join(['%s = %s' % pair for pair in zip(self.key_names, self.key_list(new_g))] + ['g = %s' % new_g])

    def both(self, sql):
        return sql.replace('{T}', self.paimon), sql.replace('{T}', self.heap)

    def moves(self, where, step):
        """
        Statements for each table that move the rows of a condition `step` numbers on, all at once.  On heap a row in the way has to go first and
        rows must not meet on their way.
        """
        paimon = ['UPDATE %s SET %s WHERE %s' % (self.paimon, self.set_key('(g + %d)' % step), where)]
        heap = []
        if self.kind:
            heap.append('DELETE FROM %s WHERE g IN (SELECT g + %d FROM %s WHERE %s) AND NOT (%s)' % (self.heap, step, self.heap, where, where))
        heap.append('UPDATE %s SET %s WHERE %s' % (self.heap, self.set_key('(g + %d)' % FAR), where))
        heap.append('UPDATE %s SET %s WHERE g >= %d' % (self.heap, self.set_key('(g - %d)' % (FAR - step)), FAR - 100000))
        return paimon, heap

    def sums(self):
        part = "(SELECT count(*) || ' rows, ' || coalesce(sum(hashtextextended(x::text, 0)::numeric), 0) FROM %s x)"
        return 'SELECT %s, %s' % (part % self.paimon, part % self.heap)

    def difference(self, limit=6):
        half = "(SELECT '%s has' AS side, left(x.r, 400) FROM (SELECT y::text AS r FROM %s y EXCEPT ALL SELECT y::text FROM %s y) x LIMIT %d)"
        return '%s UNION ALL %s' % (half % ('only paimon', self.paimon, self.heap, limit), half % ('only heap', self.heap, self.paimon, limit))
