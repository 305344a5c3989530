"""What is selected or pinned on one page holds on all, and the address says it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from studio.engine.results import open_view
from studio.shell.pages import PAGES
from studio.shell.pins import compare, same_cells
from studio.state import selection
from studio.state.selection import Selection, picked_row
from studio.state.selection import parse as parse_selection
from studio.state.setup import DEFAULT, Setup, parse

ROOT = Path(__file__).parents[2]
OTHER = Setup("lenet4-digits", "digits", "fc1", 4, ("3", "5"), "3", "dropped", "k-means")


def sidebar(app) -> str:
    return "\n".join(str(one.value) for kind in (app.sidebar.markdown, app.sidebar.caption) for one in kind)


@pytest.mark.parametrize("setup", [DEFAULT, OTHER])
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


@pytest.mark.parametrize("name", ["overview", "testsets", "adversarial", "robustness", "criteria"])
def test_a_pinned_setup_without_a_test_of_its_classes_leaves_a_sentence(name, open_page, monkeypatch):
    from studio.shell import pins

    opened = pins.open_view

    def without_any(setup):
        view = opened(setup)
        return replace(view, chosen=view.chosen[:0]) if setup.classes else view

    monkeypatch.setattr(pins, "open_view", without_any)
    app = open_page(name, pin="classes=3", seeds="2", epochs="1")
    assert not app.exception
    assert not app.error
    said = [warning.value for warning in app.warning]
    assert "The pinned setup cannot be shown: it has no test of the chosen classes. Unpin it, or pin another." in said


def test_setups_are_compared_by_cells_where_cells_mean_the_same():
    here, other = open_view(DEFAULT), open_view(OTHER)
    some = open_view(parse({"classes": "3"}))
    assert same_cells(here, some)
    assert not same_cells(here, other)
    mine, theirs = ({tuple(cell) for cell in view.table.cells.tolist()} for view in (here, some))
    assert theirs < mine
    assert f"{len(theirs)} cells are covered on both, {len(mine - theirs)} only here, 0 only" in compare(here, some)
    assert "not comparable" in compare(here, other)


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
