"""Addresses that nobody meant: whatever a parameter holds, a page falls back to its default, or says what is wrong."""

import ast
import random
import re
from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace
from urllib.parse import parse_qs, quote_plus

import pytest
from streamlit.testing.v1 import AppTest

from idc_core.coverage.idc_settings import CONTROLS
from idc_core.errors import SettingError
from idc_core.models import MODELS
from studio.classes import class_errors, matrix
from studio.differential import disagreements
from studio.hypotheses import controls, hypothesis_pair
from studio.jobs import suite_addresses, suite_catalog
from studio.learn import network
from studio.shell import pins, tour
from studio.shell.pages import PAGES
from studio.state import address, selection, setup
from studio.testsets import added_inputs
from studio.text import literal
from studio.widgets import cell_search, grid_axes
from tests.pages.reading import ROOT

DIGITS = "9" * 5_000

JUNK = (
    *("", "0", "-1", "-5", "3", "7.5", "1e3", "1e400", "nan", "inf", "-inf", "0x10", "1_0", "+3", " 3", "3 ", "3\n"),
    *("999999999999999999999999", DIGITS, "-" + DIGITS, "x" * 100_000, "9" * 100_000, "-" * 9_000, "~" * 9_000),
    *("\u0663", "\uff13", "\u00b2", "\0", "3\0", "\ud800", "\ufffd", "%", "%%%", "%zz", "%00", "%ff%fe", "\u202e"),
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'; drop table runs; --", "../../../etc/passwd"),
    *("a,b,,c", ",,,", "a=b", "original~seed=" + DIGITS, "noise~seed=-1", "noise~sure=nanto1", "noise~class=1-x"),
    *("noise~share=nan", "noise~share=1e400", "noise|guided~x", "original~answers=maybe", "|" * 100, "fc2~3-1~~4"),
    *("fc2~" + "1-" * 2_000, "m=" + DIGITS + "&layer=nowhere", "model=<b>&m=0&input=\u0663", "_".join(["9999"] * 30)),
    *("__proto__", "None", "True", "[]", "{}", "fc2", "digits", "lenet5-digits", "1-2", "2-1-0-0-1-0"),
)


LETTERS = [chr(code) for code in (*range(1, 128), 0xE4, 0x663, 0x202E, 0xFFFD, 0x1F600)]


PLACES = {"address.read": 0, "choose_one": 4, "choose_several": 4}
"""Functions that read the address, and which of their arguments is the name."""


def bound_names():
    """Every key of a control that Streamlit binds to the address."""
    calls = [
        {one.arg: one.value for one in call.keywords}
        for file in sorted((ROOT / "studio").rglob("*.py"))
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call)
    ]
    return {one["key"].value for one in calls if "bind" in one and isinstance(one.get("key"), ast.Constant)}


def read_names():
    """Every name that some page reads from the address, and every key of a control that it holds."""
    names = {*vars(setup.DEFAULT), *vars(selection.Selection())}
    names |= bound_names()
    names |= {grid_axes.FIXED, grid_axes.ROWS, grid_axes.COLUMNS, controls._FAMILY, controls._MEASURE}
    for file in sorted((ROOT / "studio").rglob("*.py")):
        for call in (one for one in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(one, ast.Call)):
            place = PLACES.get(ast.unparse(call.func))
            name = call.args[place] if place is not None and len(call.args) > place else None
            if isinstance(name, ast.Constant):
                names.add(name.value)
            elif isinstance(name, ast.Name) and name.id.isupper():
                names.add(attrgetter(name.id)(_module(file)))
            elif isinstance(name, ast.Attribute) and name.attr.isupper():
                names.add(attrgetter(ast.unparse(name))(_module(file)))
    return sorted(names)


def _module(file):
    return import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


NAMES = read_names()


