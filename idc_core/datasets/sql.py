"""SQL strings made from a small grammar, with the parse of every character known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.datasets.dataset import Items
from idc_core.datasets.registry import shipped

SYMBOLS = 30
"""Characters of one record."""

WINDOWS = 4
"""Records cut from one string."""

_RECORDS = {"train": 29_696, "test": 5_120}

_LEARNS_FROM = 2_048
"""A recurrent network reads symbol by symbol: all training records would keep two cores busy for ten seconds."""

_GRAMMAR: dict[str, tuple[tuple[str, ...], ...]] = {
    "query": (("select clause", " ", "from clause", "where part", "group part", "order part", "limit part", ";"),),
    "select clause": (("SELECT ", "column list"), ("SELECT ", "column list"), ("SELECT DISTINCT ", "column list")),
    "column list": (("item",), ("item", ", ", "column list"), ("item", ", ", "column list")),
    "item": (("column",), ("column",), ("aggregate",)),
    "aggregate": (("function", "(", "column", ")"),),
    "function": (("SUM",), ("MIN",), ("MAX",), ("AVG",), ("COUNT",)),
    "column": (("name",), ("qualified name",)),
    "qualified name": (("table", ".", "name"),),
    "name": (("age",), ("city",), ("price",), ("title",), ("year",), ("engine",), ("weight",), ("owner",)),
    "table": (("cars",), ("shops",), ("trips",), ("people",)),
    "from clause": (("FROM ", "table"), ("FROM ", "table", " ", "join")),
    "join": (("JOIN ", "table", " ON ", "qualified name", " = ", "qualified name"),),
    "where part": ((), (" ", "where clause"), (" ", "where clause"), (" ", "where clause")),
    "where clause": (("WHERE ", "condition"),),
    "condition": (("comparison",), ("comparison",), ("comparison", " ", "connective", " ", "condition"), ("negation",)),
    "connective": (("AND",), ("OR",)),
    "negation": (("NOT (", "comparison", ")"), ("NOT (", "condition", ")")),
    "comparison": (
        ("column", " ", "operator", " ", "number"),
        ("column", " ", "operator", " ", "number"),
        ("column", " = ", "string"),
        ("column", " LIKE ", "pattern"),
        ("column", " BETWEEN ", "number", " AND ", "number"),
        ("column", " IN (", "subquery", ")"),
    ),
    "operator": (("=",), ("<",), (">",), ("<=",), (">=",)),
    "number": (("digit",), ("digit", "number")),
    "digit": tuple((digit,) for digit in "0123456789"),
    "string": (("'", "word", "'"),),
    "pattern": (("'", "word", "%'"), ("'%", "word", "'")),
    "word": (("red",), ("blue",), ("fast",), ("oslo",), ("rome",), ("lima",)),
    "subquery": (("SELECT ", "name", " FROM ", "table"), ("SELECT ", "name", " FROM ", "table", " ", "where clause")),
    "group part": ((), (), (" ", "group clause")),
    "group clause": (("GROUP BY ", "name"), ("GROUP BY ", "name", " ", "having clause")),
    "having clause": (("HAVING ", "aggregate", " ", "operator", " ", "number"),),
    "order part": ((), (" ", "order clause")),
    "order clause": (("ORDER BY ", "name"), ("ORDER BY ", "name", " ", "direction")),
    "direction": (("ASC",), ("DESC",)),
    "limit part": ((), (), (" ", "limit clause")),
    "limit clause": (("LIMIT ", "number"),),
}
"""Rules and their alternatives, all equally probable; what is no rule stands for itself."""

RULES = tuple(_GRAMMAR)
KEYWORDS = (
    "SELECT",
    "DISTINCT",
    "FROM",
    "JOIN",
    "ON",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "LIKE",
    "BETWEEN",
    "IN",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "ASC",
    "DESC",
    "LIMIT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "COUNT",
)
"""Words of the language, as they are written."""

_DEEPEST = 14
"""Below this depth a rule takes its first alternative, so that every string ends."""

_CHARACTERS = "".join(
    sorted({c for options in _GRAMMAR.values() for option in options for s in option if s not in _GRAMMAR for c in s})
)
_VOCABULARY = ("<padding>", "<unknown>", *_CHARACTERS)
_CLASSES = tuple("space" if character == " " else character for character in _CHARACTERS)
_CODES = {character: code for code, character in enumerate(_VOCABULARY)}


@dataclass(frozen=True)
class Sentence:
    """A string and its parse.

    A span is a node of the parse tree: index in `RULES`, the characters start to end - 1, and how deep it lies.
    """

    text: str
    spans: tuple[tuple[int, int, int, int], ...]


def make_sentence(source: random.Random) -> Sentence:
    """Derive a string from the grammar."""
    pieces: list[str] = []
    spans: list[tuple[int, int, int, int]] = []

    def derive(rule: str, start: int, depth: int) -> int:
        options = _GRAMMAR[rule]
        option = options[0] if depth > _DEEPEST else options[int(source.random() * len(options))]
        end = start
        for symbol in option:
            if symbol in _GRAMMAR:
                end = derive(symbol, end, depth + 1)
            else:
                pieces.append(symbol)
                end += len(symbol)
        if end > start:
            spans.append((_NUMBERS[rule], start, end, depth))
        return end

    derive("query", 0, 0)
    return Sentence("".join(pieces), tuple(spans))


_NUMBERS = {rule: number for number, rule in enumerate(RULES)}


@lru_cache(maxsize=4)
def sentences(split: str, count: int) -> tuple[tuple[Sentence, ...], NDArray[np.int64]]:
    """Return the first strings of a split, and where each of their records begins: int64 (count, WINDOWS).

    Every string is longer than a record, so that there is a next character to predict.
    """
    source = random.Random(f"idc-studio sql {split}")
    made: list[Sentence] = []
    offsets = np.empty((count, WINDOWS), np.int64)
    while len(made) < count:
        sentence = make_sentence(source)
        if len(sentence.text) <= SYMBOLS:
            continue
        offsets[len(made)] = [int(source.random() * (len(sentence.text) - SYMBOLS)) for _ in range(WINDOWS)]
        made.append(sentence)
    offsets.setflags(write=False)
    return tuple(made), offsets


def encode(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the codes of strings of one length, int64 (n, length)."""
    return np.array([[_CODES[character] for character in text] for text in texts], np.int64)


