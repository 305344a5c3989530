"""Strings are what the grammar derives, and their parses are true."""

import random
import re

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.datasets.sql import (
    _GRAMMAR,
    _VOCABULARY,
    KEYWORDS,
    RULES,
    SYMBOLS,
    WINDOWS,
    make_sentence,
    parses,
    sentences,
)


def derivable(rule, text, memory):
    """All ends of prefixes of the text that the rule derives: a slow, obvious recogniser."""
    if (rule, text) not in memory:
        memory[rule, text] = {end for option in _GRAMMAR[rule] for end in ends(option, text, memory)}
    return memory[rule, text]


def ends(option, text, memory):
    if not option:
        return {0}
    first, *rest = option
    itself = {len(first)} if text.startswith(first) else set()
    heads = derivable(first, text, memory) if first in _GRAMMAR else itself
    return {head + more for head in heads for more in ends(rest, text[head:], memory)}


@pytest.mark.parametrize("seed", range(10))
def test_strings_and_every_node_are_derived_by_their_rules(seed):
    sentence = make_sentence(random.Random(seed))
    memory = {}
    assert len(sentence.text) in derivable("query", sentence.text, memory)
    for rule, start, end, _ in sentence.spans:
        piece = sentence.text[start:end]
        assert len(piece) in derivable(RULES[rule], piece, memory)


def test_records_are_pieces_of_their_strings_and_the_class_comes_next():
    data = load_dataset("sql", "train", 400)
    assert data.is_spelt
    made, offsets = sentences("train", 100)
    for at, (codes, target, text) in enumerate(zip(data.inputs, data.targets, data.texts, strict=True)):
        start = offsets[at // WINDOWS, at % WINDOWS]
        whole = made[at // WINDOWS].text
        assert text == whole[start : start + SYMBOLS] == "".join(_VOCABULARY[code] for code in codes)
        assert _VOCABULARY[target + 2] == whole[start + SYMBOLS]
        assert data.class_names[target] in (whole[start + SYMBOLS], "space")


def test_parses_are_those_of_a_plain_loop():
    ids = np.array([3, 0, 41, 399, 41])
    found = parses("test", ids)
    made, offsets = sentences("test", 100)
    for row, number in enumerate(ids):
        begin = offsets[number // WINDOWS, number % WINDOWS]
        inside, starts, stops, depth = (np.zeros((SYMBOLS, len(RULES)), int) for _ in range(4))
        for rule, start, end, _ in made[number // WINDOWS].spans:
            for place in range(SYMBOLS):
                within = start <= begin + place < end
                inside[place, rule] |= within
                depth[place, rule] += within
                starts[place, rule] |= begin + place == start
                stops[place, rule] |= begin + place == end - 1
        assert (found.inside[row] == inside).all()
        assert (found.starts[row] == starts).all()
        assert (found.ends[row] == stops).all()
        assert (found.depth[row] == depth.sum(1)).all()


def test_splits_differ_and_every_rule_and_keyword_occurs():
    train, test = (load_dataset("sql", split, 2000) for split in ("train", "test"))
    assert len(set(train.texts) & set(test.texts)) < 40
    assert parses("train", train.ids).inside.any((0, 1)).all()
    whole = " ".join(sentence.text for sentence in sentences("train", 500)[0])
    assert all(re.search(rf"\b{word}\b", whole) for word in KEYWORDS)
