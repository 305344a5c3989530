"""Every page on a person's own networks: tables, a regression, words, pictures, time series, and an ONNX file."""

import io
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from idc_core.datasets import load_dataset
from idc_core.experiments.retraining import retrain, usual_recipe
from idc_core.models import MODELS, load_model
from idc_core.models.network_file import NetworkFile, open_network
from idc_core.opening import setup_files
from studio.shell.pages import PAGES
from tests.pages.reading import charts, figure, open_page, text

NETWORKS = (
    "own-mlp",
    "own-regression",
    "own-tokens",
    "own-named",
    "own-cnn",
    "own-segmenting",
    "own-onnx",
    "own-conv1d",
)
PICTURES = ("own-cnn", "own-segmenting", "own-onnx")
WITH_SETUP = [name for name, page in PAGES.items() if page.setup != "none"]
REFUSED = {
    "adversarial": "Attacks change pictures",
    "differential": "The search changes pictures",
    "robustness": "made by noise, which is defined for pictures",
}
"""Pages that need pictures, and how their reason begins."""
ON_EVERY_PAGE = ("own-mlp", "own-segmenting")
"""A table, and many scores per input: between them, what the networks ask of a page."""
OF_INPUTS = ("relevance", "neurons", "classes")
"""Pages that draw inputs or predictions, where the other networks differ from these; elsewhere they are rare."""
STATES = {
    "relevance": ({"method": "gradient-x-input", "second": "nothing"}, {"step": "first", "scale": "shared"}),
    "clusters": ({"k": "3"}, {"clustering": "ward"}),
    "coverage": ({"m": "2"},),
    "neurons": ({"m": "3"},),
    "hypotheses": ({"over-epochs": "true"},),
}
"""Choices of the pages' main controls, beside those that they open with, on the networks of every page."""


def onnx_file(path: Path) -> Path:
    """A small network for digits, as another program may write it."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (12, 784), "b1": (12,), "w2": (10, 12), "b2": (10,)}
    weights = [numpy_helper.from_array(rng.normal(0, 0.1, s).astype(np.float32), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w1", "b1"], ["hidden"], transB=1),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w2", "b2"], ["scores"], transB=1),
    ]
    ends = [("x", ["n", 1, 28, 28]), ("scores", ["n", 10])]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name, shape in ends)
    graph = helper.make_graph(nodes, "digits", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module", autouse=True)
def networks(tmp_path_factory):
    """Open the setup file as the server does, and the ONNX file as its owner does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(setup_files.VARIABLE, str(Path(__file__).with_name("own_networks.py")))
        open_network(NetworkFile(onnx_file(tmp_path_factory.mktemp("own") / "net.onnx")), "digits", name="own-onnx")
        yield
    setup_files._close_all()
    del MODELS["own-onnx"]


def in_time(page, model):
    """A page and a network as parameters of a test, slow or rare."""
    differs = model in ON_EVERY_PAGE or page in OF_INPUTS or (page in REFUSED and model not in PICTURES)
    return pytest.param(page, model, marks=pytest.mark.slow if differs else pytest.mark.rare)


def opened(page, model, **state):
    app = open_page(page, model=model, **state)
    assert not app.exception
    assert not app.error
    assert f"{model} · " in text(app)
    return app


@pytest.mark.parametrize(("page", "model"), [in_time(page, model) for page in WITH_SETUP for model in NETWORKS])
def test_every_page_shows_something_or_says_why_not(page, model):
    app = opened(page, model)
    words = text(app)
    if model in PICTURES:
        assert page in ("differential", "robustness") or shows_something(app)
    elif (page, model) == ("classes", "own-regression"):
        assert "it has no classes to confuse" in words
    elif page in REFUSED:
        assert REFUSED[page] in words
        assert len(words.split()) < 200
    elif page == "relevance":
        assert "Half of the " in words
    else:
        assert shows_something(app)
    if model not in PICTURES:
        said = [sentence for sentence in re.split(r"(?<=[.:])\s", words) if re.search(r"pixel|image", sentence)]
        assert not [one for one in said if "apply to images only" not in one and "defined for pixels" not in one]
    for state in STATES.get(page, ()) if model in ON_EVERY_PAGE else ():
        opened(page, model, **state)


def shows_something(app):
    """Whether a page has a chart, a picture or cards of neurons."""
    cards = any('"cards"' in one.proto.json for one in app.get("bidi_component"))
    return charts(app) or app.get("echarts_chart") or app.get("image") or cards


@pytest.mark.parametrize("model", ["own-named", "own-segmenting"])
def test_several_inputs_and_many_scores_per_input(model):
    assert opened("coverage", model).get("echarts_chart")
    assert "Half of the positive relevance is in" in text(opened("relevance", model))


def test_a_table_is_shown_as_bars_with_names_and_relevance():
    app = opened("relevance", "own-mlp")
    assert re.search(r"Half of the positive relevance is in \d+ of 13 features: “[\w\\]+ = ", text(app))
    bars = figure(app)
    names = bars["data"][0]["y"]
    assert len(names) == 13
    assert {"alcohol", "proline", "hue"} <= set(names)
    assert [trace["type"] for trace in bars["data"]] == ["bar"] * 5
    assert {trace["name"] for trace in bars["data"][1:]} == {"for", "against"}
    labels = [button.label for button in app.get("download_button")]
    assert {"Features (CSV)", "CSV"} <= set(labels)


def test_a_time_series_is_shown_as_lines():
    app = opened("relevance", "own-conv1d")
    assert re.search(r"of 32 steps: “step \d+”", text(app))
    drawn = figure(app)["data"]
    assert [trace["type"] for trace in drawn] == ["scatter"] * 2 + ["bar"] * 4
    app = opened("relevance", "own-conv1d", tab="tests")
    tiles = next(one.proto.json for one in app.get("bidi_component") if "places" in one.proto.json)
    assert "data:image/webp" in tiles


@pytest.mark.parametrize(("model", "data"), [("own-mlp", "own-wine"), ("own-tokens", "own-texts")])
def test_own_tests_of_tables_and_texts_are_added(model, data):
    app = opened("testsets", model, tab="own")  # the first page of the server opens the setup file
    tests, file = load_dataset(data), io.BytesIO()
    np.savez(file, inputs=tests.inputs[:20] * (1 if model == "own-tokens" else 1.5), targets=tests.targets[:20])
    app.file_uploader[0].upload("mine.npz", file.getvalue(), "application/octet-stream").run()
    assert not app.exception
    assert not app.error
    assert any("mine" in option for option in app.multiselect(key="suites-chosen").options)


def test_a_network_without_a_recipe_is_retrained_by_the_usual_one():
    network, digits = load_model("own-onnx"), load_dataset("digits", "train")
    tests = {"tests": (digits.inputs, digits.targets)}
    found = retrain(network, digits, {"none": None}, tests, seeds=(0,), epochs=10)
    before, after = found.networks["none", 0].values[[0, -1], 0]
    assert after > before + 0.1
    recipe = usual_recipe(network)
    assert (recipe.optimizer, recipe.learning_rate, recipe.batch) == ("adamw", pytest.approx(1e-3), 128)


def test_what_needs_pictures_or_a_training_says_so():
    assert REFUSED["adversarial"] in text(opened("adversarial", "own-conv1d"))
    for page, reason in REFUSED.items():
        assert reason in text(opened(page, "own-mlp"))
    app = opened("hypotheses", "own-mlp", tab="epochs")
    assert "came with its final weights only" in text(app)
    assert "Custom keywords" not in [field.label for field in app.text_input]
