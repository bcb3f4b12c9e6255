"""
What the records of a key come to under each merge engine: slow, obvious, and written from the specification, not from the server's code.

All records of a key are kept, in the order in which they were committed, and applied one by one to nothing.  Nothing is ever merged before it is asked
for, so there is no partial result that could be wrong.

A value is None, or a Python value of its type: int, Decimal, float, bool, str (text and dates), list (arrays), dict (maps), list of dict (nested rows).
"""
from functools import cmp_to_key


class Refused(Exception):
    """The record cannot be written."""


class Column:
    """
    role: 'key', 'seq' (of sequence.field), 'order' (of a sequence group), 'op' (rowkind.field) or 'value'.  function: an aggregate function or None; its
    options are `details`, by name.
    """

    def __init__(self, name, kind, role):
        self.name, self.kind, self.role = name, kind, role
        self.function = None
        self.details = {}
        self.ignore_retract = self.taken_back = self.named = False
        self.group = None


class Group:
    def __init__(self):
        self.order, self.columns, self.removes = [], [], False


class Spec:
    """A table's columns and options, as far as merging goes."""

    def __init__(self, engine):
        self.engine = engine
        self.columns, self.groups, self.sequence = [], [], []
        self.descending = self.ignore_delete = self.ignore_update_before = self.remove_on_delete = False
        self.rowkind = None


# ---- functions: fold(stored, incoming) and retract(stored, incoming) ----

def blank(text):
    return text is None or text.strip() == ''


def same(a, b):
    """Equality of elements; True is not 1."""
    return type(a) is type(b) and a == b


def agg_sum(col, stored, new):
    if new is None:
        return stored
    return new if stored is None else stored + new


def agg_product(col, stored, new):
    if new is None:
        return stored
    return new if stored is None else stored * new


def rank(col, value):
    """Text in the C collation goes by its bytes."""
    return value.encode() if isinstance(value, str) else value


def agg_max(col, stored, new):
    if stored is None or new is None:
        return new if stored is None else stored
    return new if rank(col, new) > rank(col, stored) else stored


def agg_min(col, stored, new):
    if stored is None or new is None:
        return new if stored is None else stored
    return new if rank(col, new) < rank(col, stored) else stored


def agg_last_non_null(col, stored, new):
    return stored if new is None else new


def agg_first_non_null(col, stored, new):
    return new if stored is None else stored


def agg_listagg(col, stored, new):
    if blank(new):
        return stored
    if blank(stored):
        return new
    delimiter = col.details.get('list-agg-delimiter', ',')
    if col.details.get('distinct') == 'true':
        have = stored.split(delimiter)
        for token in new.split(delimiter):
            if not blank(token) and token not in have:
                have.append(token)
                stored += delimiter + token
        return stored
    return stored + delimiter + new


def agg_bool_and(col, stored, new):
    if stored is None or new is None:
        return new if stored is None else stored
    return stored and new


def agg_bool_or(col, stored, new):
    if stored is None or new is None:
        return new if stored is None else stored
    return stored or new


def agg_collect(col, stored, new):
    if new is None:
        return stored
    result = list(stored or [])
    for element in new:
        if col.details.get('distinct') != 'true' or not any(same(element, e) for e in result):
            result.append(element)
    return result


def agg_merge_map(col, stored, new):
    if new is None:
        return stored
    return {**(stored or {}), **new}


def agg_keytime(col, stored, new):
    """The entry with the larger time wins; an entry without a value removes; one without a time counts only if nothing is stored yet."""
    if new is None:
        return stored
    if stored is None:
        return {k: v for k, v in new.items() if v is not None}
    result, field = dict(stored), col.details['ts-field']
    for key, entry in new.items():
        if entry is None:
            result.pop(key, None)
        elif entry.get(field) is None:
            continue
        elif not result.get(key) or result[key].get(field) is None or entry[field].encode() > result[key][field].encode():
            result[key] = entry
    return result


def nested_key(col, row):
    return tuple(row.get(name) for name in col.details['nested-key'].split(','))


def nested_order(col, row):
    """NULL is the smallest."""
    return [(value is not None, value if value is not None else 0) for value in (row.get(n) for n in col.details['nested-sequence-field'].split(','))]


