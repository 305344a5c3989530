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
TITLE = f"{PICTURE} [5](http://a.b) :red[2] $3$ **4**"
PLAIN = ("plotly_chart", "imgs", "text", "code", "text_input", "text_area", "html")
"""Elements of which the label and the help alone are read as Markdown."""
CHOICES = ("radio", "button_group", "pills", "segmented_control")
"""Elements whose options are read as Markdown."""


@pytest.fixture(scope="module", autouse=True)
def named_by_others():
    """LeNet-5 on digits whose classes have names of somebody else's choice."""
    idc.dataset("named", TITLE, class_names=NAMES)(lambda split: _digits(split))
    idc.network("lenet-named", TITLE, data="named", layer="fc2")(lambda: idc.load_model("lenet5-digits"))
    yield
    del MODELS["lenet-named"], DATASETS["named"]


def _digits(split):
    data = idc.load_dataset("digits", split)
    return data.inputs, data.targets


def said(node):
    """Every text that the browser reads as Markdown, in a part of an app's tree."""
    for child in getattr(node, "children", {}).values():
        yield from said(child)
    kind, proto = getattr(node, "type", ""), getattr(node, "proto", None)
    for name in ("label", "help") if kind in PLAIN else ("label", "help", "body", "text"):
        if isinstance(text := getattr(proto, name, None), str):
            yield text
    for option in (getattr(proto, "options", None) or ()) if kind in CHOICES else ():
        yield str(getattr(option, "content", option))


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
    found = [(mark, text) for text in said(app._tree) for mark in MARKED if mark in text.replace("\\" + mark, "")]
    assert not found


def test_a_class_with_a_comma_in_its_name_can_be_chosen():
    setup = replace(parse({"model": "lenet-named"}), classes=(NAMES[0], NAMES[-1]))
    assert parse(setup.texts) == setup
    app = open_page("coverage", **{name: text for name, text in setup.texts.items() if text})
    assert not app.exception
    assert not app.warning
    assert r"a\|b" in app.main.caption[0].value


def test_a_network_of_other_tests_leaves_the_selected_test_behind():
    app = open_page("coverage", input="5")
    app.selectbox(key="model").select("lenet-named").run()
    assert "input" not in app.query_params
    assert any("test 5" in one.value for one in app.toast)
    app.selectbox(key="model").select("lenet5-digits").run()
    assert "data" not in app.query_params
