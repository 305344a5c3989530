"""Every control says what it does, its default and its range; every chart says how to read it: on all pages."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from idc_core.attribution.methods import METHODS
from studio.shell.pages import PAGES
from tests.pages.reading import RETRAINED, TABS, read_page

CHOICES = ("selectbox", "multiselect", "button_group", "toggle", "checkbox", "radio", "select_slider")
NUMBERS = ("slider", "number_input")
TEXTS = ("text_input", "text_area", "file_uploader", "date_input", "time_input", "color_picker")
CHARTS = ("plotly_chart", "echarts_chart", "vega_lite_chart", "idc_learn_network", "idc_cards")

DEPENDS = {
    "neuron-chosen": "the most important one",
    "clustered-neuron": "the most important",
    "compared": "the 5 that need one pass",
    "methods": "the 5 that need one pass",
    "rows": "as many neurons as fit",
    "columns": "as many neurons as fit",
    "colour": "whether it is covered",
    "criteria": "all;",
    "pair-first": "the most suspected pair",
    "pair-second": "the most suspected pair",
}
"""Controls whose default is told by what it is, as it depends on the setup or is many things."""

PAGE_STATES: list[Any] = [*TABS, ("robustness", RETRAINED)]
PINNED = {"pin": "model=lenet4-digits&layer=fc1&m=4&input=20", "input": "17", "classes": "3"}
PAGE_STATES += [
    pytest.param(name, PINNED, marks=() if name == "neurons" else pytest.mark.rare)
    for name, page in PAGES.items()
    if page.setup != "none"
]
PAGE_STATES += [("relevance", {"method": name, "second": "nothing"}) for name in METHODS]
PAGE_STATES += [("coverage", {"cell": "0-0-0-0-0-0"}), ("coverage", {"m": "12"}), ("clusters", {"k": "3"})]
PAGE_STATES += [pytest.param("hypotheses", {"over-epochs": "true"}, marks=pytest.mark.slow)]
VERIFIED = {"model": "charlstm-sql", "families": "characters", "records": "256", "verify": "true"}
PAGE_STATES += [pytest.param("hypotheses", VERIFIED, marks=pytest.mark.rare)]
PAGE_STATES += [("adversarial", {"attack": name, "cw-iterations": "1"}) for name in ("pgd", "cw")]


def opened(name: str, parameters: dict[str, str]) -> AppTest:
    """A page in a state."""
    app = read_page(name, **parameters)
    assert not app.exception
    assert not app.error
    return app


def elements(app) -> Iterator[Any]:
    """Everything on the page, in the order in which it is read."""
    stack = [app.main, app.sidebar]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(list(getattr(node, "children", {}).values()))


def kind(element) -> str:
    """Type of an element; the name of a component of our own."""
    found = getattr(element, "type", "")
    return element.proto.component_name.rpartition(".")[2] if found == "bidi_component" else found


def sentence_wrong(text: str) -> str:
    """What a help text lacks; empty where nothing."""
    if len(text.split()) < 4 or not re.match(r'["\u201c*A-Z]', text) or not text.endswith("."):
        return "is no sentence"
    return "" if re.search(r"\bdefault\b", text, re.IGNORECASE) else "does not name its default"


def shown(element) -> list[str]:
    """What a person sees chosen in a control."""
    if kind(element) in ("toggle", "checkbox"):
        return ["on" if element.value else "off"]
    if kind(element) == "button_group":
        return [element.proto.options[place].content for place in element.indices]
    if kind(element) == "multiselect":
        return [element.options[place] for place in element.indices]
    return [element.options[element.index]]


def plain(text: str) -> str:
    """A text as it is drawn, where Markdown's marks are escaped."""
    return re.sub(r"\\([^A-Za-z0-9\s])", r"\1", text)


def number(value: float) -> str:
    return f"{value:g}"


