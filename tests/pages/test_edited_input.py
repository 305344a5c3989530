"""One test changed by hand on the Relevance page: what is shown is what the engine finds for the changed input."""

import numpy as np
import pytest

from idc_core.tracing.trace import collect
from studio.jobs.results import open_view
from studio.relevance import edited_input
from studio.state.setup import DEFAULT, Setup
from studio.text import cell_name
from tests.pages.reading import open_page, text


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def test_a_test_is_unchanged_at_first(view):
    number = int(view.test.ids[3])
    app = open_page("relevance", tab="edit", input=str(number))
    assert not app.exception
    assert f"**Test {number}** is unchanged." in text(app)


def test_what_was_painted_is_what_the_network_sees(view, monkeypatch):
    position, painted = 3, [[place, 255, 255, 255] for place in range(0, 784, 3)]
    monkeypatch.setattr(edited_input, "_paint", lambda **given: None)
    number = int(view.test.ids[position])
    app = open_page("relevance", input=str(number))
    app.session_state[f"paint-{number}"] = {"painted": painted}
    app.query_params["tab"] = "edit"
    app.run()
    assert not app.exception
    image = view.test.inputs[position].copy()
    image.reshape(-1)[::3] = 1.0
    found = collect(view.model, image[None], ["fc2"])
    cell = view.analysis.assign(found.activations["fc2"])[0]
    predicted = view.train.class_names[int(found.scores[0].argmax())]
    assert f"**Test {number}**, changed, is classified as {predicted} with " in text(app)
    same = (cell == view.analysis.assignments[position]).all()
    assert ("It falls into the same cell" if same else f"It falls into cell {cell_name(cell)} (before: ") in text(app)


def test_a_view_of_a_changed_input_keeps_its_number_and_has_a_fingerprint_of_its_own(view):
    same = edited_input._of_input(view, 3, view.test.inputs[3])
    other = edited_input._of_input(view, 3, np.zeros_like(view.test.inputs[3]))
    assert same.test.ids.tolist() == other.test.ids.tolist() == [view.test.ids[3]]
    assert same.test.fingerprint != other.test.fingerprint
    assert edited_input._cell_of(same) == tuple(view.analysis.assignments[3].tolist())


def test_words_are_changed_in_a_field_of_text(small_data):
    setup = Setup("textcnn-20newsgroups", "20newsgroups", "conv2", 6, ())
    number = int(open_view(setup).test.ids[0])
    app = open_page("relevance", model=setup.model, layer=setup.layer, input=str(number), tab="edit")
    assert not app.exception
    app.text_area(key=f"edit-{number}").set_value("the goalie saved the puck in the hockey game").run()
    assert not app.exception
    assert f"**Test {number}**, changed, is classified as " in text(app)
