"""Pages on other kinds of data: foreign classes, colour pictures, numbers instead of classes, and words."""

import pytest

from studio.shell.pages import PAGES

WITH_SETUP = [name for name in PAGES if name != "learn"]  # which brings a network of its own
DRAWN = ("overview", "relevance", "neurons", "testsets", "adversarial", "differential")
"""Pages that draw or change the tests' colours in ways of their own."""


def words(app) -> str:
    kinds = (app.markdown, app.caption, app.title, app.metric)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


@pytest.mark.parametrize("name", WITH_SETUP)
def test_tests_with_other_classes_than_the_network(small_data, open_page, name):
    app = open_page(name, model="LeNet-5 on digits", data="Fashion-MNIST")
    assert not app.exception
    assert not app.error
    assert "Accuracy is not defined for these tests; coverage is." in words(app)
    assert "misclassified" not in app.markdown[0].value


@pytest.mark.parametrize("name", WITH_SETUP)
def test_numbers_instead_of_classes(small_data, open_page, name):
    app = open_page(name, model="Dave-2 on Udacity")
    assert not app.exception
    assert not app.error
    assert "classes" not in [box.key for box in app.multiselect]
    assert "misclassified" not in words(app)
    if name == "overview":
        assert [metric.label for metric in app.metric] == ["RMSE", "IDC", "Cells reached only by misclassified tests"]
    if name == "neurons":
        assert any("data:image" in one.proto.json for one in app.get("bidi_component")), "frames are shown as pictures"
        assert "true → predicted steering angle" in words(app)


@pytest.mark.parametrize("name", WITH_SETUP)
def test_words(small_data, open_page, name):
    app = open_page(name, model="Text CNN on 20 Newsgroups")
    assert not app.exception
    assert not app.error
    if name == "neurons":
        assert not app.get("image")
        assert any('"words"' in one.proto.json for one in app.get("bidi_component")), "texts are shown as words"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DRAWN else pytest.mark.slow) for name in WITH_SETUP]
)
def test_colour_pictures(small_data, open_page, name):
    app = open_page(name, model="ConvNet on CIFAR-10", classes=["cat", "dog"])
    assert not app.exception
    assert not app.error
    assert "tests of class cat, dog" in words(app)


def test_only_fitting_tests_are_offered(small_data, open_page):
    app = open_page("coverage")
    offered = app.selectbox(key="data").options
    assert "MNIST" in offered
    assert "Fashion-MNIST" in offered
    assert "CIFAR-10" not in offered
    app.selectbox(key="model").select("convnet-cifar10").run()
    assert app.selectbox(key="data").options == ["CIFAR-10"]


@pytest.mark.parametrize("name", ["overview", "relevance", "neurons", "clusters", "coverage", "layers"])
def test_characters(small_data, open_page, monkeypatch, name):
    monkeypatch.setattr("idc_core.datasets.sql.RECORDS", {"train": 200, "test": 100})
    app = open_page(name, model="Character LSTM on SQL")
    assert not app.exception
    assert not app.error
