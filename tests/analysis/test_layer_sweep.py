"""The sweep over layers, numbers of neurons and test sets: equal to one analysis after the other."""

import itertools

import numpy as np
import pytest
import torch.nn.functional as F
from torch import nn

from idc_core.analysis.analysis import analyze
from idc_core.analysis.layer_sweep import run_tests, sweep
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, ModelError, SettingError
from idc_core.importance.training_pass import rank_layers
from idc_core.lrp.rules import RelevanceSettings
from tests.lrp.networks import Written, numbers, settle

LAYERS = ("conv", "hidden", "out")
MS = (1, 3, 5, 9)


def network(outputs=3):
    return settle(
        Written(
            lambda net, x: net.out(F.relu(net.hidden(F.max_pool2d(F.relu(net.conv(x)), 2).flatten(1)))),
            conv=nn.Conv2d(1, 5, 3),
            hidden=nn.Linear(20, 40),
            out=nn.Linear(40, outputs),
        )
    )


def images(count, seed, names=("a", "b", "c"), split="test"):
    targets = np.random.default_rng(seed).integers(0, len(names), count) if names else np.zeros(count, np.float32)
    return Dataset(
        name="toy",
        split=split,
        inputs=numbers(count, 1, 6, 6, seed=seed).numpy(),
        targets=targets,
        class_names=names,
        task="classification" if names else "regression",
        vocabulary=(),
        texts=(),
        ids=np.arange(count),
        fingerprint=str(seed),
    )


TRAIN, TESTS = images(150, 1, split="train"), {"few": images(20, 2), "many": images(90, 3)}


@pytest.mark.parametrize(
    "options", [{}, {"drop_zeros": True}, {"clusters": (2,)}, {"priority": "absolute"}, {"clustering": "hierarchical"}]
)
def test_equals_one_analysis_after_the_other(options):
    model = network()
    swept = sweep(model, TRAIN, TESTS, LAYERS, MS, **options)
    sizes = {"conv": 5, "hidden": 40, "out": 3}
    assert len(swept.cells) == len(TESTS) * len(LAYERS) * len(MS)
    for suite, test in TESTS.items():
        for layer in LAYERS:
            for m in MS:
                used = min(m, sizes[layer])
                alone = analyze(model, TRAIN, test, layer, used, **options)
                cell = swept.cell(suite, layer, m)
                assert (cell.used, cell.covered, cell.total) == (used, alone.covered, alone.total)
                assert cell.score == alone.score
                assert swept.neurons[layer][:used].tolist() == alone.important.tolist()
        assert swept.accuracy[suite] == alone.accuracy


def test_rule_of_relevance_counts():
    model, settings = network(), RelevanceSettings("alpha-beta", alpha=2.0, bias="absorb")
    swept = sweep(model, TRAIN, TESTS, ["hidden"], [6], settings)
    alone = analyze(model, TRAIN, TESTS["many"], "hidden", 6, rule="alpha-beta")
    assert swept.neurons["hidden"].tolist() == alone.important.tolist()
    assert swept.cell("many", "hidden", 6).covered == alone.covered
    assert swept.neurons["hidden"].tolist() != sweep(model, TRAIN, TESTS, ["hidden"], [6]).neurons["hidden"].tolist()


def test_order_of_tests_layers_and_numbers_is_kept_and_repeats_are_dropped():
    swept = sweep(network(), TRAIN, TESTS, ["out", "conv", "out"], [3, 1, 3])
    assert (swept.suites, swept.layers, swept.ms) == (("few", "many"), ("out", "conv"), (1, 3))
    order = [(row["tests"], row["layer"], row["m"]) for row in swept.table()]
    assert order == [(s, layer, m) for s in ("few", "many") for layer in ("out", "conv") for m in (1, 3)]


