"""Hypotheses about symbols of a text: which character, which word, which run of them, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.inspection.hypothesis import PARSES, Hypothesis, Records, is_text, register_family

_COMMONEST = 40
"""Symbols, and runs of symbols, that get a hypothesis of their own."""

_RUNS = (2, 3)
"""Symbols of a run."""

_COUNTED = 5000
"""Records in which runs are counted."""

_CLASSES: dict[str, Callable[[str], bool]] = {
    "a letter": str.isalpha,
    "an upper-case letter": lambda symbol: symbol.isalpha() and symbol.isupper(),
    "a lower-case letter": lambda symbol: symbol.isalpha() and symbol.islower(),
    "a digit": str.isdigit,
    "a space": str.isspace,
    "punctuation": lambda symbol: not symbol.isalnum() and not symbol.isspace(),
    "a vowel": lambda symbol: symbol.lower() in tuple("aeiou"),
    "a bracket": lambda symbol: symbol in tuple("()[]{}"),
    "a quotation mark": lambda symbol: symbol in tuple("'\""),
    "a comparison sign": lambda symbol: symbol in tuple("<>="),
}
"""Classes of characters, by what a character of it is."""


def _codes(dataset: Dataset, wanted: Callable[[str], bool]) -> NDArray[np.int64]:
    """Return the token ids whose symbol is wanted; neither padding nor the unknown symbol ever is."""
    words = enumerate(dataset.vocabulary)
    return np.array([code for code, word in words if code not in dataset.special and wanted(word)], np.int64)


def _are(records: Records, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which symbols are among some, bool (n, symbols)."""
    among: NDArray[np.bool_] = records.once(("symbols", codes.tobytes()), lambda: _look_up(records.tokens, codes))
    return among


