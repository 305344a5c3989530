"""All pages open on the networks of a setup file: small pictures, feature vectors, and a regression."""

import os
from pathlib import Path

import pytest

import idc_core as idc
from idc_core.coverage.mc_dropout import dropout_scores
from idc_core.coverage.prioritisation import UNCERTAINTIES, apfd, most_first
from idc_core.opening import setup_files
from idc_core.tracing.trace import collect
from studio.shell.pages import PAGES
from studio.state.sidebar import _networks
from studio.text import literal
from tests.pages.reading import open_page, text

WITH_SETUP = [name for name, page in PAGES.items() if page.setup != "none"]
SETUP = """
import numpy as np
import torch
from torch import nn
from sklearn.datasets import load_wine

import idc_core as idc

def third(values, split):
    test = np.arange(len(values)) % 3 == 0
    return values[test if split == "test" else ~test]

def random_net(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*layers)

@idc.dataset("page-pictures", class_names=("low", "middle", "high"))
def pictures(split):
    rng, targets = np.random.default_rng(split == "test"), np.arange(60) % 3
    return (rng.uniform(0, 0.3, (60, 1, 8, 8)) + 0.3 * targets[:, None, None, None]).clip(0, 1), targets

@idc.network("page-cnn", data="page-pictures")
def cnn():
    return random_net(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 3))

@idc.dataset("page-wine")
def wine(split):
    data = load_wine(as_frame=True)
    scaled = (data.data - data.data.mean()) / data.data.std()
    return third(scaled, split), third(data.target.to_numpy(), split)

@idc.network("page-mlp", data="page-wine")
def mlp():
    return random_net(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 3))

@idc.dataset("page-numbers")
def numbers(split):
    values = np.random.default_rng(split == "test").normal(size=(60, 4))
    return values, values.sum(1)

@idc.network("page-regression", data="page-numbers")
def regression():
    return random_net(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
"""


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "my_setup.py"
    path.write_text(SETUP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(setup_files.VARIABLE, str(path))
        yield path
    setup_files._close_all()


USUAL_PAGES = ("overview", "layers", "testsets", "differential", "robustness", "criteria")
"""Pages on which small pictures with classes are as the digits are."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("model", ["page-mlp", "page-regression"])
@pytest.mark.parametrize("name", WITH_SETUP)
def test_vectors_and_regressions(setup, name, model):
    opens(name, model)


@pytest.mark.parametrize("name", [name for name in WITH_SETUP if name not in USUAL_PAGES])
def test_pictures(setup, name):
    opens(name, "page-cnn")


@pytest.mark.slow
@pytest.mark.parametrize("name", USUAL_PAGES)
def test_pictures_on_the_other_pages(setup, name):
    opens(name, "page-cnn")


def opens(name, model):
    app = open_page(name, model=model)
    assert not app.exception
    assert not app.error
    assert f"{model} · page-" in text(app)
    if model == "page-regression":
        assert "angle" not in text(app)
        assert "rad" not in text(app).split()
        assert "classes" not in [box.key for box in app.multiselect]
        assert "misclassified" not in text(app)
    if (name, model) == ("relevance", "page-mlp"):
        assert "of 13 features: \u201c" in text(app)
        assert any(f"{column} = " in text(app) for column in ("alcohol", "proline", "flavanoids", "hue", "ash"))


def test_a_first_visit_opens_on_it_and_the_sidebar_has_it(setup):
    app = open_page("overview")
    assert app.selectbox(key="model").value == "page-cnn"
    assert {"page-mlp", "lenet5-digits"} <= set(network_names(app))
    app.selectbox(key="model").select("lenet5-digits").run()
    assert "LeNet-5 · digits" in text(app)


def network_names(app):
    from idc_core.models import MODELS

    labels = {label: name for name, label in _networks(MODELS).items()}
    return [labels[label] for label in app.selectbox(key="model").options]


def test_a_mistake_is_shown_with_its_line_and_the_last_good_result_stays(setup):
    app = open_page("coverage", model="page-mlp")
    assert not app.error
    setup.write_text(SETUP + "\n\nraise ValueError('not now')\n")
    os.utime(setup, (1, 1))
    app.run()
    line = len(SETUP.splitlines()) + 3
    assert [error.value for error in app.error] == [
        literal(f"{setup}, line {line}: the setup file failed: ValueError: not now.")
    ]
    assert not app.exception
    assert "page-mlp · page-wine" in text(app)
    setup.write_text(SETUP.replace("nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 3)", "nn.Linear(13, 5), nn.Linear(5, 3)"))
    os.utime(setup, (2, 2))
    app.run()
    assert not app.error
    assert "page-mlp · page-wine · layer 0 · m = 5" in text(app)


def test_charts_follow_weights_that_are_entered_again(setup):
    def drawn(seed, stamp):
        setup.write_text(SETUP.replace("manual_seed(0)", f"manual_seed({seed})"))
        os.utime(setup, (stamp, stamp))
        app = open_page("coverage", model="page-mlp", tab="growth")
        assert not app.exception
        assert not app.error
        return [one.proto.spec for one in app.get("plotly_chart")]

    one, other, again = drawn(0, 3), drawn(1, 4), drawn(0, 5)
    assert one
    assert one == again
    assert one != other


@pytest.fixture
def small_layers():
    setup_files.open_setup(Path(__file__).parents[1] / "analysis" / "small_layers.py")
    yield "small-layers"
    setup_files._close_all()


def test_a_layer_in_which_nothing_can_be_covered_is_named(small_layers):
    said = text(open_page("layers", model=small_layers))
    assert "Nothing can be covered in layer dead: no important neuron varies over the training inputs." in said
    assert "chance of a new cell is highest in layer wide" in said or "highest in layer three" in said
    for page in ("coverage", "overview", "layers"):
        said = text(open_page(page, model=small_layers, layer="dead"))
        assert "Nothing can be covered in layer 'dead': each of its 6 important neurons has one cluster only" in said
    assert "Layer three has 3 neurons: all are used." in text(open_page("coverage", model=small_layers))


def test_orders_by_passes_with_dropout(small_layers):
    app = open_page("criteria", model=small_layers, tab="prioritisation", order="mutual-information")
    network, tests = idc.load_model(small_layers), idc.load_dataset("small-rows")
    scores = dropout_scores(network, tests.inputs)
    orders = next(frame.value for frame in app.dataframe if "APFD (%)" in frame.value).set_index("order")["APFD (%)"]
    wrong = collect(network, tests, ()).scores.argmax(1) != tests.targets
    for name in ("variation-ratio", "mutual-information"):
        measure = UNCERTAINTIES[name]
        assert orders[measure.label] == pytest.approx(100 * apfd(most_first(measure(scores)), wrong))
    assert {"Softmax confidence", "NC, most coverage"} <= set(orders.index)
    assert "CC, most coverage" not in orders.index  # every test is in one cluster
    assert "First tests by MC-dropout, mutual information" in [one.value for one in app.header]