def test_table_says_where_a_layer_has_fewer_neurons():
    row = sweep(network(), TRAIN, {"few": TESTS["few"]}, ["conv"], [9]).table()[0]
    assert row == {**row, "tests": "few", "layer": "conv", "m": 9, "used": 5}
    assert row["idc"] == row["covered"] / row["total"]


def test_totals_beyond_64_bits_stay_whole():
    (cell,) = sweep(network(), TRAIN, {"few": TESTS["few"]}, ["hidden"], [40], clusters=(4,)).cells
    assert type(cell.total) is int
    assert type(cell.covered) is int
    assert cell.total > 2**64
    assert 1 <= cell.covered <= 20


def test_more_neurons_never_raise_the_share_of_cells():
    swept = sweep(network(), TRAIN, TESTS, ["hidden"], range(1, 13))
    for suite in TESTS:
        cells = [swept.cell(suite, "hidden", m) for m in swept.ms]
        assert all(one.covered <= two.covered for one, two in itertools.pairwise(cells))
        assert all(one.score >= two.score for one, two in itertools.pairwise(cells))


def test_batches_of_any_size_give_the_same_neurons():
    whole = rank_layers(network(), TRAIN, LAYERS, 4)
    cut = rank_layers(network(), iter(np.split(TRAIN.inputs, [7, 8, 100])), LAYERS, 4)
    for layer in LAYERS:
        assert whole[layer].important.tolist() == cut[layer].important.tolist()
        np.testing.assert_allclose(whole[layer].activations, cut[layer].activations, rtol=1e-5, atol=1e-6)
        assert not whole[layer].activations.flags.writeable


def test_only_the_neurons_asked_for_are_kept():
    found = rank_layers(network(), TRAIN, LAYERS, 2)
    assert [found[layer].activations.shape for layer in LAYERS] == [(150, 2)] * 3
    assert found["hidden"].importance.shape == (40,)
    responses = run_tests(network(), TESTS["few"], {"hidden": np.array([3, 1])}, TRAIN.class_names)
    assert responses.activations["hidden"].shape == (20, 2)


def test_tests_of_other_classes_have_no_accuracy():
    others = images(20, 2, names=("x", "y", "z"))
    assert sweep(network(), TRAIN, {"others": others}, ["out"], [1]).accuracy == {"others": None}


def test_regression_has_an_error_and_no_accuracy():
    model, train, test = network(1), images(60, 1, ()), images(20, 2, ())
    swept = sweep(model, train, {"drive": test}, ["hidden", "out"], [1, 4])
    assert swept.accuracy == {"drive": None}
    assert swept.rmse["drive"] == pytest.approx(analyze(model, train, test, "out", 1).rmse)
    assert swept.cell("drive", "out", 4).used == 1


@pytest.mark.parametrize("label", ["inputs through the network", "neurons clustered"])
def test_can_be_stopped_in_every_step(label):
    with pytest.raises(CancelledError):
        sweep(network(), TRAIN, TESTS, LAYERS, MS, on_progress=lambda done, total, doing: doing != label)


def test_progress_tells_of_every_step():
    seen = []
    sweep(network(), TRAIN, TESTS, ["conv"], [2], on_progress=lambda *told: seen.append(told))
    assert (150, 150, "inputs through the network") in seen
    assert (90, 90, "inputs through the network") in seen
    assert any(label == "neurons clustered" for *_, label in seen)


@pytest.mark.parametrize("ms", [(), (0,), (2.5,), (True,)])
def test_wrong_numbers_of_neurons_are_refused(ms):
    with pytest.raises(SettingError, match="whole number from 1"):
        sweep(network(), TRAIN, TESTS, LAYERS, ms)


def test_nothing_to_sweep_is_refused():
    with pytest.raises(SettingError, match="at least one layer and one test set; got 3 and 0"):
        sweep(network(), TRAIN, {}, LAYERS, MS)
    with pytest.raises(ModelError, match="nowhere"):
        sweep(network(), TRAIN, TESTS, ["nowhere"], MS)