@shipped(
    "sql",
    "SQL strings",
    "29,696 training and 5,120 test pieces of 30 characters from SQL made by a grammar; the class is what comes next.",
    class_names=_CLASSES,
    input_shape=(SYMBOLS,),
    citation="after T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019",
    licence="MIT, like this program, which makes them",
    learns_from=_LEARNS_FROM,
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Return character codes int64 (n, 30), the next character's class int64 (n,), the vocabulary and the texts."""
    count = _RECORDS[split] if limit is None else min(limit, _RECORDS[split])
    report(on_progress, 0, 1, "Making SQL strings")
    made, offsets = sentences(split, -(-count // WINDOWS))
    texts = [
        sentence.text[at : at + SYMBOLS + 1]
        for sentence, starts in zip(made, offsets, strict=True)
        for at in starts.tolist()
    ][:count]
    codes = encode(texts)
    report(on_progress, 1, 1, "Making SQL strings")
    return Items(
        np.ascontiguousarray(codes[:, :SYMBOLS]),
        codes[:, SYMBOLS] - 2,
        _VOCABULARY,
        tuple(text[:SYMBOLS] for text in texts),
    )


@dataclass(frozen=True, eq=False)
class Parses:
    """Where rules are used in records.

    `inside`, `starts` and `ends`, bool (n, SYMBOLS, rules): the character is in a node of the rule, is its first, its
    last. `depth`, int64 (n, SYMBOLS): nodes around the character.
    """

    inside: NDArray[np.bool_]
    starts: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    depth: NDArray[np.int64]


def parses(split: str, ids: NDArray[np.int64]) -> Parses:
    """Return how the grammar made some records of a split, given their ids."""
    nodes, first, begins = _nodes(split)
    sentence = ids // WINDOWS
    counts = first[sentence + 1] - first[sentence]
    record = np.repeat(np.arange(len(ids)), counts)
    at = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts) + first[sentence][record]
    return _marked(nodes[at], record, begins[sentence, ids % WINDOWS])


def parses_of(made: Sequence[Sentence], begins: NDArray[np.int64]) -> Parses:
    """Return how the grammar made pieces of `SYMBOLS` characters, one of each string, given where each begins."""
    spans = np.array([span for sentence in made for span in sentence.spans], np.int64).reshape(-1, 4)
    return _marked(spans, np.repeat(np.arange(len(made)), [len(sentence.spans) for sentence in made]), begins)


def _marked(nodes: NDArray[np.int64], record: NDArray[np.int64], begins: NDArray[np.int64]) -> Parses:
    """Mark nodes of the parse (nodes, 4), each of a record, in the pieces that begin at `begins` (n,)."""
    begin = begins[record]
    rule, start, end = nodes[:, 0], nodes[:, 1] - begin, nodes[:, 2] - begin
    # A rule's marks side by side in memory, as whoever asks for one of them reads them.
    edges = np.zeros((len(RULES), len(begins), SYMBOLS + 1), np.int16)
    np.add.at(edges, (rule, record, np.clip(start, 0, SYMBOLS)), np.int16(1))
    np.add.at(edges, (rule, record, np.clip(end, 0, SYMBOLS)), np.int16(-1))
    around = edges.cumsum(2, dtype=np.int16)[..., :SYMBOLS]
    starts, ends = np.zeros((2, len(RULES), len(begins), SYMBOLS), bool)
    begun, ended = (start >= 0) & (start < SYMBOLS), (end > 0) & (end <= SYMBOLS)
    starts[rule[begun], record[begun], start[begun]] = True
    ends[rule[ended], record[ended], end[ended] - 1] = True
    inside, starts, ends = (np.moveaxis(marks, 0, 2) for marks in (around > 0, starts, ends))
    return Parses(inside, starts, ends, around.sum(0, dtype=np.int64))


@lru_cache(maxsize=2)
def _nodes(split: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all nodes of a split (nodes, 4), where each string's begin, and where its records begin."""
    made, offsets = sentences(split, -(-_RECORDS[split] // WINDOWS))
    counts = [len(sentence.spans) for sentence in made]
    first = np.concatenate([[0], np.cumsum(counts)])
    return np.array([span for sentence in made for span in sentence.spans], np.int64), first, offsets
