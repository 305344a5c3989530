"""JSON, CSV and TOML that parse, or nearly so, and say something else: as somebody would write them by hand."""

import copy
import json

DIGITS = "9" * 5000
LITERALS = (
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "1.5",
    "1e400",
    "-0.0",
    "1" + "0" * 400,
    DIGITS,
    "9223372036854775808",
    "1e308",
    "5e-324",
    "NaN",
    "-Infinity",
    '""',
    '"x"',
    '"nan"',
    '"0"',
    '"true"',
    '"\\u0000"',
    '"\\ud800"',
    '"../../x"',
    '"' + "y" * 10_000 + '"',
    "[]",
    "{}",
    "[null]",
    "[[]]",
    '{"": {}}',
    "[1, 2, 3]",
    '["a", "b"]',
    "[" * 100_000,
    "[" * 900 + "]" * 900,
    "[" * 100_000 + "]" * 100_000,
    '{"a": ' * 20_000 + "1" + "}" * 20_000,
    "[" + "[]," * 20_000 + "[]]",
)
NEST = 5
"""One in so many long literals is taken: they take longest to read."""


def json_text(content, random):
    """Change one to two places of a JSON text: another value, a key less, one more, twice, values exchanged."""
    value = {"": json.loads(content)}
    raw = {}
    for _ in range(random.choice((1, 1, 1, 2))):
        random.choice(_JSON_CHANGES)(value, random, raw)
    text = json.dumps(value[""], ensure_ascii=random.random() < 0.5) if "" in value else ""
    for mark, literal in raw.items():
        text = text.replace(f'"{mark}"', literal)
    return text.encode("utf-8", "surrogatepass")


def _places(node):
    """Every place below a node, as the object or list that holds it, and its key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def _place(value, random):
    # Long lists of numbers are one place among the others, not all of them.
    found = [(holder, key) for holder, key in _places(value) if isinstance(holder, dict) or key < 4]
    return random.choice(found)


def _literal(random, raw):
    literal = random.choice(LITERALS)
    if len(literal) > 1000 and random.randrange(NEST):
        literal = random.choice(LITERALS[:24])
    mark = f"@@{len(raw)}@@"
    raw[mark] = literal
    return mark


def _other(value, random, raw):
    holder, key = _place(value, random)
    holder[key] = _literal(random, raw)


def _less(value, random, raw):
    holder, key = _place(value, random)
    if key != "":
        del holder[key]


def _more(value, random, raw):
    holder, key = _place(value, random)
    inner = holder[key]
    if isinstance(inner, dict):
        inner[random.choice(("more", "", "__class__", "\0", "self"))] = _literal(random, raw)
    elif isinstance(inner, list):
        inner.insert(random.randrange(len(inner) + 1), _literal(random, raw))


def _twice(value, random, raw):
    """A key that comes twice: with the same value, or with another one."""
    holder, key = _place(value, random)
    if isinstance(holder, dict) and key:
        again = json.dumps(holder[key]) if random.random() < 0.5 else random.choice(LITERALS[:24])
        mark = f"@@{len(raw)}@@"
        raw[mark] = f"{json.dumps(holder[key])}, {json.dumps(key)}: {again}"
        holder[key] = mark


def _renamed(value, random, raw):
    holder, key = _place(value, random)
    if isinstance(holder, dict) and key:
        holder[random.choice((key.upper(), key + " ", key[:-1], " " + key))] = holder.pop(key)


def _exchanged(value, random, raw):
    (one, first), (other, second) = _place(value, random), _place(value, random)
    kept = copy.deepcopy(one[first])
    one[first] = copy.deepcopy(other[second])
    if second in other if isinstance(other, dict) else second < len(other):
        other[second] = kept


def _nudged(value, random, raw):
    """A number or a text a little different."""
    holder, key = _place(value, random)
    inner = holder[key]
    if isinstance(inner, bool) or inner is None:
        holder[key] = not inner
    elif isinstance(inner, int | float):
        holder[key] = random.choice((inner + 1, -inner, inner * 10, float(inner), str(inner)))
    elif isinstance(inner, str):
        holder[key] = random.choice((inner + "x", inner[1:], inner.upper(), inner[::-1]))


_JSON_CHANGES = (_other, _other, _other, _less, _less, _more, _twice, _renamed, _exchanged, _nudged)

CELLS = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "1e-400",
    "0_1",
    "\u0661",
    "0x10",
    "1,5",
    DIGITS,
    "1" * 400,
    "9223372036854775808",
    "=1+1",
    "true",
    "0|1",
    "|",
    "0||1",
    "a|a",
    'a"b',
    '"unclosed',
    '"a""b"',
    '"two\nlines"',
    "\0",
    "\ufeff",
    "\x1a",
    "x" * 200_000,
    "predicted",
    "true",
    "id",
    "1.",
    ".5",
    "+.5e3",
    "0.5 ",
    "\u00a0",
)
ENCODINGS = ("utf-16", "utf-32", "utf-8-sig", "latin-1", "utf-7")


def csv_text(content, random):
    """Change one to two cells, rows, columns, separators, line ends, or the encoding of a table."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(random.choice((1, 1, 1, 2))):
        random.choice(_CSV_CHANGES)(rows, random)
    comma, end = random.choice(((",", "\n"),) * 12 + ((";", "\n"), ("\t", "\n"), (",", "\r\n"), (",", "\r"), (",", "")))
    text = end.join(comma.join(row) for row in rows)
    encoding = random.choice(("utf-8",) * 12 + ENCODINGS)
    return text.encode(encoding, "replace") + random.choice((b"",) * 20 + (b"\0", b"\xff", b"\n\n", b'"'))


