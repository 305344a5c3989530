"""Pixels keep their places when a hypothesis is dealt out to other pictures: that alone is no discovery."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, rankdata
from torch import nn

from idc_core.datasets import load_dataset
from idc_core.inspection import Hypothesis, Speed, discoveries, inspect, library, shuffled
from idc_core.inspection.blocks import UnitRows
from idc_core.inspection.measures import PAIR_MEASURES, beyond_place, joint
from idc_core.inspection.planning import without
from idc_core.inspection.sums import Exceedance, GroupedSums, Moments, Ranks
from tests.inspection.planted import texts

TESTED = ("pearson", "spearman", "difference", "iou", "information")
COUNT, SIDE, UNITS = 300, 5, 3


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "test", 300)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["conv1", "conv2"])
def test_shuffled_regions_and_shapes_pass_nothing_on_layers_of_pixels(digits, layer):
    own = library(digits, ["regions", "shapes"])
    dealt = [shuffled(one, at) for at, one in enumerate(own)]
    found = inspect("lenet5-digits", digits, [*own, *dealt], TESTED, [layer])
    of_others = np.isin(found.table["hypothesis"], [one.name for one in dealt])
    passed = discoveries(found, 0.05)
    assert (found.table["p_value"][of_others] >= 0).sum() > 300
    assert not passed[of_others].any()
    assert passed[~of_others].mean() > 0.3


class Planted(nn.Module):
    """Sees ink in its unit 2, and filtered pictures in the others."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.filters = nn.Conv2d(1, 4, 3, padding=1)
        self.units, self.logits = nn.Identity(), nn.Linear(5, 10)

    def forward(self, inputs):
        found = self.filters(inputs)
        found = self.units(torch.cat([found[:, :2], (inputs >= 0.5).float(), found[:, 2:]], 1))
        return self.logits(found.mean((2, 3)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("measure", TESTED)
def test_a_planted_unit_of_pixels_is_found_with_score_1_and_passes(digits, measure):
    ink = library(digits, ["regions"])[0]
    iou = PAIR_MEASURES["iou"].with_settings(share=0.5)  # most of a unit's values are 0, so the next one counts
    found = inspect(Planted(), digits, [ink, shuffled(ink, 5)], [iou if measure == "iou" else measure], ["units"])
    first, *_ = found.where(hypothesis="ink")
    assert (found.table["unit"][first], found.table["score"][first]) == (2, pytest.approx(1, abs=1e-6))
    passed = discoveries(found, 0.05)
    assert passed[first]
    assert not passed[found.where(hypothesis="ink, shuffled 5")].any()


def in_place(seed, chances):
    """Pictures whose pixels are lit by chance, each with its place's own."""
    return (np.random.default_rng(seed).random((COUNT, *chances.shape)) < chances).astype(np.float32)


def pictures(pixels):
    data = texts(len(pixels))
    return type(data)(**{**data.__dict__, "inputs": pixels[:, None]})


def test_what_two_things_share_by_place_alone_scores_and_does_not_pass():
    chances = np.linspace(0.02, 0.98, SIDE * SIDE).reshape(SIDE, SIDE)
    behaviours = in_place(1, chances)
    other = Hypothesis("other pictures", "test", "binary", lambda r: behaviours[r.positions])
    found = inspect(Planted(), pictures(in_place(0, chances)), [other], TESTED, ["units"])
    (line,) = found.where(unit=2, measure="pearson")
    assert found.table["score"][line] > 0.3
    assert not discoveries(found, 0.05).any()


def test_what_is_the_same_in_all_pictures_is_not_tested():
    left = Hypothesis("left", "test", "binary", lambda r: np.tile(np.arange(SIDE) < 2, (len(r), SIDE, 1)))
    found = inspect(Planted(), pictures(in_place(0, np.full((SIDE, SIDE), 0.5))), [left], TESTED, ["units"])
    assert np.isnan(found.table["p_value"]).all()
    assert np.isfinite(found.table["score"]).all()


def drawn():
    random = np.random.default_rng(3)
    places = random.normal(size=(SIDE * SIDE, UNITS)) * 3
    units = (random.normal(size=(COUNT, SIDE * SIDE, UNITS)) + places).astype(np.float32)
    behaviours = in_place(4, 1 / (1 + np.exp(-places[:, :2].T.reshape(2, -1).T)))
    behaviours[..., 0] = np.where(random.random(behaviours.shape[:2]) < 0.2, units[..., 0] > 0, behaviours[..., 0])
    return units, behaviours


def slow(units, behaviours):
    """Take each place's mean out, then SciPy's correlation, a pair at a time."""
    x, y = (value - value.mean(0) for value in (units.astype(float), behaviours.astype(float)))
    pairs = [[pearsonr(x[..., u].ravel(), y[..., h].ravel()).statistic for u in range(UNITS)] for h in range(2)]
    return np.array(pairs)


@pytest.mark.parametrize("cuts", [(), (100, 200), (1, 40, 299)])
def test_correlation_beyond_place_is_scipys_however_the_records_are_cut(cuts):
    units, behaviours = drawn()
    flat = [torch.from_numpy(value.reshape(-1, value.shape[-1])) for value in (units, behaviours)]
    for encoder, statistic, encoded in (
        (Moments.of(*flat), beyond_place, (units, behaviours)),
        (Exceedance.of(flat[0], 0.2), joint, None),
        (Ranks.of(*flat), beyond_place, None),
    ):
        sums = GroupedSums()
        for some in np.split(np.arange(COUNT), cuts):
            rows = [torch.from_numpy(value[some].reshape(-1, value.shape[-1])) for value in (units, behaviours)]
            sums.add(encoder.sums(UnitRows(rows[0], flat[0][0]), rows[1], SIDE * SIDE), len(some))
        if isinstance(encoder, Exceedance):
            encoded = units > encoder.threshold.numpy(), behaviours
        elif isinstance(encoder, Ranks):
            encoded = [_mean_ranks(value) for value in (units, behaviours)]
        # Products are summed in single precision, far from 0 where places differ.
        assert statistic(sums.total()) == pytest.approx(slow(*encoded), abs=1e-4)


def _mean_ranks(values):
    return rankdata(values.reshape(-1, values.shape[-1]), axis=0).reshape(values.shape)


def test_one_hypothesis_at_a_time_gives_the_same_probabilities(digits):
    chosen = "lenet5-digits", digits, library(digits, ["regions"])[:4], ("pearson", "iou"), ["conv2"]
    fast, each = (inspect(*chosen, speed=speed) for speed in (Speed(), without(Speed(), "together")))
    for column in ("score", "p_value"):
        np.testing.assert_allclose(fast.table[column], each.table[column], atol=1e-4)
