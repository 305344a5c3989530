"""Saved suites as the tests of a network: offered where they fit, and the same inputs as when they were saved."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from idc_core.datasets import DATASETS, load_dataset
from idc_core.errors import DataError
from idc_core.suites import SAVED, enter_saved, original, save_suite, select_tests

ROOT = Path(__file__).parents[2]
TEXT_LENGTH = 6


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "test", 60)


def test_a_saved_suite_is_a_data_set_of_tests(digits):
    name = save_suite("the first *few*", select_tests(original(digits), range(5, 25))).stem
    assert SAVED.is_id(name)
    assert enter_saved(DATASETS["digits"]) == [name]
    assert DATASETS[name].label == "the first few"
    found = load_dataset(name)
    np.testing.assert_array_equal(found.inputs, digits.inputs[5:25])
    np.testing.assert_array_equal(found.targets, digits.targets[5:25])
    assert (found.class_names, found.task) == (digits.class_names, digits.task)
    assert found.ids.tolist() == list(range(20))
    assert len(load_dataset(name, limit=7)) == 7
    with pytest.raises(DataError, match="'the first few' holds tests alone"):
        load_dataset(name, "train")


def test_it_is_offered_where_it_fits_and_no_longer_once_deleted(digits):
    name = save_suite("few", select_tests(original(digits), range(5))).stem
    assert enter_saved(DATASETS["mnist"]) == [name], "the same shape and classes"
    assert enter_saved(DATASETS["fashion-mnist"]) == []
    assert enter_saved(DATASETS["20newsgroups"]) == []
    held = load_dataset(name)
    SAVED.delete(name)
    assert enter_saved(DATASETS["digits"]) == []
    assert len(held) == 5


def test_texts_keep_the_words_of_the_networks_own_data(monkeypatch):
    words, tokens = ("", "?", "a", "b"), np.array([[2, 3, 0, 0, 0, 0], [3, 3, 2, 0, 0, 0]])
    own = replace(DATASETS["20newsgroups"], class_names=("x", "y"), input_shape=(TEXT_LENGTH,))
    like = replace(
        load_dataset("digits", "test", 2),
        inputs=tokens,
        targets=np.array([0, 1]),
        class_names=("x", "y"),
        vocabulary=words,
    )
    monkeypatch.setattr("idc_core.suites.saved_tests.load_dataset", lambda *_, **__: like)
    name = save_suite("two", original(like)).stem
    assert enter_saved(own) == [name]
    found = load_dataset(name)
    assert found.vocabulary == words
    assert found.words(found.inputs[1][:3]) == ["b", "b", "a"]


def test_saved_suites_are_listed_without_torch():
    code = "import sys; from idc_core.suites import saved_suites; saved_suites(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False", "the sidebar would wait for torch on a fresh server"
