"""Pages on other kinds of data: foreign classes, colour pictures, numbers instead of classes, and words."""

import pytest
from torch import nn

import idc_core as idc
from idc_core.datasets import DATASETS
from idc_core.models import MODELS
from studio.shell.pages import PAGES
from tests.pages.reading import TABS

WITH_SETUP = [one for one in TABS if PAGES[one[0]].setup != "none"]
DRAWN = ("overview", "relevance", "neurons", "testsets", "adversarial", "differential")
"""Pages that draw or change the tests' colours in ways of their own."""
FIRST_DRAWN = [
    pytest.param(name, tab, marks=() if name in DRAWN and (not tab or name == "neurons") else pytest.mark.slow)
    for name, tab in WITH_SETUP
]
# Numbers ask most of a page, and are on every tab of the slow tests.
MOSTLY_DRAWN = [
    pytest.param(*one.values, marks=pytest.mark.rare if one.values[1] and one.values[0] not in DRAWN else one.marks)
    for one in FIRST_DRAWN
]
# Colours are nothing else where no picture is drawn.
ALL_DRAWN = [
    pytest.param(*one.values, marks=one.marks if one.values[0] in DRAWN else pytest.mark.rare) for one in FIRST_DRAWN
]


def words(app) -> str:
    kinds = (app.markdown, app.caption, app.title, app.metric)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), MOSTLY_DRAWN, ids=str)
def test_tests_with_other_classes_than_the_network(small_data, open_page, name, tab):
    app = open_page(name, model="LeNet-5 on digits", data="Fashion-MNIST", **tab)
    assert not app.exception
    assert not app.error
    assert "Accuracy is not defined for these tests; coverage is." in words(app)
    assert "misclassified" not in app.markdown[0].value


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), FIRST_DRAWN, ids=str)
def test_numbers_instead_of_classes(small_data, open_page, name, tab):
    app = open_page(name, model="Dave-2 on Udacity", **tab)
    assert not app.exception
    assert not app.error
    assert "classes" not in [box.key for box in app.multiselect]
    assert "misclassified" not in words(app)
    if name == "overview":
        assert [metric.label for metric in app.metric] == [
            "RMSE",
            "IDC",
            "IDC within reach",
            "Cells reached only by misclassified tests",
        ]
    if name == "neurons" and tab == {"tab": "neuron"}:
        assert any("data:image" in one.proto.json for one in app.get("bidi_component")), "frames are shown as pictures"
        assert "True → predicted steering angle" in words(app)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), MOSTLY_DRAWN, ids=str)
def test_words(small_data, open_page, name, tab):
    app = open_page(name, model="Text CNN on 20 Newsgroups", **tab)
    assert not app.exception
    assert not app.error
    if name == "neurons" and tab == {"tab": "neuron"}:
        assert not app.get("image")
        assert any('"words"' in one.proto.json for one in app.get("bidi_component")), "texts are shown as words"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), ALL_DRAWN, ids=str)
def test_colour_pictures(small_data, open_page, name, tab):
    app = open_page(name, model="ConvNet on CIFAR-10", classes=["cat", "dog"], **tab)
    assert not app.exception
    assert not app.error
    assert "tests of class cat, dog" in words(app)


TRANSFORMERS = ("ViT on CIFAR-10", "Text transformer on 20 Newsgroups")


def in_time(name, tab, model):
    """A tab and a transformer as parameters of a test: rare where smaller ones are seen, or texts on further tabs."""
    often = name == "coverage"
    rare = name not in DRAWN or (tab and model == TRANSFORMERS[1])
    return pytest.param(name, tab, model, marks=() if often else pytest.mark.rare if rare else pytest.mark.slow)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "tab", "model"), [in_time(*one, model) for one in WITH_SETUP for model in TRANSFORMERS], ids=str
)
def test_transformers(small_data, open_page, name, tab, model):
    # Other kinds of layers are on all pages of smaller transformers: test_transformer_pages.py.
    others = ("norm", "block2") if name in ("coverage", "neurons") and not tab else ()
    for layer in (*others, "block2@heads"):
        app = open_page(name, model=model, layer=layer, **tab)
        assert not app.exception
        assert not app.error, app.error[0].value


def test_only_fitting_tests_are_offered(small_data, open_page):
    app = open_page("coverage")
    offered = app.selectbox(key="data").options
    assert "MNIST" in offered
    assert "Fashion-MNIST" in offered
    assert "CIFAR-10" not in offered
    app.selectbox(key="model").select("convnet-cifar10").run()
    assert app.selectbox(key="data").options == ["CIFAR-10"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["overview", "relevance", "neurons", "clusters", "coverage", "layers"])
def test_characters(small_data, open_page, monkeypatch, name):
    monkeypatch.setattr("idc_core.datasets.sql._RECORDS", {"train": 200, "test": 100})
    app = open_page(name, model="Character LSTM on SQL")
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("name", ["overview", "library", "differential"])
def test_data_that_are_gone_stop_no_page_of_others(open_page, tmp_path, name):
    idc.dataset("gone")(lambda split: tmp_path / "gone.csv")
    idc.network("of-gone", data="gone")(lambda: nn.Linear(3, 2))
    try:
        assert not open_page(name).exception
        app = open_page(name, model="of-gone")
        assert not app.exception
        assert name == "library" or any("gone.csv is not there" in error.value for error in app.error)
    finally:
        del MODELS["of-gone"], DATASETS["gone"]