class Query(dict):
    """What Streamlit makes of an address: a list of texts by name."""

    def __init__(self, text):
        super().__init__(parse_qs(text, keep_blank_values=True, encoding="utf-8", errors="replace"))

    def get_all(self, name):
        return self.get(name, [])

    def __setitem__(self, name, value):
        super().__setitem__(name, [value])


@pytest.fixture
def visit(monkeypatch):
    """Put parameters into an address, as (name, value) pairs, and return what Streamlit makes of it."""

    def put(pairs, quote=True):
        query = Query(
            "&".join(f"{name}={quote_plus(value, errors='replace') if quote else value}" for name, value in pairs)
        )
        monkeypatch.setattr(address, "st", SimpleNamespace(query_params=query, session_state={}))
        return query

    return put


SIZES = (3, 2, 4, 2, 2, 3)
VIEW = SimpleNamespace(
    setup=setup.DEFAULT,
    sizes=SIZES,
    analysis=SimpleNamespace(important=[3, 41, 7, 12, 5, 60]),
    chosen=range(540),
    test=SimpleNamespace(inputs=SimpleNamespace(shape=(540, 1, 28, 28), ndim=4)),
)


def suite_of(text):
    """Return a suite, or the sentence that says why it is none."""
    try:
        return suite_addresses.parse(text)
    except SettingError as error:
        return str(error)


def read_all():
    """Read everything that is read of an address without a network's results."""
    chosen = setup.parse({name: address.read(name) for name in vars(setup.DEFAULT)})
    entry = MODELS[chosen.model]
    assert chosen.layer in entry.layers
    assert chosen.data in setup.fitting_data(entry)
    assert isinstance(chosen.m, int)
    assert 1 <= chosen.m <= setup.MOST_NEURONS
    assert all(text in CONTROLS[name].choices() for name, text in chosen.options.items())
    for found in (selection.selected(), *(pins.pinned() or ())[1:]):
        assert all(one is None or 0 <= one < 10**9 for one in (found.input, found.neuron, found.cluster))
    assert 0 <= tour._number() <= len(tour.STEPS)
    assert network.played().inputs.max() <= 1
    zoom = grid_axes.read_zoom(VIEW)
    assert all(0 <= cluster < SIZES[rank] for rank, cluster in zoom.fixed.items())
    assert 1 <= suite_catalog.perturbed_count(VIEW) <= 540
    for name in suite_catalog.chosen_names():
        for part in suite_addresses.split(name):
            recipe = suite_of(part)
            assert len(recipe) < 400 if isinstance(recipe, str) else suite_addresses.parse(recipe.text) == recipe
    others = (hypothesis_pair._UNIT, class_errors._PAIR, added_inputs._PICK, disagreements._SHOWN, cell_search._MAKE)
    for name in (*others, matrix._CELL):
        for part in address.read(name).split("-"):
            assert address.position(part) is None or 0 <= address.position(part) < 10**9


def test_the_names_are_found():
    assert {"m", "model", "input", "suites", "zoom", "tour", "pin", "net"} <= set(NAMES)
    assert len(NAMES) > 60


@pytest.mark.parametrize("addresses", [400, pytest.param(4_000, marks=pytest.mark.rare)])
def test_junk_falls_back_to_the_defaults(visit, addresses):
    source = random.Random(addresses)
    for _ in range(addresses):
        pairs = [(source.choice(NAMES), source.choice(JUNK)) for _ in range(source.randint(1, 5))]
        if source.random() < 0.3:
            pairs += [
                (source.choice(("m", "layer", "suites", "unknown", "<b>")), "".join(source.choices(LETTERS, k=9)))
            ]
        query = visit(pairs, quote=source.random() < 0.8)
        read_all()
        kept = [value for name in vars(setup.DEFAULT) for value in query.get_all(name)]
        assert all(len(value) <= address._LONGEST and "\0" not in value for value in kept)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*vars(setup.DEFAULT), *vars(selection.Selection()), "pin", "tour", "suites", "net"])