def _look_up(tokens: NDArray[np.generic], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    if len(codes) == 1:
        return np.asarray(tokens == codes[0])
    known = np.zeros(1 + max(tokens.max(initial=0), codes.max(initial=0)), bool)
    known[codes] = True
    return np.asarray(known[tokens])


def _one_of(name: str, group: str, codes: NDArray[np.int64]) -> Hypothesis:
    return Hypothesis(name, group, "binary", lambda records: _are(records, codes))


def _is_of_characters(dataset: Dataset) -> bool:
    """Whether a data set is text, read character by character."""
    return is_text(dataset) and dataset.is_spelt


@register_family("characters", "Kinds of characters", "The symbol is a letter, digit, vowel, bracket, and so on.")
def _characters(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer one hypothesis per class of characters of which the vocabulary has some, but not all."""
    if not _is_of_characters(dataset):
        return
    for name, characters in _CLASSES.items():
        codes = _codes(dataset, characters)
        if 0 < len(codes) < len(dataset.vocabulary) - len(set(dataset.special)):
            yield _one_of(f"is {name}", "characters", codes)


@register_family("symbols", "Single symbols", "The symbol is one of the most frequent characters or words.")
def _symbols(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer one hypothesis for each of the commonest symbols, and the symbol itself."""
    if not is_text(dataset) or not dataset.vocabulary:
        return
    counts = np.bincount(dataset.inputs.reshape(-1), minlength=len(dataset.vocabulary))
    counts[list(dataset.special)] = 0
    for code in np.argsort(-counts, kind="stable")[:_COMMONEST]:
        if counts[code]:
            yield _one_of(f"is {_shown(dataset.vocabulary[code])}", "symbols", np.array([code]))


@register_family("runs", "n-grams", "The symbol ends one of the most frequent 2-grams or 3-grams.")
def runs(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer one hypothesis for each of the commonest runs of each length; true at the run's last symbol."""
    if not is_text(dataset) or not dataset.vocabulary:
        return
    special = set(dataset.special)
    for length in _RUNS:
        counts: Counter[tuple[int, ...]] = Counter()
        for row in dataset.inputs[:_COUNTED].tolist():
            counts.update(zip(*(row[at:] for at in range(length)), strict=False))
        common = [run for run, _ in counts.most_common() if not special & set(run)][: _COMMONEST // len(_RUNS)]
        join = "" if _is_of_characters(dataset) else " "
        for run in common:
            yield run_of(run, join.join(dataset.vocabulary[code] for code in run))


def run_of(codes: Sequence[int], shown: str) -> Hypothesis:
    """Return the hypothesis that a symbol ends a run of symbols."""
    ending = tuple(int(code) for code in codes)

    def behave(records: Records) -> NDArray[np.generic]:
        inputs = records.tokens
        ends = np.ones(inputs.shape, bool)
        for back, code in enumerate(reversed(ending)):
            ends[:, back:] &= inputs[:, : inputs.shape[1] - back] == code
            ends[:, :back] = False
        return ends

    return Hypothesis(f"ends {_shown(shown)}", "runs", "binary", behave)


def keyword(dataset: Dataset, word: str) -> Hypothesis:
    """Return the hypothesis that a symbol lies within a word; of characters, no letter may be next to the word."""
    if not _is_of_characters(dataset):
        return _one_of(f"word {_shown(word)}", "words", _codes(dataset, lambda symbol: symbol == word))
    codes = {symbol: code for code, symbol in enumerate(dataset.vocabulary)}
    word_codes = [codes.get(character, -1) for character in word]
    letters = _codes(dataset, str.isalpha)

    def behave(records: Records) -> NDArray[np.generic]:
        inputs = records.tokens
        count, length, size = len(inputs), inputs.shape[1], len(word_codes)
        inside = np.zeros(inputs.shape, bool)
        if size > length:
            return inside
        places = length - size + 1
        here = np.ones((count, places), bool)
        for at, code in enumerate(word_codes):
            here &= inputs[:, at : at + places] == code
        letter = _are(records, letters)
        here[:, 1:] &= ~letter[:, : places - 1]
        here[:, :-1] &= ~letter[:, size:]
        for at in range(size):
            inside[:, at : at + places] |= here
        return inside

    return Hypothesis(f"word {_shown(word)}", "words", "binary", behave)


@register_family("words", "Keywords", "The symbol lies within a keyword.")
def words(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer the keywords of a language whose strings the data set holds."""
    if dataset.name == "sql":
        from idc_core.datasets.sql import KEYWORDS

        for word in KEYWORDS:
            yield keyword(dataset, word)


@register_family("position", "Position", "Position of the symbol in the text or in the word.")
def _position(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer counters of symbols and halves of the record; of characters also the place in the word."""
    if not is_text(dataset):
        return
    length = dataset.inputs.shape[1]
    counter = np.arange(length)
    yield Hypothesis("position", "position", "number", lambda r: np.tile(counter, (len(r), 1)))
    yield Hypothesis("second half", "position", "binary", lambda r: np.tile(counter >= length // 2, (len(r), 1)))
    if _is_of_characters(dataset):
        letters = _codes(dataset, str.isalpha)
        yield Hypothesis("place in the word", "position", "number", lambda r: _run_length(_are(r, letters)))


def _run_length(inside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count how many places in a row, up to each, are inside."""
    counter = np.arange(1, inside.shape[1] + 1)
    outside = np.maximum.accumulate(np.where(inside, 0, counter), 1)
    return np.asarray(counter - outside)


def _shown(symbol: str) -> str:
    """Return a symbol as it is written in a name."""
    return f"“{symbol}”"


@register_family(
    "grammar", "Grammar rules", "The character lies inside, starts or ends a node of the parse; its depth."
)
def _grammar(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer, for strings made by the project's grammar, inside, starts and ends for every rule, and the depth."""
    if dataset.name != "sql":
        return
    from idc_core.datasets.sql import RULES, Parses, parses

    def parsed(records: Records) -> Parses:
        return records.once(PARSES, lambda: parses(records.dataset.split, records.ids))

    def of_rule(records: Records, part: str, number: int) -> NDArray[np.generic]:
        values: NDArray[np.generic] = getattr(parsed(records), part)[:, :, number]
        return values

    for number, rule in enumerate(RULES):
        if rule == "query":  # everything is inside, and no record has the end of it
            continue
        for part in ("inside", "starts", "ends"):
            yield Hypothesis(
                f"{part} {rule}",
                "grammar",
                "binary",
                partial(of_rule, part=part, number=number),
                recomputable=False,
                parsed=True,
            )
    yield Hypothesis(
        "depth", "grammar", "number", lambda records: np.asarray(parsed(records).depth), recomputable=False, parsed=True
    )
