"""The sweep over layers, numbers of neurons and test sets: equal to one analysis after the other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch.nn.functional as F
from torch import nn

from idc_core.analysis.analysis import analyze
from idc_core.analysis.layer_sweep import LayerCoverage, highest_chance, run_tests, sweep
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, ModelError, SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Verdict
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


@pytest.mark.sampled(3)
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


def covered(layer, once, twice, more, total=1000):
    """Return the coverage of a layer by 540 tests with so many cells that hold one, two and more tests."""
    rest = 540 - once - 2 * twice
    counts = np.array([1] * once + [2] * twice + [rest - 3 * (more - 1)] + [3] * (more - 1))
    return LayerCoverage("digits", layer, 6, 6, len(counts), total, Discovery.of_counts(counts, total))


def test_the_highest_chance_of_a_new_cell_stands_out_where_the_next_is_far_away():
    cells = [covered("a", 27, 17, 9), covered("b", 24, 15, 9), covered("c", 2, 3, 9, 40), covered("d", 24, 15, 9, 49)]
    overlapping = highest_chance(cells)
    assert overlapping.sentence.startswith("The chance of a new cell is highest in layer a: 5.0 %, and 4.4 % (")
    assert overlapping.sentence.endswith(" in layer b, as expected.")
    assert (overlapping.looks, overlapping.verdict) == (3, Verdict.AS_EXPECTED)
    first, second = cells[0].left, cells[1].left
    errors = [(one.high - one.low) / 2 / scipy.stats.norm.isf(0.025) for one in (first, second)]
    away = (first.chance - second.chance) / np.hypot(*errors)
    assert overlapping.p == pytest.approx(2 * scipy.stats.norm.sf(away))
    apart = highest_chance([covered("e", 90, 30, 9), *cells])
    assert apart.sentence.startswith("The chance of a new cell is highest in layer e: 16.7 %, and 5.0 % (")
    assert apart.verdict is Verdict.STANDS_OUT
    assert apart.low > 0
    assert highest_chance(cells[:1]) is None
    assert highest_chance([replace(cell, left=None) for cell in cells]) is None


def test_layers_of_one_network_rarely_stand_out_by_chance():
    """Three layers with equal cells, each with tests of its own: one stands out in at most 5 % of the draws."""
    rng = np.random.default_rng(0)
    shares = np.geomspace(1, 1e-4, 200)
    out = 0
    for draw in rng.multinomial(540, shares / shares.sum(), size=(400, 3)):
        three = [LayerCoverage("t", str(i), 6, 6, 1, 500, Discovery.of_counts(one)) for i, one in enumerate(draw)]
        out += highest_chance(three).verdict is Verdict.STANDS_OUT
    assert out / 400 <= 0.05
