"""Names of classes from outside are shown as they are on every page: no picture, link, colour or formula of theirs."""

from dataclasses import replace

import pytest

import idc_core as idc
from idc_core.datasets import DATASETS
from idc_core.models import MODELS
from studio.shell.pages import PAGES
from studio.state.setup import parse
from tests.pages.reading import open_page

PICTURE = "![x](http://a.b/c.png)"
NAMES = (PICTURE, "<b>1</b>", ":red[2]", "$3$", "**4**", "[5](http://a.b)", "6\n# six", "\u202e7", "`8`", "a|b~~c~~, d")
MARKED = ("![x](", ":red[2]", "**4**", "[5](", "\n# six", "\u202e", "`8`", "$3$", "~~c~~")
TEXTS = ("markdown", "caption", "error", "warning", "info", "success", "title", "header", "subheader", "metric")


@pytest.fixture(scope="module", autouse=True)
def named_by_others():
    """LeNet-5 on digits whose classes have names of somebody else's choice."""
    idc.dataset("named", class_names=NAMES)(lambda split: _digits(split))
    idc.network("lenet-named", data="named", layer="fc2")(lambda: idc.load_model("lenet5-digits"))
    yield
    del MODELS["lenet-named"], DATASETS["named"]


def _digits(split):
    data = idc.load_dataset("digits", split)
    return data.inputs, data.targets


def said(app):
    """Every text that the browser reads as Markdown."""
    for kind in TEXTS:
        for one in app.get(kind):
            yield from (str(value) for value in (getattr(one, "value", ""), getattr(one, "label", "")) if value)
            yield str(getattr(one.proto, "help", ""))
    for kind in ("radio", "button_group", "pills", "segmented_control", "checkbox", "button", "expander", "tab"):
        for one in app.get(kind):
            yield from (str(option) for option in getattr(one, "options", ()))
            yield str(getattr(one, "label", ""))


QUICK = ("relevance", "testsets", "classes")
"""Pages whose sentences name classes; the others have to show names as they are too."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name, page in PAGES.items()
        if page.setup != "none"
    ],
)
def test_names_are_no_markup(page):
    app = open_page(page, model="lenet-named")
    assert not app.exception
    found = [(mark, text) for text in said(app) for mark in MARKED if mark in text.replace("\\" + mark, "")]
    assert not found


def test_a_class_with_a_comma_in_its_name_can_be_chosen():
    setup = replace(parse({"model": "lenet-named"}), classes=(NAMES[0], NAMES[-1]))
    assert parse(setup.texts) == setup
    app = open_page("coverage", **{name: text for name, text in setup.texts.items() if text})
    assert not app.exception
    assert not app.warning
    assert "a|b" in app.main.caption[0].value


def test_a_network_of_other_tests_leaves_the_selected_test_behind():
    app = open_page("coverage", input="5")
    app.selectbox(key="model").select("lenet-named").run()
    assert "input" not in app.query_params
    assert any("test 5" in one.value for one in app.toast)
    app.selectbox(key="model").select("lenet5-digits").run()
    assert "data" not in app.query_params
