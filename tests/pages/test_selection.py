"""What is selected or pinned on one page holds on all, and the address says it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.shell.pins import _compare, same_cells
from studio.state import selection
from studio.state.selection import Selection, picked_row
from studio.state.selection import parse as parse_selection
from studio.state.setup import DEFAULT, Setup, parse, unknown

ROOT = Path(__file__).parents[2]
OTHER = Setup("lenet4-digits", "digits", "fc1", 4, ("3", "5"), "3", "dropped", "k-means")
FILTERED = Setup(
    "lenet4-digits",
    "digits",
    "fc1",
    4,
    ("3",),
    predicted=("5", "8"),
    answers="wrong",
    confidence="0.5to1",
    within="0-1",
    without=("label", "ambiguous"),
)


def sidebar(app) -> str:
    return "\n".join(str(one.value) for kind in (app.sidebar.markdown, app.sidebar.caption) for one in kind)


@pytest.mark.parametrize("setup", [DEFAULT, OTHER, FILTERED])
def test_an_address_gives_the_setup_it_was_written_from(setup):
    assert parse(setup.texts) == setup


def test_what_is_as_usual_is_not_in_the_address():
    assert set(DEFAULT.texts.values()) == {""}
    mnist = parse({"model": "lenet5-mnist"})
    assert mnist.data == "mnist"
    assert {name: text for name, text in mnist.texts.items() if text} == {"model": "lenet5-mnist"}


def test_networks_are_known_by_their_label_too():
    assert parse({"model": "LeNet-4 on digits"}).model == "lenet4-digits"


@pytest.mark.parametrize(
    ("texts", "selection"),
    [
        ({}, Selection()),
        ({"input": "17", "neuron": "4", "cluster": "1", "cell": "0-1"}, Selection(17, 4, 1, "0-1")),
        ({"cluster": "1"}, Selection()),
        ({"input": "-1", "neuron": "4.5"}, Selection()),
        ({"input": "\u0661\u0662"}, Selection()),
    ],
)
def test_a_selection_is_read_from_an_address(texts, selection):
    assert parse_selection(texts) == selection


def test_a_selection_and_a_setup_follow_through_the_pages():
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    app.query_params["input"] = "17"
    app.query_params["layer"] = "fc1"
    app.run()
    for name in ("coverage", "relevance", "neurons", "clusters"):
        # A change of page empties the address.
        app.query_params.clear()
        app.switch_page(PAGES[name].file).run()
        assert not app.exception
        assert "test 17" in sidebar(app), name
        assert app.query_params["input"] == "17"
        assert app.query_params["layer"] == "fc1"
    app.button(key="clear-input").click().run()
    assert "test 17" not in sidebar(app)
    assert "input" not in app.query_params


def test_another_layer_clears_what_was_selected_in_the_old_one(open_page):
    app = open_page("coverage", input="17", neuron="3", cluster="1", cell="0-0-0-0-0-0")
    app.selectbox(key="layer").select("fc1").run()
    assert not app.exception
    assert "test 17" in sidebar(app)
    assert "neuron 3" not in sidebar(app)
    assert "cell" not in app.query_params
    (said,) = app.toast
    assert said.value == ("No longer selected: neuron 3, cluster 1, cell 0-0-0-0-0-0. They belong to the former layer.")
    app.slider(key="m").set_value(5).run()
    assert not app.toast, "there was nothing left to lose"


def test_a_cluster_that_is_lost_is_named_with_its_neuron(open_page):
    app = open_page("clusters", neuron="18", cluster="1")
    app.selectbox(key="k").select("3").run()
    assert "neuron 18" in sidebar(app)
    assert [one.value for one in app.toast] == [
        "No longer selected: cluster 1 of neuron 18. It belongs to the former number of clusters."
    ]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"model": "nonet"}, "There is no network named “nonet”. Shown instead: LeNet-5 on digits."),
        ({"layer": "fc9"}, "LeNet-5 on digits has no layer “fc9”. Shown instead: fc2."),
        (
            {"data": "cifar10"},
            "No tests named “cifar10” fit LeNet-5 on digits. Shown instead: Handwritten digits (scikit-learn).",
        ),
        ({"m": "99"}, "The number of neurons is from 1 to 12, not “99”. Shown instead: 6."),
        ({"classes": "3,ten"}, "The tests have no class “ten”. Shown instead: 3."),
        ({"classes": "ten"}, "The tests have no class “ten”. Shown instead: all classes."),
        ({"predicted": "3,ten"}, "LeNet-5 on digits predicts no class “ten” on these tests. Shown instead: 3."),
        ({"answers": "maybe"}, "The tests cannot be filtered by “maybe”. Shown instead: all predictions."),
        ({"confidence": "0.9to0.5"}, "The tests have no range of confidence “0.9to0.5”. Shown instead: all tests."),
        ({"without": "label,doubt"}, "No suspects “doubt” can be left out. Shown instead: label."),
        ({"within": "2-x"}, "There is no cell “2-x”. Shown instead: all cells."),
        ({"k": "77"}, "The number of clusters cannot be “77”. Shown instead: auto."),
        ({"zeros": "some"}, "Zeros are kept or dropped, not “some”. Shown instead: kept."),
        ({"clustering": "x" * 99}, f"There is no clustering named “{'x' * 60}…”. Shown instead: k-means."),
    ],
)
def test_what_an_address_asks_for_in_vain_is_named(texts, said):
    assert unknown(texts) == {next(iter(texts)): said}


@pytest.mark.parametrize("setup", [DEFAULT, OTHER])
def test_an_address_of_what_is_there_lacks_nothing(setup):
    assert unknown(setup.texts) == {}
    assert unknown({"model": "LeNet-4 on digits", "data": "MNIST", "layer": "fc1"}) == {}


def test_an_unknown_layer_is_told_until_another_setup_is_chosen(open_page):
    app = open_page("coverage", layer="**fc9**")
    assert [one.value for one in app.warning] == [r"LeNet-5 on digits has no layer “\*\*fc9\*\*”. Shown instead: fc2."]
    app.run()
    assert len(app.warning) == 1, "a page may be drawn twice before it is read"
    app.slider(key="m").set_value(5).run()
    assert not app.warning
    app.selectbox(key="model").select("lenet1-digits").run()
    assert not app.warning, "that the other network has other layers is no mistake"


def test_a_selection_that_is_not_there_is_told_and_not_selected(open_page):
    app = open_page("clusters", neuron="519", input="99999", cell="9-9-9")
    assert [one.value for one in app.warning] == [
        "There is no test “99999”: the 540 tests of digits are numbered from 0 to 539. No test is selected.",
        "Layer fc2 has no neuron “519”: its 84 neurons are numbered from 0 to 83. No neuron is selected.",
        "“9-9-9” is no cell of this grid. Expected 6 numbers with hyphens between them, from 0-0-0-0-0-0 to "
        "1-1-2-1-3-1. No cell is selected.",
    ]
    assert not {"neuron", "cluster", "input", "cell"} & set(app.query_params)
    app.switch_page(str(PAGES["layers"].file)).run()
    assert not app.warning
    assert not open_page("clusters", neuron="18", cluster="1", input="17").warning
    assert open_page("clusters", neuron="18", cluster="9").warning[0].value.startswith("Neuron 18 has no cluster “9”")


def test_a_choice_that_an_address_names_in_vain_is_told(open_page):
    app = open_page("neurons", step="never")
    assert [one.value for one in app.toast] == []
    app = open_page("relevance", step="never")
    assert [one.value for one in app.toast] == ["Step through: there is no “never”. The page shows what can be chosen."]


def test_unknown_parts_of_a_pinned_setup_are_told_as_long_as_it_is_pinned(open_page):
    app = open_page("learn", pin="model=nonet&m=4")
    app.switch_page(str(PAGES["coverage"].file)).run()
    assert [one.value for one in app.sidebar.warning] == [
        "There is no network named “nonet”. Shown instead: LeNet-5 on digits."
    ]
    app.button(key="pin-remove").click().run()
    assert not app.warning


def test_the_overview_tells_an_unknown_network_too(open_page):
    app = open_page("overview", model="nonet")
    assert [one.value for one in app.warning] == [
        "There is no network named “nonet”. Shown instead: LeNet-5 on digits."
    ]


def test_a_pinned_setup_is_shown_beside_another_one_and_swapped(open_page):
    app = open_page("relevance", input="17")
    app.button(key="pin-this").click().run()
    app.selectbox(key="model").select("lenet4-digits").run()
    app.text_input(key="test-number").set_value("20").run()
    assert not app.exception
    headers = [header.value for header in app.main.header]
    assert "Compared with the pinned setup" in headers
    captions = [caption.value for caption in app.main.caption]
    assert any(text.startswith("**This setup**: LeNet-4") and text.endswith("test 20") for text in captions)
    assert any(text.startswith("**Pinned**: LeNet-5") and text.endswith("test 17") for text in captions)
    app.button(key="pin-swap").click().run()
    assert app.selectbox(key="model").value == "lenet5-digits"
    assert app.text_input(key="test-number").value == "17"
    assert "LeNet-4" in sidebar(app)
    app.button(key="pin-remove").click().run()
    assert "pin" not in app.query_params
    assert "Compared with the pinned setup" not in [header.value for header in app.main.header]


def test_a_pin_that_cannot_be_shown_leaves_a_sentence(open_page, monkeypatch, tmp_path):
    monkeypatch.delenv("IDC_DATA", raising=False)
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    app = open_page("relevance", pin="data=fashion-mnist")
    assert not app.exception
    assert app.error[0].value.startswith("The pinned setup cannot be shown. ")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["overview", "testsets", "adversarial", "robustness", "criteria"])
def test_a_pinned_setup_whose_filter_no_test_passes_leaves_a_sentence(name, open_page):
    tab = {"adversarial": "sizes"}.get(name, "")
    app = open_page(name, pin="classes=3&within=7-7", seeds="2", epochs="1", tab=tab)
    assert not app.exception
    assert not app.error
    said = [warning.value for warning in app.warning]
    assert "The pinned setup cannot be shown: no test passes its filter. Unpin it, or pin another." in said


def test_setups_are_compared_by_cells_where_cells_mean_the_same():
    here, other = open_view(DEFAULT), open_view(OTHER)
    some = open_view(parse({"classes": "3"}))
    assert same_cells(here, some)
    assert not same_cells(here, other)
    mine, theirs = ({tuple(cell) for cell in view.table.cells.tolist()} for view in (here, some))
    assert theirs < mine
    assert f"{len(theirs)} cells are covered on both, {len(mine - theirs)} only here, 0 only" in _compare(here, some)
    assert "not comparable" in _compare(here, other)


def test_the_setup_is_told_without_torch():
    code = (
        "import sys; from studio.state.setup import parse; "
        "assert parse({'model': 'lenet5-mnist', 'layer': 'fc1'}).layer == 'fc1'; "
        "print([name for name in ('torch', 'sklearn', 'umap') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", "the sidebar would wait for torch on a fresh server"


@pytest.mark.parametrize(("chosen", "rows", "picked"), [([2], 3, 2), ([0], 1, 0), ([], 3, None), ([3], 3, None)])
def test_a_picked_row_is_one_the_table_still_has(chosen, rows, picked, monkeypatch):
    table = SimpleNamespace(selection=SimpleNamespace(rows=chosen))
    monkeypatch.setattr(selection, "st", SimpleNamespace(session_state={"table": table}))
    assert picked_row("table", rows) == picked
