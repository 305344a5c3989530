"""The Test sets page of data that are no pictures with classes: a regression, and texts."""

from types import SimpleNamespace

import numpy as np

from studio.jobs import suite_catalog
from studio.jobs.results import open_view
from studio.state.setup import parse
from studio.testsets import added_inputs
from tests.pages.reading import text
from tests.pages.test_testsets_page import table


def test_regression_has_errors_instead_of_accuracy_and_no_attacks(small_data, open_page):
    app = open_page("testsets", model="dave2-udacity")
    assert not app.exception
    assert "Attacks are not available: they aim at a wrong class, and these tests have no classes" in text(app)
    columns = table(app).columns
    assert "RMSE (rad)" in columns
    assert "confidence" not in columns
    assert "fgsm" not in suite_catalog._catalogue(open_view(parse({"model": "dave2-udacity"})))


def test_texts_have_changes_of_their_own(small_data, open_page):
    app = open_page("testsets", model="textcnn-20newsgroups", suites="typos,dropped")
    assert not app.exception
    assert "Texts have typos, synonyms and other changes of words. Noise, transforms and attacks apply" in text(app)
    assert {"Original tests", "Typos", "Dropped words"} <= set(table(app).index)
    options = suite_catalog._catalogue(open_view(parse({"model": "textcnn-20newsgroups"})))
    assert {"typos", "synonyms", "dropped", "swapped"} <= set(options)
    assert not {"noise", "rotation", "fgsm"} & set(options)


def test_an_input_of_other_data_selects_no_test_of_these(monkeypatch):
    chosen = []
    monkeypatch.setattr(added_inputs, "select", lambda **changes: chosen.append(changes))
    monkeypatch.setattr(added_inputs.address, "keep", lambda *_: None)
    view = SimpleNamespace(test=SimpleNamespace(ids=np.array([7, 3, 5]), fingerprint="these"))
    for fingerprint, expected in (("others", []), ("these", [{"input": 5}])):
        step = SimpleNamespace(settings={"fingerprint": fingerprint})
        suite = SimpleNamespace(origin=np.array([5, 7]), provenance=(step,))
        added_inputs._choose(view, suite, 0)
        assert chosen == expected
