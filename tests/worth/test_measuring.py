"""Rankings of a pool as a network gives them: the criteria's own profiles, surprise, uncertainty, diversity."""

import numpy as np
import pytest

from idc_core.coverage import CRITERIA
from idc_core.coverage.prioritisation import UNCERTAINTIES
from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.models import load_model
from idc_core.tracing.trace import collect
from idc_core.worth.measuring import kinds_of_mistakes, rank_by_rivals, rank_pool


@pytest.fixture(scope="module")
def digits():
    train, test = load_dataset("digits", "train", 300), load_dataset("digits", "test", 80)
    return load_model("lenet4-digits"), train, test


@pytest.fixture(scope="module")
def ranked(digits):
    (criteria, untold), (rivals, missing) = rank_pool(*digits, list(CRITERIA)), rank_by_rivals(*digits)
    assert not untold
    return criteria + rivals, missing


def test_every_criterion_ranks_and_scores_as_it_does_by_itself(digits, ranked):
    model, train, pool = digits
    rankings = {ranking.name: ranking for ranking in ranked[0]}
    assert set(CRITERIA) | {"lsa", "dsa", "mdsa", "deepgini", "margin", "diversity"} == set(rankings)
    assert set(ranked[1]) == {"mutual-information"}
    suite = np.array([3, 70, 12, 9])
    for name in set(CRITERIA) - {"cc"}:  # the clusters of CC are those of the whole pool
        one_layer = name == "idc" or CRITERIA[name].card.one_layer
        layers = model.card.default_layer if one_layer else model.card.layers
        alone = CRITERIA[name](model, layers).fit(train.inputs).update(pool.inputs[suite])
        assert rankings[name].score(suite) == pytest.approx(alone.score, rel=1e-5), name
    for ranking in rankings.values():
        assert sorted(ranking.first(80, 0)) == list(range(80))
        assert len(set(ranking.least(8, 1))) == 8
        assert ranking.score(ranking.first(8, 1)) >= ranking.score(ranking.least(8, 1)), ranking.name


def test_uncertainty_is_that_of_the_scores(digits, ranked):
    scores = collect(digits[0], digits[2], ()).scores
    rankings = {ranking.name: ranking for ranking in ranked[0]}
    unsure = UNCERTAINTIES["deepgini"](scores)
    assert rankings["deepgini"].score(np.array([1, 2])) == pytest.approx(unsure[1:3].mean())
    assert rankings["deepgini"].first(1, 0) == unsure.argmax()


def test_criteria_that_cannot_be_measured_are_told(digits):
    model, train, pool = digits
    one_class = train.only(np.flatnonzero(train.targets == 0))
    rankings, missing = rank_pool(model, one_class, pool, ["nc", "dsc"])
    assert rankings[0].name == "nc"
    assert "class" in missing["dsc"]


def test_mistakes_are_grouped_by_true_and_predicted_class():
    labels, predictions = np.array([0, 0, 1, 1, 2, 0]), np.array([0, 1, 1, 0, 2, 1])
    yardstick = kinds_of_mistakes(predictions, labels)
    assert yardstick.found.tolist() == [[0, 0], [1, 0], [0, 0], [0, 1], [0, 0], [1, 0]]
    with pytest.raises(DataError, match="right on all"):
        kinds_of_mistakes(labels, labels)