def _cell(rows, random):
    row = random.choice(rows or [[""]])
    if row:
        cell = random.choice(CELLS)
        row[random.randrange(len(row))] = cell if len(cell) < 1000 or not random.randrange(NEST) else "-1"


def _heading(rows, random):
    if rows and rows[0]:
        rows[0][random.randrange(len(rows[0]))] = random.choice(
            ("", "predicted", "true", "id", "Predicted", "x" * 300, "a", "frame_id", "steering_angle", " id")
        )


def _row(rows, random):
    """A row less, twice, elsewhere, or of another length."""
    if not rows:
        return
    place = random.randrange(len(rows))
    kind = random.randrange(5)
    if kind == 0:
        del rows[place]
    elif kind == 1:
        rows.insert(place, list(rows[place]))
    elif kind == 2:
        rows.insert(random.randrange(len(rows)), rows.pop(place))
    elif kind == 3:
        rows[place] = rows[place][:-1]
    else:
        rows[place] = [*rows[place], random.choice(CELLS[:20])]


def _column(rows, random):
    """A column less, twice, or exchanged with another one."""
    width = min(map(len, rows), default=0)
    if width:
        place, kind = random.randrange(width), random.randrange(3)
        for row in rows:
            if kind == 0:
                del row[place]
            elif kind == 1:
                row.append(row[place])
            else:
                row[0], row[place] = row[place], row[0]


def _nothing_but(rows, random):
    """The heading alone, or nothing."""
    del rows[random.randrange(2) :]


_CSV_CHANGES = (_cell, _cell, _cell, _cell, _heading, _row, _row, _column, _nothing_but)

TOML = (
    "",
    "limits = 5",
    "limits = []",
    "limits = ['memory_mib']",
    "limits = [['memory_mib', 5]]",
    "limits = 'memory_mib'",
    "limits = 1979-05-27",
    "[[limits]]\nmemory_mib = 1",
    "[limits]\nmemory_mib = 0",
    "[limits]\nmemory_mib = -1",
    "[limits]\nmemory_mib = 1.5",
    "[limits]\nmemory_mib = true",
    "[limits]\nmemory_mib = nan",
    "[limits]\nmemory_mib = '1024'",
    "[limits]\nmemory_mib = {}",
    f"[limits]\nmemory_mib = {DIGITS}",
    "[limits]\nmemory_mib = 1" + "0" * 400,
    "[limits]\nmemory_mib = 1\nmemory_mib = 2",
    "[limits]\nmemory_mib = 64\nother = 3",
    "[limits]\n" + "a." * 500 + "b = 1",
    "[limits]\nmemory_mib = " + "[" * 50_000,
    "[limits]\nmemory_mib = " + "{a=" * 1_000,
    "[" + "a." * 1_000 + "b]",
    "\ufeff[limits]\nmemory_mib = 64",
    "memory_mib = 64",
    "[limits.memory_mib]\n",
    "x = '''",
    "[limits]\r\nmemory_mib = 0x40\r\n",
)


def toml_text(content, random):
    """A config file of a fixed list."""
    return random.choice(TOML).encode()
