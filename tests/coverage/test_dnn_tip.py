"""The criteria against dnn-tip, a published implementation, where its definitions are those of the papers."""

import warnings

import numpy as np
import pytest
import torch
from dnn_tip import neuron_coverage, prioritizers, surprise
from dnn_tip.apfd import apfd_from_order
from torch import nn

from idc_core.coverage.boundary import KMNC, NBC, SNAC
from idc_core.coverage.neuron import NC, TKNC
from idc_core.coverage.prioritisation import _additional_first, apfd
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.streamed import profile_all
from idc_core.coverage.surprise import DSC, LSC, MDSC
from idc_core.tracing.trace import collect
from tests.lrp.networks import numbers, settle

LAYERS = ("0", "2")
TRAIN, TESTS = numbers(400, 6, seed=5), 1.3 * numbers(120, 6, seed=6)
NETWORK = settle(nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 7), nn.Softplus(), nn.Linear(7, 3)))


def activations(inputs):
    with torch.no_grad():
        return [NETWORK[:2](inputs).numpy(), NETWORK[:4](inputs).numpy()], NETWORK(inputs).argmax(1).numpy()


(TRAINED, TRAINED_CLASSES), (TESTED, TESTED_CLASSES) = activations(TRAIN), activations(TESTS)
LOWS, HIGHS, SPREADS = ([getattr(np, name)(layer, axis=0) for layer in TRAINED] for name in ("min", "max", "std"))
STRUCTURAL = {
    "NAC": (NC(NETWORK, LAYERS, 0.5), neuron_coverage.NAC(0.5)),
    "KMNC": (KMNC(NETWORK, LAYERS, 200), neuron_coverage.KMNC(LOWS, HIGHS, 200)),
    "NBC": (NBC(NETWORK, LAYERS, 0.1), neuron_coverage.NBC(LOWS, HIGHS, SPREADS, 0.1)),
    "NBC, its bounds": (NBC(NETWORK, LAYERS, inclusive=True), neuron_coverage.NBC(LOWS, HIGHS, SPREADS, 0)),
    "SNAC": (SNAC(NETWORK, LAYERS, 0.1), neuron_coverage.SNAC(HIGHS, SPREADS, 0.1)),
    "TKNC": (TKNC(NETWORK, LAYERS, 3), neuron_coverage.TKNC(3)),
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_criteria(name):
    ours, theirs = STRUCTURAL[name]
    totals, profiles = theirs(TESTED)
    found = ours.fit(TRAIN).profile(TESTS)
    np.testing.assert_array_equal(found.dense, profiles.reshape(len(TESTS), -1))
    np.testing.assert_array_equal(found.counts, totals)
    assert ours.update(TESTS).score == pytest.approx(profiles.any(0).mean(), rel=1e-12)
    assert ours.score > 0


@pytest.mark.parametrize("layers", [["2"], LAYERS])
def test_surprise(layers):
    places = [LAYERS.index(layer) for layer in layers]
    train, tests = ([part[place] for place in places] for part in (TRAINED, TESTED))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it uses scipy's density as it is
        expected = [
            surprise.DSA(train, TRAINED_CLASSES)(tests, TESTED_CLASSES),
            surprise.LSA(train, var_threshold=1e-5, max_features=None)(tests),
            surprise.MultiModalSA.build_by_class(
                train, TRAINED_CLASSES, lambda rows, _: surprise.LSA(rows, var_threshold=1e-5, max_features=None)
            )(tests, TESTED_CLASSES),
            np.sqrt(surprise.MDSA(train)(tests) * (len(TRAIN) - 1) / len(TRAIN)),
        ]
    ours = [
        DSC(NETWORK, layers),
        LSC(NETWORK, layers, per_class=False),
        LSC(NETWORK, layers),
        MDSC(NETWORK, layers, per_class=False),
    ]
    for criterion, values, upper in zip(ours, expected, (2.0, 60.0, 60.0, 10.0), strict=True):
        found = criterion.fit(TRAIN).profile(TESTS).values
        np.testing.assert_allclose(found, values, rtol=1e-8, atol=0)
        mapper = surprise.SurpriseCoverageMapper(50, upper)
        counted = type(criterion)(NETWORK, layers, upper, 50, **options(criterion)).fit(TRAIN).update(TESTS)
        np.testing.assert_array_equal(counted.reached, mapper.get_coverage_profile(values).any(0))


def options(criterion):
    return {} if isinstance(criterion, DSC) else {"per_class": criterion.per_class}


def test_distances_of_single_precision_traces():
    """As float32 traces come from most networks; dnn-tip subtracts them in float32."""
    single = settle(nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 3))).float()
    train, tests = (collect(single, part.float(), ["0"]) for part in (TRAIN, TESTS))
    theirs = surprise.DSA(train.activations["0"].astype(np.float64), train.predictions)
    expected = theirs(tests.activations["0"].astype(np.float64), tests.predictions)
    found = DSC(single, "0").fit(train).profile(tests).values
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def prioritised_tests():
    mask = profile_all([STRUCTURAL["KMNC"][0].fit(TRAIN)], TESTS)[0].dense[:, :900]
    greedy = list(prioritizers.cam(mask.sum(1), mask.copy()))
    ours = _additional_first(Profiles.of_mask(mask))
    # Where nothing new is left it orders equal inputs by an unstable sort.
    new = int(np.count_nonzero(Profiles.of_mask(mask).gains(ours)))
    assert new > 20
    assert ours[:new].tolist() == greedy[:new]
    wrong = TESTED_CLASSES == 1
    assert apfd(ours, wrong) == pytest.approx(apfd_from_order(wrong, ours), rel=1e-12)