def test_every_junk_in_every_parameter_that_all_pages_read(visit, name):
    for value in JUNK:
        visit([(name, value)])
        read_all()
        visit([(name, value), (name, value), (name, "3")])
        read_all()


@pytest.mark.parametrize("said", ["0", "13", "-1", "3.0", "\u0663", DIGITS, "3,4", "\0", "1_0"])
def test_a_number_of_neurons_that_cannot_be_is_the_default(visit, said):
    visit([("m", said)])
    assert setup.parse({"m": address.read("m")}).m == setup.DEFAULT.m
    visit([("m", "12")])
    assert setup.parse({"m": address.read("m")}).m == 12


@pytest.mark.parametrize(("page", "value"), [("coverage", DIGITS), ("relevance", "\u0663<b>"), ("learn", "-1e400")])
def test_pages_draw_with_junk_everywhere(open_page, page, value):
    app = open_page(page, **dict.fromkeys(NAMES, value))
    assert not app.exception
    assert app.title


SOON = ("clusters", "layers", "testsets")
"""Pages with bound controls that are soon drawn."""


@pytest.mark.parametrize(
    "name",
    [
        page if page == "learn" else pytest.param(page, marks=pytest.mark.slow if page in SOON else pytest.mark.rare)
        for page in PAGES
    ],
)
def test_what_bound_controls_do_not_take_is_said(open_page, name):
    tab = {"tab": "clusters"} if name == "learn" else {}
    app = open_page(name, **dict.fromkeys(bound_names(), "-1e9"), **tab)
    told = " ".join(one.value for one in app.toast)
    drawn = {one for one in bound_names() if one in app.session_state and not isinstance(app.session_state[one], str)}
    assert name != "learn" or drawn
    assert {one for one in drawn if f"\u201c{literal(one)}\u201d" in told} == drawn
    assert not open_page(name).toast


def page_of_numbers():
    """A page with one bound control of each kind."""
    import streamlit as st

    from studio.shell import asked

    asked.arrive("page")
    st.slider("Share", 0.0, 1.0, 0.5, key="share", bind="query-params")
    st.slider("Range", 0, 10, (2, 5), key="range", bind="query-params")
    st.number_input("Count", 1, 20, 4, key="count", bind="query-params")
    st.toggle("Switch", key="switch", bind="query-params")
    st.segmented_control("Clusters", (2, 3, 4), default=2, required=True, key="ways", bind="query-params")
    st.selectbox("Word", ["one", "two"], key="word", bind="query-params")
    for sentence in asked.not_taken():
        st.text(sentence)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({}, []),
        ({"share": "0.25", "range": ["3", "4"], "count": "7", "switch": "True", "ways": "3", "word": "two"}, []),
        ({"share": "0.5", "count": "4", "switch": "false", "ways": "2", "word": "one"}, []),
        ({"share": "7"}, ["share"]),
        ({"share": "nan", "count": "0"}, ["share", "count"]),
        ({"count": "21", "switch": "maybe", "ways": "9", "word": "three"}, ["count", "switch", "ways", "word"]),
        ({"count": "3.7", "range": ["3", "99"]}, ["count", "range"]),
        ({"count": DIGITS, "share": "<b>"}, ["count", "share"]),
        ({"count": "-1e400", "word": "1e400"}, ["count", "word"]),
        ({"unknown": "7"}, []),
    ],
)
def test_every_kind_of_bound_control_says_what_it_did_not_take(said, refused):
    app = AppTest.from_function(page_of_numbers)
    for name, value in said.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    told = [one.value for one in app.text]
    assert sorted(re.search("\u201c([^\u201d]+)\u201d, which cannot be", one).group(1) for one in told) == sorted(
        refused
    )
    app.number_input[0].set_value(9).run()
    assert not app.text, "said once; and what a person chooses is taken"


def test_a_home_that_is_a_file_is_told_on_the_page(open_page, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "file"))
    app = open_page("learn")
    assert not app.exception
    assert [r"IDC\_HOME" in one.value for one in app.error] == [True]