def wrong(element, *, untouched: bool) -> str:
    """What the help of a control lacks; empty where nothing. The default is compared where nothing was chosen."""
    text = element.help or ""
    if lack := sentence_wrong(text):
        return lack
    if kind(element) in NUMBERS:
        ends = f"From {number(element.min)} to {number(element.max)}; default "
        if ends not in text:
            return f"does not say {ends!r}"
        return "" if not untouched or f"{ends}{number(element.value)}." in text else "names another default"
    if kind(element) in TEXTS or not untouched:
        return ""
    told = re.split(r"\bdefault\b", plain(text), maxsplit=1, flags=re.IGNORECASE)
    if element.key in DEPENDS:
        return "" if DEPENDS[element.key] in told[1] else "names another default"
    if element.key and element.key.startswith("fix-"):
        return "" if "default any" in text else "names another default"
    values = [plain(value) for value in shown(element)] or ["all", "none"]
    if kind(element) in ("toggle", "checkbox"):
        return "" if re.search(rf"\b{values[0]}\b", text, re.IGNORECASE) else "names another default"
    found = [value for value in values if value.lower() in told[1].lower()]
    return "" if found == values or (not shown(element) and found) else f"does not name its default {values}"


@pytest.mark.parametrize(("name", "parameters"), PAGE_STATES, ids=str)
def test_every_control_says_what_it_does_its_default_and_its_range(name, parameters):
    app = opened(name, parameters)
    controls = [element for element in elements(app) if kind(element) in (*CHOICES, *NUMBERS, *TEXTS)]
    # Some chapters have a network to drag and nothing else; without runs there is nothing to choose.
    assert controls or name in ("learn", "runs")
    found = {
        f"{element.label}: {lack}; it says {element.help!r}"
        for element in controls
        if (lack := wrong(element, untouched=parameters.keys() <= {"tab"}))
    }
    assert not found


def test_no_name_is_a_number_on_one_page_and_a_choice_on_another():
    found: dict[str, set[str]] = defaultdict(set)
    for name, parameters in TABS:
        for element in elements(opened(name, parameters)):
            if kind(element) in (*CHOICES, *NUMBERS, *TEXTS):
                found["numbers" if kind(element) in NUMBERS else "others"].add(element.key)
    assert found["numbers"] & found["others"] - {None} == set()  # what one leaves in the session, another cannot hold


@pytest.mark.parametrize(("name", "parameters"), PAGE_STATES, ids=str)
def test_how_to_read_a_chart_is_a_sentence(name, parameters):
    app = opened(name, parameters)
    for said in (one.caption[0].value.strip() for one in app.expander if one.label == "How to read this"):
        assert said[0].isupper(), said
        assert said[-1] in ".)", said
        assert len(said) > 30, said


AT_ONCE = ("overview", "neurons", "coverage")
WITH_PIN = [name for name, page in PAGES.items() if page.setup != "none"]


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        *(pytest.param(name, PINNED["pin"], marks=() if name in AT_ONCE else pytest.mark.slow) for name in WITH_PIN),
        *(
            pytest.param(name, "default", marks=pytest.mark.slow if name in AT_ONCE else pytest.mark.rare)
            for name in WITH_PIN
        ),
    ],
)
def test_every_page_shows_the_pinned_setup_beside_its_own(name, pin):
    tabs = [{"tab": tab} for tab in PAGES[name].tabs] or [{}]
    apps = (opened(name, PINNED | {"pin": pin} | tab) for tab in tabs)
    app = next(app for app in apps if "Compared with the pinned setup" in [header.value for header in app.main.header])
    sides = [caption.value for caption in app.main.caption if caption.value.startswith(("**This", "**Pinned"))]
    assert len(sides) == 2
    assert sides[0].endswith("test 17")
    assert ("LeNet-4" in sides[1]) == (pin != "default")


@pytest.mark.parametrize(
    "name", [name for name in PAGES if name not in ("library", "runs", "relevance", "adversarial", "differential")]
)
def test_the_charts_are_seen(name):
    state = RETRAINED if name == "robustness" else {}
    assert any(kind(element) in CHARTS for element in elements(opened(name, state)))


@pytest.mark.parametrize(
    ("text", "lack"),
    [
        ("", "is no sentence"),
        ("Number", "is no sentence"),
        ("How many neurons are combined", "is no sentence"),
        ("How many neurons are combined.", "does not name its default"),
        ("How many neurons are combined; default 6.", ""),
    ],
)
def test_what_a_help_text_lacks_is_seen(text, lack):
    assert sentence_wrong(text) == lack
