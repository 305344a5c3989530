"""One test changed by hand on the Relevance page: what is shown is what the engine finds for the changed input."""

import base64

import numpy as np
import pytest
import torch

from idc_core.lrp.rules import RelevanceSettings
from idc_core.perturbation.editing import PictureEdits, change_picture, loss_direction, noise_of
from idc_core.tracing.trace import collect, trace
from studio.jobs.results import open_view
from studio.relevance import edited_input, live_input
from studio.state.setup import DEFAULT, Setup
from studio.text import cell_name
from tests.pages.reading import open_page, text

POSITION = 3


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture
def given(monkeypatch):
    """What the browser is given, the newest last."""
    told = []
    monkeypatch.setattr(live_input, "_component", lambda **settings: told.append(settings["data"]))
    return told


def opened(number, edits=None, **address):
    """Open the tab on a test, and change the test as the browser would tell."""
    app = open_page("relevance", input=str(number), tab="edit", **address)
    if edits:
        app.session_state[f"edit-{number}"] = {"edits": edits}
        app.run()
    assert not app.exception
    return app


def test_a_test_is_unchanged_at_first(view, given):
    number = int(view.test.ids[POSITION])
    assert f"**Test {number}** is unchanged." in text(opened(number))
    data = given[-1]
    np.testing.assert_allclose(
        data["answer"]["scores"], collect(view.model, view.test.inputs[[POSITION]], []).scores[0], atol=1e-5
    )
    assert data["before"]["activations"] == data["answer"]["activations"]
    assert data["program"]["layer"] == 10
    assert [len(neuron["boundaries"]) + 1 for neuron in data["neurons"]] == list(view.sizes)
    assert sum(data["neurons"][0]["counts"]) == len(view.train)


def test_what_was_changed_is_what_the_network_sees(view, given):
    edits = {
        "stamp": 5,
        "degrees": 10,
        "epsilon": 0.02,
        "noise": "much",
        "painted": [[place, 255, 255, 255] for place in range(0, 784, 9)],
    }
    number = int(view.test.ids[POSITION])
    app, answer = opened(number, edits), given[-1]["answer"]
    test, target = view.test.inputs[POSITION], float(view.test.targets[POSITION])
    direction = loss_direction(view.model, test, target, "classification")
    wanted = PictureEdits(degrees=10, epsilon=0.02, painted=edits["painted"])
    image = change_picture(test, wanted, noise_of(test.shape, number), direction)[None]
    found = collect(view.model, image, ["fc2"])
    relevance = next(trace(view.model, image, ["input"], RelevanceSettings())).relevance["input"][0, 0]
    np.testing.assert_allclose(answer["scores"], found.scores[0], atol=1e-5)
    np.testing.assert_allclose(
        np.frombuffer(base64.b64decode(answer["relevance"]), np.float32), relevance.ravel(), atol=1e-5
    )
    assert answer["stamp"] == 5
    cell = view.analysis.assign(found.activations["fc2"])[0]
    sure = torch.tensor(found.scores[0]).softmax(0)
    name = view.train.class_names[int(sure.argmax())]
    assert f"**Test {number}**, changed, is classified as {name} with {100 * float(sure.max()):.1f} %" in text(app)
    assert f"{100 * float(view.analysis.confidence[POSITION]):.1f} %)" in text(app)
    same = (cell == view.analysis.assignments[POSITION]).all()
    assert ("It falls into the same cell" if same else f"It falls into cell {cell_name(cell)} (before: ") in text(app)


def test_a_view_of_a_changed_input_keeps_its_number_and_has_a_fingerprint_of_its_own(view):
    same = edited_input._of_input(view, POSITION, view.test.inputs[POSITION])
    other = edited_input._of_input(view, POSITION, np.zeros_like(view.test.inputs[POSITION]))
    assert same.test.ids.tolist() == other.test.ids.tolist() == [view.test.ids[POSITION]]
    assert same.test.fingerprint != other.test.fingerprint


def test_words_are_changed_in_a_field_of_text(small_data, given):
    setup = Setup("textcnn-20newsgroups", "20newsgroups", "conv2", 6, ())
    number = int(open_view(setup).test.ids[0])
    edits = {"stamp": 1, "text": "the goalie saved the puck in the hockey game"}
    app = opened(number, edits, model=setup.model, layer=setup.layer)
    assert f"**Test {number}**, changed, is classified as " in text(app)
    assert ">hockey<" in given[-1]["answer"]["words"]
    assert given[-1]["program"] is None
