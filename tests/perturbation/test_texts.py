"""Changes of texts, against slow versions: a change is undone by trying every text that one step leads to."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import idc_core as idc
from idc_core.datasets.reading import Reading
from idc_core.errors import DataError, SettingError
from idc_core.perturbation import TEXT_CHANGES, change_texts
from idc_core.perturbation.texts.synonyms import SYNONYMS
from idc_core.perturbation.texts.typos import _mistyped
from idc_core.suites import original, perturbed
from idc_core.suites.suite import SuitePart

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ("", "?", "<s>", "good", "fine", "bad", "car", "engine", "the", "of", "goalie", "puck")
READING = Reading(WORDS, (0, 1, 2), is_spelt=False)
SPELT = Reading(("", "?", " ", *LETTERS), (0, 1), is_spelt=True)
LENGTH = 14


@pytest.fixture(scope="module")
def texts():
    rows = np.random.default_rng(0).integers(3, len(WORDS), (20, LENGTH))
    rows[:, 0], rows[:, 4], rows[::2, 10:] = 2, 1, 0
    return rows


def changed_words(texts, name, **settings):
    made = change_texts(texts, READING, name, **settings)
    return [(READING.words(before), READING.words(after)) for before, after in zip(texts, made, strict=True)]


def within_a_step(word):
    """Every word that one typo leads to, by trying all letters at all places."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    dropped = {left + right[1:] for left, right in cuts if right}
    swapped = {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}
    other = {left + letter + right[1:] for left, right in cuts if right for letter in LETTERS}
    return (dropped | swapped | other | {left + letter + right for left, right in cuts for letter in LETTERS}) - {word}


def test_a_typo_is_one_step_from_the_word():
    for seed in range(60):
        assert _mistyped("puck", np.random.default_rng(seed)) in within_a_step("puck")
        assert _mistyped("a", np.random.default_rng(seed)) in {"aa", "s"}
    assert len({_mistyped("puck", np.random.default_rng(seed)) for seed in range(60)}) > 10


def test_typos_of_whole_words_are_unknown_and_of_characters_are_read(texts):
    for before, after in changed_words(texts, "typos", share=0.3):
        places = [at for at, (word, other) in enumerate(zip(before, after, strict=True)) if word != other]
        assert len(places) == int(0.3 * sum(word in WORDS[3:] for word in before))
        assert all(after[at] == "…" or after[at] in within_a_step(before[at]) for at in places)
    text = "the puck hit the goalie"
    like = np.zeros(40, np.int64)
    made = SPELT.words(change_texts(SPELT.tokens(text.split(), like)[None], SPELT, "typos", share=0.4, seed=3)[0])
    different = [(one, other) for one, other in zip(text.split(), made, strict=True) if one != other]
    assert len(different) == 2
    assert all(other in within_a_step(one) for one, other in different)


def test_dropped_words_leave_the_others_in_their_order(texts):
    for before, after in changed_words(texts, "dropped", share=0.25):
        rest = iter(before)
        assert all(word in rest for word in after), "a part of the text, in its order"
        assert len(before) - len(after) == max(1, int(0.25 * sum(word in WORDS[3:] for word in before)))
        assert after[0] == "<s>"
        assert "…" in after


def test_swapped_words_are_neighbours(texts):
    for before, after in changed_words(texts, "swapped", share=0.01):
        ways = [before]
        for at in range(len(before) - 1):
            way = [*before[:at], before[at + 1], before[at], *before[at + 2 :]]
            ways += [way] * (before[at] in WORDS[3:] and before[at + 1] in WORDS[3:])
        assert after in ways


def test_synonyms_are_from_the_list_and_known(texts):
    others = {"good": {"fine"}, "fine": {"good"}, "engine": set()}
    for before, after in changed_words(texts, "synonyms", share=1.0):
        assert [
            other in others.get(word, set()) if word != other else word not in ("good", "fine")
            for word, other in zip(before, after, strict=True)
        ].count(False) == 0
    assert all(word in SYNONYMS[other] for word, group in SYNONYMS.items() for other in group)


@pytest.mark.parametrize("name", TEXT_CHANGES)
def test_a_change_depends_on_seed_and_number_alone(texts, name):
    whole = change_texts(texts, READING, name, seed=5)
    np.testing.assert_array_equal(whole[3:5], change_texts(texts[3:5], READING, name, seed=5, numbers=[3, 4]))
    assert (whole != change_texts(texts, READING, name, seed=6)).any()
    assert whole.shape == texts.shape
    assert whole.dtype == texts.dtype
    assert (whole != texts).any()


def test_what_cannot_be_changed_is_refused_or_stays(texts):
    with pytest.raises(DataError, match="Only texts"):
        change_texts(np.zeros((2, 3), np.float32), READING, "typos")
    with pytest.raises(SettingError, match="share"):
        change_texts(texts, READING, "typos", share=2.0)
    marks = np.array([[2, 1, 0, 0]])
    np.testing.assert_array_equal(change_texts(marks, READING, "typos", share=1.0), marks)
    with pytest.raises(SettingError, match="whole words or characters"):
        perturbed(original(idc.load_dataset("digits", limit=3)), "typos")


def test_a_suite_of_changed_texts_is_made_of_the_tests(texts):
    parts = (SuitePart.of(texts, "texts"),)
    suite = replace(original(idc.load_dataset("digits", limit=20)), parts=parts, shape=(LENGTH,), reading=READING)
    made = perturbed(suite, "dropped", seed=2, share=0.2)
    expected = change_texts(texts, READING, "dropped", seed=2, share=0.2, numbers=suite.origin)
    np.testing.assert_array_equal(made.take(np.arange(20)), expected)
    np.testing.assert_array_equal(made.take([7, 3]), expected[[7, 3]])


def test_texts_in_pieces_of_words_are_not_read():
    pieces = SimpleNamespace(inputs=np.zeros((1, 2), int), vocabulary=("", "##s"), is_pieces=True)
    assert Reading.of(pieces) is None