def agg_nested_update(col, stored, new):
    if new is None:
        return stored
    result, limit = list(stored or []), int(col.details.get('count-limit', 2147483647))
    for row in new:
        at = None
        if 'nested-key' in col.details:
            if None in nested_key(col, row) and col.details.get('nested-key-null-strategy') == 'ignore':
                continue
            at = next((i for i, old in enumerate(result) if nested_key(col, old) == nested_key(col, row)), None)
        if at is None:
            if len(result) < limit:
                result.append(row)
        elif 'nested-sequence-field' not in col.details or nested_order(col, row) >= nested_order(col, result[at]):
            result[at] = row
    return result


def agg_nested_partial_update(col, stored, new):
    if new is None:
        return stored
    result = list(stored or [])
    for row in new:
        at = next((i for i, old in enumerate(result) if nested_key(col, old) == nested_key(col, row)), None)
        if at is None:
            result.append(row)
        else:
            result[at] = {**result[at], **{k: v for k, v in row.items() if v is not None}}
    return result


def agg_longest(col, stored, new):
    """A user's function, strict: the first value that is not NULL is the state, NULLs are left out."""
    if stored is None or new is None:
        return new if stored is None else stored
    return new if len(new) > len(stored) else stored


def agg_step(col, stored, new):
    """A user's function that sees NULLs."""
    result = (100 if stored is None else stored) * 2 + (7 if new is None else new)
    return result % 1000003 if result >= 0 else -(-result % 1000003)


FOLD = {
    'sum': agg_sum, 'product': agg_product, 'max': agg_max, 'min': agg_min, 'last_non_null_value': agg_last_non_null,
    'last_value': lambda col, stored, new: new, 'first_non_null_value': agg_first_non_null, 'first_not_null_value': agg_first_non_null,
    'listagg': agg_listagg, 'bool_and': agg_bool_and, 'bool_or': agg_bool_or, 'collect': agg_collect, 'merge_map': agg_merge_map,
    'merge_map_with_keytime': agg_keytime, 'nested_update': agg_nested_update, 'nested_partial_update': agg_nested_partial_update,
    'engine_longest': agg_longest, 'engine_step': agg_step,
}


def back_sum(col, stored, new):
    if new is None:
        return stored
    return -new if stored is None else stored - new


def back_product(col, stored, new):
    """Only values of 1 and -1 are ever taken back: division is exact."""
    assert new is None or abs(new) == 1
    return stored if stored is None or new is None else stored * new


def back_last_non_null(col, stored, new):
    return stored if new is None else None


def back_collect(col, stored, new):
    if stored is None or new is None:
        return stored
    result = list(stored)
    for element in new:
        at = next((i for i, e in enumerate(result) if same(e, element)), None)
        if at is not None:
            del result[at]
    return result


def back_merge_map(col, stored, new):
    if stored is None or new is None:
        return stored
    return {k: v for k, v in stored.items() if k not in new}


def back_nested_update(col, stored, new):
    if stored is None or new is None:
        return stored
    if 'nested-key' in col.details:
        gone = [nested_key(col, row) for row in new]
        return [row for row in stored if nested_key(col, row) not in gone]
    return [row for row in stored if row not in new]


RETRACT = {
    'sum': back_sum, 'product': back_product, 'last_value': lambda col, stored, new: None, 'last_non_null_value': back_last_non_null, 'collect': back_collect,
    'merge_map': back_merge_map, 'nested_update': back_nested_update,
}


def retract(col, stored, new):
    return stored if col.ignore_retract else RETRACT[col.function](col, stored, new)


# ---- rows ----

class State:
    """A visible row; met: some added row is part of it."""

    def __init__(self, row, met):
        self.row, self.met = row, met


def smallest_null(value):
    return (value is not None, value if value is not None else 0)


def order_of(group, row):
    return [smallest_null(row[c]) for c in group.order]


def in_group(group, row):
    return any(row[c] is not None for c in group.order)


def nothing(spec, values):
    return [values[i] if col.role == 'key' else None for i, col in enumerate(spec.columns)]


def take_sequence(spec, row, values):
    for c in spec.sequence:
        row[c] = values[c]


def add_to_group(spec, group, row, values):
    if not in_group(group, values):
        return
    newer = order_of(group, values) >= order_of(group, row)
    for c in group.columns:
        col = spec.columns[c]
        if col.function is None:
            if newer:
                row[c] = values[c]
        elif col.function == 'first_value':
            # the stored value stays, but in a group that is empty so far; a late row goes in front
            if not newer or (not in_group(group, row) and row[c] is None):
                row[c] = values[c]
        elif newer:
            row[c] = FOLD[col.function](col, row[c], values[c])
        elif (values[c] is None and col.function != 'engine_step') or (col.function == 'listagg' and blank(values[c])):
            continue
        elif col.function == 'collect':
            row[c] = agg_collect(col, row[c], values[c])
        else:
            late = agg_keytime(col, None, values[c]) if col.function == 'merge_map_with_keytime' else values[c]
            row[c] = FOLD[col.function](col, late, row[c])
    if newer:
        for c in group.order:
            row[c] = values[c]


