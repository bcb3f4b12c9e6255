"""Random tables of every merge engine and function: columns, options, values, and their text."""
import json
import os
from decimal import Decimal

from engine_oracle import RETRACT, Column, Group, Spec

TYPES = {
    'int2': 'smallint', 'int': 'int', 'int8': 'bigint', 'numeric': 'numeric', 'float': 'double precision', 'text': 'text', 'varchar': 'varchar(40)',
    'bool': 'boolean', 'date': 'date', 'ints': 'int[]', 'texts': 'text[]', 'json': 'jsonb', 'rows': 'engine_row[]', 'bytes': 'bytea',
}
ANY = tuple(TYPES)
NUMBERS = ('int2', 'int', 'int8', 'numeric', 'float')

# Types of each function, and what else it needs.
FUNCTIONS = {
    'sum': NUMBERS, 'product': ('int', 'int8', 'numeric', 'float'), 'max': NUMBERS + ('text', 'varchar', 'bool', 'date', 'bytes'),
    'min': NUMBERS + ('text', 'varchar', 'bool', 'date', 'bytes'), 'last_value': ANY, 'last_non_null_value': ANY, 'first_value': ANY,
    'first_non_null_value': ANY, 'first_not_null_value': ANY, 'listagg': ('text',), 'bool_and': ('bool',), 'bool_or': ('bool',), 'collect': ('ints', 'texts'),
    'merge_map': ('json',), 'merge_map_with_keytime': ('json',), 'nested_update': ('rows', 'json'), 'nested_partial_update': ('rows', 'json'),
    'engine_longest': ('text',), 'engine_step': ('int8',),
}
# Whatever the order of rows, the same result.
ORDER_FREE = ('sum', 'max', 'min', 'bool_and', 'bool_or', 'product')

SCHEMA = '''
CREATE TYPE engine_row AS (k int, t int, v text, w text);
CREATE FUNCTION engine_longest(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
CREATE FUNCTION engine_step(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT (coalesce($1, 100) * 2 + coalesce($2, 7)) % 1000003 $$;
'''


# ---- text ----

def quoted_field(text):
    return '"%s"' % text.replace('\\', '\\\\').replace('"', '\\"')


def text_of(kind, value):
    """As the server reads it; value is not None."""
    if kind == 'bool':
        return 't' if value else 'f'
    if kind == 'numeric':
        return format(value, 'f')
    if kind in ('ints', 'texts'):
        return '{%s}' % ','.join('NULL' if e is None else quoted_field(str(e)) for e in value)
    if kind == 'json':
        return json.dumps(value)
    if kind == 'rows':
        return '{%s}' % ','.join(quoted_field('(%s)' % ','.join(
            '' if row[n] is None else quoted_field(str(row[n])) for n in ('k', 't', 'v', 'w'))) for row in value)
    return str(value)


def literal(kind, value):
    return 'NULL' if value is None else "'%s'" % text_of(kind, value).replace("'", "''")


def copy_text(kind, value):
    return '\\N' if value is None else text_of(kind, value).replace('\\', '\\\\').replace('\n', '\\n').replace('\t', '\\t')


def record_text(columns, values):
    """As record_in reads it."""
    return '(%s)' % ','.join('' if v is None else '"%s"' % text_of(c.kind, v).replace('\\', '\\\\').replace('"', '\\"') for c, v in zip(columns, values))


def expression(column):
    """How a column is read: as text that value_of() understands."""
    return 'array_to_json(%s)' % column.name if column.kind in ('rows', 'ints', 'texts') else column.name


def value_of(kind, text):
    if text is None:
        return None
    if kind in ('int2', 'int', 'int8'):
        return int(text)
    if kind == 'numeric':
        return Decimal(text)
    if kind == 'float':
        return float(text)
    if kind == 'bool':
        return text == 't'
    if kind in ('ints', 'texts', 'json', 'rows'):
        return json.loads(text)
    return text


def same_value(column, a, b):
    if column.kind == 'numeric' and a is not None and b is not None and column.function != 'product':
        return format(a, 'f') == format(b, 'f')
    return type(a) is type(b) and a == b


