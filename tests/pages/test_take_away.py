"""What pages offer to be taken away: every chart in three formats, tables that read again as they were, and tests."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from idc_core.base.spreadsheets import csv
from idc_core.figures.input_texts import words_of
from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT, Setup
from studio.widgets import charts, downloads
from studio.widgets.gallery import _marked_words, caption
from tests.pages.reading import RETRAINED, TABS, read_page, until_drawn

SCRIPT = """
from studio.widgets import layout
from studio.state.setup import Setup, parse
from studio.jobs.results import open_view, heatmaps
import streamlit as st

view = open_view(parse({"model": st.query_params.get("model", "")}))
first, second = view.chosen[:7], view.chosen[7:9]
layout.gallery(view, first, 5)
layout.gallery(view, second, 5, heatmaps(view, second, None))
layout.gallery(view, first, 5, key="again")
layout.gallery(view, first[:0], 5)
layout.take_inputs(view, first)
layout.take_inputs(view, second)
layout.take_inputs(view, second, key="again-inputs")
"""


def sent(app, wanted):
    """What the page sends to those of its components that are given a certain value."""
    found = [json.loads(one.proto.json) for one in app.get("bidi_component") if one.proto.json]
    return [data for data in found if wanted in data]


def buttons(app):
    return [one.proto for one in app.get("download_button")]


def open_script(**parameters):
    app = AppTest.from_string(SCRIPT, default_timeout=60)
    for key, value in parameters.items():
        app.query_params[key] = value
    return app.run()


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


# Stories are saved as a whole.
@pytest.mark.parametrize(
    ("name", "tab"), [*(one for one in TABS if one[0] != "stories"), ("robustness", RETRAINED)], ids=str
)
def test_every_chart_has_its_menu(name, tab):
    app = read_page(name, **tab)
    drawn = len(app.get("plotly_chart")) + len(app.get("echarts_chart"))
    # Pictures of tests are no chart.
    without = ("learn", "library", "relevance", "neurons", "adversarial", "differential", "robustness", "runs")
    assert drawn or (tab != RETRAINED if tab else name in without)
    charts = sent(app, "chart")
    assert len(charts) == drawn
    assert len({data["file"] for data in charts}) == drawn, "every file has a name of its own"
    assert all(data["title"] for data in charts)
    assert sum(button.label == "HTML" for button in buttons(app)) == drawn
    of = "" if name in ("learn", "runs") else "lenet5-digits_digits_fc2_m6_"
    assert all(re.fullmatch(rf"idc-[\w-]+?_{of}(filtered_)?\d{{4}}-\d\d-\d\d", data["file"]) for data in charts)


OF_TABLES = [one for one in TABS if PAGES[one[0]].setup != "none"] + [("robustness", RETRAINED)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "tab"), OF_TABLES, ids=str)
def test_tables_read_again_as_they_were(open_page, monkeypatch, name, tab):
    written = []
    for module in (charts, downloads):
        monkeypatch.setattr(module, "csv", lambda table: written.append(table) or "")
    monkeypatch.setattr("streamlit.download_button", _at_once("streamlit.download_button"))
    app = until_drawn(open_page(name, **tab))
    assert not app.exception
    monkeypatch.undo()
    assert written or (tab != RETRAINED if tab else name in ("relevance", "neurons", "robustness"))
    for table in written:
        again = pd.read_csv(io.StringIO(csv(table)), keep_default_na=False, na_values=[""])
        assert list(again.columns) == list(table.columns)
        assert len(again) == len(table)
        for column in table:
            kept, read = table[column].to_numpy(), again[column].to_numpy()
            if kept.dtype.kind in "iuf":
                np.testing.assert_array_equal(read.astype(kept.dtype), kept, err_msg=column)
            else:
                assert [str(value) for value in read] == [str(value) for value in kept], column


def _at_once(name):
    """A download button that makes its CSV as soon as it is drawn."""
    import streamlit as st

    real = st.download_button

    def offer(label, data, **settings):
        if "CSV" in label:
            data()
        return real(label, data, **settings)

    return offer


def test_pictures_are_buttons_and_one_is_marked(view):
    app = open_script(input=str(view.test.ids[view.chosen[2]]))
    assert not app.exception
    first, second, again = sent(app, "tiles")
    assert [tile["test"] for tile in first["tiles"]] == view.test.ids[view.chosen[:5]].tolist()
    assert [tile["caption"] for tile in first["tiles"]] == [caption(view, place) for place in view.chosen[:5]]
    assert first["selected"] == again["selected"] == view.test.ids[view.chosen[2]]
    assert first["sheet"]["width"] == first["sheet"]["height"] == 84
    assert [tile["places"] for tile in second["tiles"]] == [[0, 2], [1, 3]], "each has a heatmap beside it"
    assert "5 of 7 tests are shown." in app.caption[0].value
    assert app.caption[3].value == "No test to show."
    assert sum(len(data["sheet"]["address"]) for data in (first, second, again)) < 150_000


def test_tests_can_be_taken_in_two_forms_from_several_places(view):
    app = open_script()
    labels = [button.label for button in buttons(app)]
    assert labels == [
        "Download these 7 tests (npz)",
        "Contact sheet (PNG)",
        "Download these 2 tests (npz)",
        "Contact sheet (PNG)",
        "Download these 2 tests (npz)",
        "Contact sheet (PNG)",
    ]
    sheet = Image.open(io.BytesIO(downloads._sheet(view, view.chosen[:7])))
    assert sheet.width == 10 + 7 * 94
    packed = np.load(io.BytesIO(downloads.npz(view, view.chosen[:7])), allow_pickle=False)
    assert (packed["inputs"] == view.test.inputs[view.chosen[:7]]).all()
    assert packed["ids"].tolist() == view.test.ids[view.chosen[:7]].tolist()


def test_a_contact_sheet_never_grows_beyond_what_can_be_opened(view, monkeypatch):
    monkeypatch.setattr(downloads, "MOST_PICTURES", 6)
    assert "Contact sheet of the first 6 (PNG)" in [button.label for button in buttons(open_script())]
    assert downloads._sheet(view, view.chosen[:7]) == downloads._sheet(view, view.chosen[:6])


def test_texts_are_buttons_and_can_be_taken_as_a_table(small_data):
    app = open_script(model="textcnn-20newsgroups")
    assert not app.exception
    first, second, _ = sent(app, "tiles")
    assert first["sheet"] is None
    view = open_view(Setup("textcnn-20newsgroups", "20newsgroups", "conv2", 6, ()))
    for tile, place in zip(first["tiles"], view.chosen[:5], strict=True):
        known = [view.test.vocabulary[token] for token in view.test.inputs[place][:60] if token > 1]
        assert [word for word, _ in tile["words"] if word not in ("…", "(no known words)")] == known
        assert {mark for _, mark in tile["words"]} == {""}
    assert {mark for tile in second["tiles"] for _, mark in tile["words"]} & {"for", "against"}
    relevance = np.zeros(view.test.inputs.shape[1])
    relevance[:4] = 0.1, -1.0, 1.0, 0.3
    known = words_of(view.test, view.test.inputs[view.chosen[0]])
    wanted = ["", "against", "for", "for"]
    assert _marked_words(view, view.chosen[0], relevance)[:5] == [*zip(known, wanted, strict=False), (known[4], "")]
    assert "Texts (CSV)" in [button.label for button in buttons(app)]
    table = pd.read_csv(io.StringIO(csv(downloads._texts(view, view.chosen[:40]))), keep_default_na=False)
    assert table["test"].tolist() == view.test.ids[view.chosen[:40]].tolist()
    assert table["true"].tolist() == [view.test.class_names[i] for i in view.test.targets[view.chosen[:40]]]
    words = [len(text.split()) for text in table["text"]]
    assert words == (view.test.inputs[view.chosen[:40]] > 0).sum(axis=1).tolist()