def add_partial(spec, state, values):
    row = state.row if state else nothing(spec, values)
    grouped = {c for g in spec.groups for c in g.order + g.columns}
    for c, col in enumerate(spec.columns):
        if c not in grouped and c not in spec.sequence and values[c] is not None:
            row[c] = values[c]
    for group in spec.groups:
        add_to_group(spec, group, row, values)
    take_sequence(spec, row, values)
    return State(row, True)


def retract_partial(spec, state, kind, values):
    if spec.remove_on_delete:
        return None if kind == '-D' else state
    if state is None:
        return None
    row = state.row
    for group in spec.groups:
        if kind == '-D' and group.removes and in_group(group, values) and order_of(group, values) >= order_of(group, row):
            return None
    for group in spec.groups:
        if not in_group(group, values):
            continue
        newer = order_of(group, values) >= order_of(group, row)
        for c in group.columns:
            col = spec.columns[c]
            if col.function is not None:
                row[c] = retract(col, row[c], values[c])
            elif newer:
                row[c] = None
        if newer:
            for c in group.order:
                row[c] = values[c]
    take_sequence(spec, row, values)
    return state


def add_aggregate(spec, state, values):
    row = state.row if state else nothing(spec, values)
    for c, col in enumerate(spec.columns):
        if col.role in ('key', 'seq'):
            continue
        if col.function == 'first_value':
            if state is None or not state.met:
                row[c] = values[c]
        else:
            row[c] = FOLD[col.function](col, row[c], values[c])
    take_sequence(spec, row, values)
    return State(row, True)


def retract_aggregate(spec, state, kind, values):
    if spec.remove_on_delete and kind == '-D':
        return None
    row = state.row if state else nothing(spec, values)
    for c, col in enumerate(spec.columns):
        if col.role not in ('key', 'seq'):
            row[c] = retract(col, row[c], values[c])
    take_sequence(spec, row, values)
    return State(row, state is not None and state.met)


def apply(spec, state, kind, values):
    """One record; `state` is given up."""
    if kind == 'UPDATE':
        return State(list(values), True)
    if kind == 'DELETE':
        return None
    add = kind in ('+I', '+U')
    if spec.engine == 'deduplicate':
        return State(list(values), True) if add else None
    if spec.engine == 'first-row':
        return state or State(list(values), True)
    if spec.engine == 'partial-update':
        return add_partial(spec, state, values) if add else retract_partial(spec, state, kind, values)
    return add_aggregate(spec, state, values) if add else retract_aggregate(spec, state, kind, values)


def compare_sequence(spec, a, b):
    for c in spec.sequence:
        x, y = a[1][c], b[1][c]
        if x is None or y is None:
            order = (x is not None) - (y is not None)
        else:
            order = ((x > y) - (x < y)) * (-1 if spec.descending else 1)
        if order:
            return order
    return 0


def visible(spec, records):
    """The row of a key, or None."""
    if spec.sequence:
        records = sorted(records, key=cmp_to_key(lambda a, b: compare_sequence(spec, a, b)))
    state = None
    for kind, values in records:
        state = apply(spec, state, kind, values)
    return state.row if state else None


def admitted(spec, kind, values):
    """Is a record kept (True) or dropped when it is written?  Raises Refused."""
    if kind in ('-U', '-D', 'DELETE') and spec.ignore_delete:
        return False
    if kind == '-U' and spec.ignore_update_before:
        return False
    if spec.engine == 'first-row' and kind not in ('+I', '+U'):
        raise Refused('first-row')
    if kind not in ('-U', '-D'):
        return True
    if spec.engine == 'partial-update':
        if spec.remove_on_delete:
            return True
        if not spec.groups:
            raise Refused('retract')
        columns = [c for g in spec.groups if in_group(g, values) for c in g.columns]
    elif spec.engine == 'aggregation':
        if spec.remove_on_delete and kind == '-D':
            return True
        columns = [c for c, col in enumerate(spec.columns) if col.role not in ('key', 'seq')]
    else:
        return True
    for c in columns:
        col = spec.columns[c]
        if col.function is not None and not col.ignore_retract and col.function not in RETRACT:
            raise Refused(col.name)
    return True