# ---- values ----

class Values:
    """Random values of columns.  Sums stay small and floating-point numbers exact, whatever is added to what."""

    def __init__(self, rng):
        self.rng = rng

    def word(self):
        return self.rng.choice(['a', 'b', 'cc', 'ddd', 'ä', 'Z', 'x y', 'q"u\'o', 'back\\slash', 'z' * 40, '7', '%s' % self.rng.randrange(100)])

    def rows(self, column):
        rng = self.rng
        keys = [rng.choice([None, 1, 2, 3, 4, 5]) if column.details.get('nested-key-null-strategy') != 'error' else rng.randrange(1, 6)
                for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        if column.function is not None and rng.random() < 0.7:
            keys = list(dict.fromkeys(keys))
        return [{'k': k, 't': rng.choice([None, 1, 2, 3]), 'v': rng.choice([None, 'a', 'b(c)', 'd "e"']), 'w': rng.choice([None, 'x', 'y,z'])} for k in keys]

    def json(self, column):
        rng = self.rng
        if column.function in ('nested_update', 'nested_partial_update'):
            return self.rows(column)
        keys = rng.sample(['a', 'b', 'c', 'd'], rng.randrange(4))
        if column.function == 'merge_map_with_keytime':
            return {k: rng.choice([None, {'at': None, 'v': rng.randrange(9)}] + [{'at': str(t), 'v': rng.randrange(9)} for t in range(5)]) for k in keys}
        return {k: rng.choice([None, 1, 'x', [1, 2], {'y': 1}]) for k in keys}

    def some(self, column):
        rng, kind = self.rng, column.kind
        if column.function == 'product':
            value = rng.choice([1, 1, -1] if column.taken_back else [1, 1, -1, 0, 2])
            return {'numeric': Decimal, 'float': float}.get(kind, int)(value)
        if kind in ('int2', 'int', 'int8'):
            return rng.randrange(-9, 10) if kind == 'int2' else rng.randrange(-1000, 1000)
        if kind == 'numeric':
            return rng.choice([Decimal('1.50'), Decimal('0'), Decimal('-3'), Decimal('123456789012345678901'), Decimal(rng.randrange(-999, 999)) / 100])
        if kind == 'float':
            return rng.randrange(-64, 64) / 4
        if kind == 'bool':
            return rng.random() < 0.5
        if kind == 'date':
            return '20%02d-0%d-1%d' % (rng.randrange(100), rng.randrange(1, 10), rng.randrange(10))
        if kind == 'bytes':
            return '\\x%02x' % rng.randrange(256) * 1
        if kind == 'ints':
            return [rng.choice([None, 1, 2, 3, 4]) for _ in range(rng.randrange(4))]
        if kind == 'texts':
            return [rng.choice([None, 'a', 'b c', 'NULL', '']) for _ in range(rng.randrange(3))]
        if kind == 'json':
            return self.json(column)
        if kind == 'rows':
            return self.rows(column)
        if column.function == 'listagg':
            delimiter = column.details.get('list-agg-delimiter', ',')
            return rng.choice(['', '  ', 'a', 'b', 'c', 'ä' + delimiter + 'b', 'a' + delimiter + 'd', 'x' * 30])
        return self.word()

    def any(self, column, null=0.25):
        return None if self.rng.random() < null else self.some(column)


# ---- tables ----

class Table:
    """
    spec: what the oracle needs; options: as (name, value).  late: rows may come late by sequence.field, or by the order of groups; then what could show when
    compaction ran (SEMANTICS A.8) is left out.  own_keys: each session has keys of its own.
    """

    def __init__(self, rng, name):
        self.rng, self.name = rng, name
        self.values = Values(rng)
        self.clock = 0
        self.late = rng.random() < 0.5
        engine = rng.choice(['deduplicate', 'partial-update', 'partial-update', 'partial-update', 'aggregation', 'aggregation', 'aggregation', 'first-row'])
        engine = os.environ.get('ENGINE') or engine
        self.spec = spec = Spec(engine)
        self.options = []
        self.kinds = rng.random() < 0.6
        self.key_kind = rng.choice(['int', 'int', 'text', 'pair'])
        self.numbers = 0
        if engine != 'deduplicate' or rng.random() < 0.5:
            self.option('merge-engine', engine)
        keys = {'int': [('int', 'k')], 'text': [('text', 'k')], 'pair': [('int', 'k'), ('text', 'k2')]}[self.key_kind]
        self.keys = [self.add(kind, 'key', name) for kind, name in keys]
        self.sequence_first = rng.random() < 0.3
        has_sequence = engine != 'first-row' and rng.random() < 0.4
        if has_sequence and self.late and (engine == 'partial-update'):
            self.late = False
        self.late_sequence = has_sequence and self.late
        if self.late_sequence and engine == 'aggregation':
            self.kinds = False
        if has_sequence and self.sequence_first:
            self.add_sequence()
        {'deduplicate': self.plain_columns, 'first-row': self.plain_columns, 'partial-update': self.partial_columns, 'aggregation': self.aggregate_columns}[engine]()
        if self.kinds:
            spec.rowkind = self.add('text', 'op', 'op')
            self.option('rowkind.field', 'op')
        if has_sequence and not self.sequence_first:
            self.add_sequence()
        self.removals()
        self.functions_of_rest()
        self.late_groups = self.late and bool(spec.groups)
        # no deletes where a marker may be gone before a late row comes; nothing absolute between rows that are late under functions
        self.deletes = not self.late_sequence
        self.updates = not (self.late_sequence and engine == 'aggregation')
        self.own_keys = (has_sequence and not self.late) or (bool(spec.groups) and not self.late_groups)
        self.most_records = 25 if self.late_groups else 10 ** 9
        self.shuffle_columns()
        self.storage_options()

    def option(self, name, value):
        self.options.append((name, value))

    def add(self, kind, role, name=None):
        self.numbers += 1
        self.spec.columns.append(Column(name or '%s%d' % ({'seq': 's', 'order': 'g'}.get(role, 'c'), self.numbers), kind, role))
        return len(self.spec.columns) - 1

    def names(self, columns):
        return ','.join(self.spec.columns[c].name for c in columns)

    def add_sequence(self):
        spec, rng = self.spec, self.rng
        spec.sequence = [self.add(rng.choice(['int', 'int8', 'numeric', 'float', 'int2'] if self.late_sequence else ['int', 'int8', 'numeric']), 'seq')
                         for _ in range(rng.choice([1, 1, 2]))]
        self.option('sequence.field', self.names(spec.sequence))
        if rng.random() < 0.5:
            spec.descending = rng.random() < 0.6
            self.option('sequence.field.sort-order', 'descending' if spec.descending else 'ascending')

    def plain_columns(self):
        for _ in range(self.rng.randrange(1, 5)):
            self.add(self.rng.choice(ANY), 'value')

    # ---- functions ----

    def function(self, c, names):
        """Gives a column a function, of its type's."""
        col, rng = self.spec.columns[c], self.rng
        names = [n for n in names if col.kind in FUNCTIONS[n]]
        if not names:
            return
        col.function, col.named = rng.choice(names), True
        name = 'fields.%s.' % col.name
        self.option(name + 'aggregate-function', col.function)

        def detail(suffix, value):
            col.details[suffix] = value
            self.option(name + suffix, value)
        if col.function == 'listagg':
            if rng.random() < 0.5:
                detail('list-agg-delimiter', rng.choice(['|', '; ', 'ab']))
            if rng.random() < 0.5:
                detail('distinct', 'true')
        elif col.function == 'collect' and rng.random() < 0.5:
            detail('distinct', 'true')
        elif col.function == 'merge_map_with_keytime':
            detail('ts-field', 'at')
        elif col.function in ('nested_update', 'nested_partial_update'):
            if col.function == 'nested_partial_update' or rng.random() < 0.7:
                detail('nested-key', rng.choice(['k', 'k', 'k,v']))
                if rng.random() < 0.4:
                    detail('nested-key-null-strategy', rng.choice(['merge', 'ignore']) if col.function == 'nested_update' else 'merge')
                if col.function == 'nested_update' and rng.random() < 0.5:
                    detail('nested-sequence-field', 't')
            if col.function == 'nested_update' and rng.random() < 0.2:
                detail('count-limit', str(rng.randrange(1, 5)))

    def typed(self, name):
        return self.add(self.rng.choice(FUNCTIONS[name]), 'value')

    def partial_columns(self):
        spec, rng = self.spec, self.rng
        for _ in range(rng.randrange(0, 3)):
            self.add(rng.choice(ANY), 'value')
        for g in range(rng.choice([0, 1, 1, 2])):
            group = Group()
            first = rng.random() < 0.5
            if first:
                self.ordering(group)
            for _ in range(rng.randrange(1, 4)):
                name = rng.choice([None] + [f for f in FUNCTIONS if not (self.late and f == 'last_non_null_value')])
                c = self.add(rng.choice(ANY), 'value') if name is None else self.typed(name)
                if name is not None:
                    self.function(c, [name])
                spec.columns[c].group = g
                group.columns.append(c)
            if not first:
                self.ordering(group)
            spec.groups.append(group)
            self.option('fields.%s.sequence-group' % self.names(group.order), self.names(group.columns))
        if len(spec.columns) == len(self.keys):
            self.add('text', 'value')

    def ordering(self, group):
        group.order = [self.add(self.rng.choice(['int', 'int8', 'numeric', 'float', 'int2'] if self.late else ['int', 'int8']), 'order') for _ in range(self.rng.choice([1, 1, 2]))]

    def aggregate_columns(self):
        for _ in range(self.rng.randrange(1, 6)):
            names = [f for f in FUNCTIONS if f in ORDER_FREE or not self.late_sequence]
            name = self.rng.choice(names)
            self.function(self.typed(name), [name])

    def functions_of_rest(self):
        """Defaults, and who ignores retracts."""
        spec, rng = self.spec, self.rng
        self.default_function = None
        if spec.engine == 'aggregation':
            rest = [col for col in spec.columns if col.role in ('op', 'value') and col.function is None]
            default = 'last_non_null_value'
            if not spec.ignore_delete and rng.random() < 0.4:
                default = rng.choice(['last_value', 'last_non_null_value'])
                self.option('fields.default-aggregate-function', default)
            self.default_function = default
            for col in rest:
                col.function = default
        for col in spec.columns:
            col.taken_back = self.kinds
        if not (self.kinds and spec.engine in ('aggregation', 'partial-update')) or (spec.engine == 'aggregation' and spec.remove_on_delete):
            return
        for col in spec.columns:
            if col.function is None or (spec.engine == 'partial-update' and col.group is None):
                continue
            if rng.random() < (0.2 if col.function in RETRACT else 0.85):
                col.ignore_retract = col.named = True
                self.option('fields.%s.ignore-retract' % col.name, 'true')
                col.taken_back = False

    def removals(self):
        spec, rng = self.spec, self.rng
        if rng.random() < 0.25:
            spec.ignore_delete = True
            self.option(rng.choice(['ignore-delete', spec.engine + '.ignore-delete']), 'true')
        if self.kinds and rng.random() < 0.2:
            spec.ignore_update_before = True
            self.option('ignore-update-before', 'true')
        if spec.engine == 'partial-update' and not spec.ignore_delete:
            if not spec.groups and rng.random() < 0.7:
                spec.remove_on_delete = True
                self.option('partial-update.remove-record-on-delete', 'true')
            elif spec.groups and rng.random() < 0.5:
                some = rng.sample(spec.groups, rng.randrange(1, len(spec.groups) + 1))
                for group in some:
                    group.removes = True
                self.option('partial-update.remove-record-on-sequence-group', ','.join(self.names(g.order[:1]) for g in some))
        if spec.engine == 'aggregation' and not self.late_sequence and rng.random() < 0.4:
            spec.remove_on_delete = True
            self.option('aggregation.remove-record-on-delete', 'true')

    def shuffle_columns(self):
        """The order of columns in the table must not matter; the key's place either."""
        spec, n = self.spec, len(self.spec.columns)
        at = list(range(n))
        self.rng.shuffle(at)
        where = {old: new for new, old in enumerate(at)}
        spec.columns = [spec.columns[old] for old in at]
        self.keys = [where[c] for c in self.keys]
        spec.sequence = [where[c] for c in spec.sequence]
        spec.rowkind = where[spec.rowkind] if spec.rowkind is not None else None
        for group in spec.groups:
            group.order, group.columns = [where[c] for c in group.order], [where[c] for c in group.columns]

    def storage_options(self):
        rng = self.rng
        self.storage = [(name, str(rng.choice(values))) for name, values, chance in (
            ('bucket', [2, 3], 0.4), ('write-buffer-size', ['64 kb', '128 kb'], 0.4), ('target-file-row-num', [1, 2, 10, 100], 0.4), ('num-levels', [2, 4], 0.3),
            ('num-sorted-run.compaction-trigger', [2, 100], 0.5), ('file.compression', ['none'], 0.3), ('full-compaction.delta-commits', [1, 3], 0.15),
            ('snapshot.num-retained.max', [1], 0.3), ('compaction.force-up-level-0', ['true'], 0.1)) if rng.random() < chance]
        if any(name == 'snapshot.num-retained.max' for name, _ in self.storage):
            self.storage.append(('snapshot.num-retained.min', '1'))

    def create(self, options=True):
        columns = ', '.join('%s %s%s' % (c.name, TYPES[c.kind], ' COLLATE "C"' if c.role == 'key' and c.kind == 'text' else '') for c in self.spec.columns)
        sql = 'CREATE TABLE %s (%s, PRIMARY KEY (%s))' % (self.name, columns, self.names(self.keys))
        if not options:
            return sql
        options = ', '.join('"%s" = \'%s\'' % pair for pair in self.options + self.storage)
        return sql + ' USING paimon' + (' WITH (%s)' % options if options else '')

    def describe(self):
        return '%s late=%s' % (self.create(), self.late)

    # ---- keys and rows ----

    def key_of(self, n):
        """The key of number n, as values."""
        return {'int': [n], 'text': ['key%03d' % n], 'pair': [n % 7, 'k%02d' % (n // 7)]}[self.key_kind]

    def where(self, n):
        return ' AND '.join('%s = %s' % (self.spec.columns[c].name, literal(self.spec.columns[c].kind, v)) for c, v in zip(self.keys, self.key_of(n)))

    def tick(self, column):
        self.clock += self.rng.choice([0, 1, 1])
        value = -self.clock if self.spec.descending and column.role == 'seq' else self.clock
        return Decimal(value) if column.kind == 'numeric' else value

    def order_value(self, column, late):
        rng = self.rng
        if not late:
            return self.tick(column)
        if rng.random() < 0.15:
            return None
        value = rng.randrange(-5, 12)
        return {'numeric': Decimal, 'float': float}.get(column.kind, int)(value)

    def kind(self):
        if self.spec.rowkind is None:
            return '+I'
        if not self.deletes:
            return self.rng.choice(['+I', '+U'])
        return self.rng.choices(['+I', '+U', '-U', '-D'], [6, 2, 2, 2])[0]

    def row(self, n, kind):
        """A row of key n, as it is inserted."""
        spec, rng = self.spec, self.rng
        values = [None] * len(spec.columns)
        for c, v in zip(self.keys, self.key_of(n)):
            values[c] = v
        for c, col in enumerate(spec.columns):
            if col.role == 'value':
                values[c] = self.values.any(col)
            elif col.role == 'op':
                values[c] = kind
            elif col.role == 'seq':
                values[c] = self.order_value(col, self.late_sequence)
        for group in spec.groups:
            if rng.random() < 0.2:
                continue            # skipped by this row
            for c in group.order:
                values[c] = self.order_value(spec.columns[c], self.late_groups)
        return values
