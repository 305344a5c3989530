"""The Test sets page of data that are no pictures with classes: a regression, and texts."""

from studio.jobs import suite_catalog
from studio.jobs.results import open_view
from studio.state.setup import parse
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
    assert "Noise, transforms and attacks apply to images only." in text(app)
    assert {"Original tests", "Typos", "Dropped words"} <= set(table(app).index)
    options = suite_catalog._catalogue(open_view(parse({"model": "textcnn-20newsgroups"})))
    assert {"typos", "synonyms", "dropped", "swapped"} <= set(options)
    assert not {"noise", "rotation", "fgsm"} & set(options)
