"""Worlds of Criteria, Class errors, Neurons, Robustness, Hypotheses and Clusters."""

from functools import cache

import numpy as np

from idc_core.analysis.projection import alike, principal_components
from idc_core.confusion import Evidence, class_table, collect_statistics, countable_layers, find_errors
from idc_core.confusion.findings import least_recalled
from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import equal_suites, evaluate_criteria
from idc_core.coverage.prioritisation import detect_faults, earliest, orders_by
from idc_core.coverage.profiles import Profiles
from idc_core.evidence.correlations import rank_correlations
from idc_core.experiments.ablation import ablate
from idc_core.experiments.random_neurons import seeds_of_draws
from idc_core.experiments.retraining_results import RetrainedNetwork, Retraining
from idc_core.experiments.rq1 import compare_neurons, measure
from idc_core.importance.ranking import Ranking, shared_finding
from idc_core.inspection import inspect, library, shuffled
from idc_core.inspection.result import compare_importance, grid
from idc_core.inspection.verification import verify
from tests.evidence.worlds_of_cells import FC2, M, digits, errors_at_one_rate
from tests.inspection.planted import Table, is_letter, noisy_table, texts


@cache
def _measured():
    """Results of the criteria that count targets, by name, IDC first."""
    data = digits()
    names = ["idc", *(name for name, kind in CRITERIA.items() if name != "idc" and not kind.card.can_fall)]
    names = [name for name in names if not CRITERIA[name].card.pairwise]
    made = [CRITERIA[name](data.model, FC2, **({"m": M} if name == "idc" else {})) for name in names]
    return dict(zip(names, evaluate_criteria(made, data.train.inputs, data.test.inputs, {}), strict=True))


_TESTS = 36
"""Tests of a world of criteria: few, so that suites share most of them."""


def _some_tests(rng):
    """A score of suites by IDC of a few tests, their positions among all tests, and suites of half of them."""
    chosen, idc = rng.permutation(540)[:_TESTS], next(iter(_measured().values()))
    suites = equal_suites(_TESTS, seed=int(rng.integers(1 << 30)))
    return lambda some: idc.of_suites(chosen[some]), chosen, suites


def _agreement(first, others, suites):
    found = rank_correlations(first, np.stack(others), suites, _TESTS)
    return [found.finding([str(at) for at in range(len(others))], "{} correlates most")]


def criteria(rng):
    """Beside IDC of a few tests, the cells that ten networks with random weights make of the same pictures."""
    first, chosen, suites = _some_tests(rng)
    pictures, others = digits().test.inputs.reshape(540, -1), []
    for _ in range(10):
        hidden = np.maximum(pictures @ rng.normal(size=(pictures.shape[1], 32)), 0) @ rng.normal(size=(32, 5))
        codes = (hidden > np.median(hidden, axis=0)) @ (1 << np.arange(5))
        cells = Profiles.of_names(codes, 32)
        others.append([cells.coverage(some) for some in chosen[suites]])
    return _agreement(first, others, suites)


def a_criterion_like_idc(rng):
    """Scores of IDC with noise of half of their spread, among the other criteria's."""
    first, chosen, suites = _some_tests(rng)
    scores, others = first(suites), [one.of_suites(chosen[suites]) for one in [*_measured().values()][1:]]
    others[0] = scores + rng.normal(0, scores.std() / 2, len(scores))
    return _agreement(first, others, suites)


@cache
def _orders():
    profiles = {name: one.profiles for name, one in _measured().items()}
    return orders_by(profiles, digits().traces[1].scores)


def _first_faults(wrong):
    orders = _orders()
    return [earliest(detect_faults(orders, wrong), wrong, {one.key: one.key for one in orders})]


def prioritisation(rng):
    """Any 13 tests are misclassified."""
    return _first_faults(rng.permutation(540) < 13)


def uncertain_errors(rng):
    """As many of the 54 least confident."""
    wrong = np.zeros(540, bool)
    wrong[rng.permutation(np.argsort(digits().analysis.confidence)[:54])[:13]] = True
    return _first_faults(wrong)


@cache
def _statistics():
    data = digits()
    return collect_statistics(data.model, data.test, tuple(countable_layers(data.model)))


def _errors(predicted, true):
    return find_errors(Evidence(digits().test.class_names, predicted, true, values=_statistics().values))


def _first_sentences(errors, true, predicted):
    """The findings above all tabs of Class errors."""
    recall = class_table(true, predicted, digits().test.class_names).recall
    worst = least_recalled(digits().test.class_names, recall)
    first, second = errors.suspected[0].tolist()
    return [errors.most_confused(), worst, errors.pair_finding((first, second)), errors.report_finding]


def class_errors(rng):
    true = digits().test.targets
    predicted = errors_at_one_rate(rng, true, 0.03)
    return _first_sentences(_errors(predicted, true), true, predicted)


def a_confused_pair(rng):
    true = digits().test.targets
    predicted = errors_at_one_rate(rng, true, 0.03)
    one, other = rng.permutation(10)[:2]
    predicted[(true == one) & (rng.random(540) < 0.3)] = other
    return _first_sentences(_errors(predicted, true), true, predicted)


def bias(rng):
    true = digits().test.targets
    errors = _errors(errors_at_one_rate(rng, true, 0.03), true)
    return [errors.disparity_finding(tuple(errors.biased[0].tolist()))]


def _ranking(rng, name):
    return Ranking(name, name, rng.permutation(84).astype(np.float64), 1)


def rankings(rng):
    """Two random orders of the neurons."""
    return [shared_finding(_ranking(rng, "one"), _ranking(rng, "two"), M, ("one", "two"))]


def alike_rankings(rng):
    """Two orders of the same numbers, one with noise of a tenth of their spread."""
    first = _ranking(rng, "one")
    second = Ranking("two", "two", first.values + rng.normal(0, 2.4, 84), 1)
    return [shared_finding(first, second, M, ("one", "two"))]


@cache
def _changes():
    return measure(digits().model, digits().test, FC2, share=0.02)


def _trials(first):
    """The two experiments side by side, with as many draws as the page has."""
    data, (silent, moved) = digits(), (seeds_of_draws(first, 84, draws) for draws in (39, 79))
    places = np.linspace(0, 539, 500).astype(np.int64)
    silenced = ablate(data.model, data.test.inputs[places], data.test.targets[places], FC2, first, (M,), silent)
    found = compare_neurons(_changes(), first, moved)
    return [silenced.finding(M, "Accuracy", "with random ones", 2), found.finding("Distance", "by random ones", 2)]


def trials(rng):
    """The first neurons are random ones."""
    return _trials(rng.permutation(84)[:M])


def retraining(seeds, difference=0.0):
    """Networks that are equally good after any addition: correctly classified tests of 540 are drawn for each."""

    def world(rng):
        tests = ("clean", "noise", "guided", "fgsm", "bim", "fgsm-anew")
        good = np.array([0.975, 0.95, 0.95, 0.4, 0.3, 0.6])
        networks = {
            (name, seed): RetrainedNetwork(
                np.stack([good, rng.binomial(540, good + difference * (name == "raising")) / 540]),
                100,
                np.zeros(0),
                np.zeros(0),
                {},
            )
            for name in ("none", "random", "raising")
            for seed in range(seeds)
        }
        found = Retraining(
            ("none", "random", "raising"), tuple(range(seeds)), tests, "classification", 1, 10, 1257, "here", networks
        )
        column = found.most_different("raising", "random")
        return [found.finding("raising", "random", column, "Accuracy", "with as many random ones")]

    return world


@cache
def _classes():
    """One hypothesis per class of the tests."""
    return [one for one in library(digits().test, ["labels"]) if one.kind == "binary"]


def _scores(hypotheses):
    found = inspect({"network": digits().model}, digits().test, hypotheses, ("pearson",), (FC2,))
    return grid(found, "pearson", "network", FC2)


def hypotheses(rng):
    """Classes that are dealt out to other tests: whether any association is significant."""
    return [bool(_scores([shuffled(one, int(rng.integers(1 << 30))) for one in _classes()]).passes.any())]


def classes_as_hypotheses(rng):
    return [bool(_scores(_classes()).passes.any())]


@cache
def _true_scores():
    return _scores(_classes())


def _importance(important):
    alive = digits().traces[1].activations[FC2].std(0) > 0
    return [compare_importance(_true_scores(), digits().analysis.importance, important, alive).finding]


def important_units(rng):
    return _importance(rng.permutation(84)[:M])


def strongest_units(rng):
    """Six of the twelve that correlate most with a class."""
    return _importance(rng.permutation(np.argsort(-_true_scores().strength.max(0))[:12])[:M])


def verification(follow):
    """Ten of sixty units are compared, which follow single letters, or the hypothesis."""

    def world(rng):
        columns = noisy_table(17, 60, seed=int(rng.integers(1 << 30)))
        units = rng.permutation(60)[:10]
        columns[:, units[:follow]] = np.isin(np.arange(17), range(1, 8))[:, None]
        data = texts(letters=17)
        found = verify(Table(columns), "units", units.tolist(), data, is_letter(*range(1, 8)), pairs=30)
        return [found.finding("Silhouette")]

    return world


def _map(member):
    points = principal_components(digits().traces[1].activations[FC2][:, digits().analysis.important]).points
    return [alike(points, member, "Tests whose nearest neighbour has the same class")]


def map_of_tests(rng):
    return _map(rng.permutation(digits().test.targets))


def map_of_classes(rng):
    chosen = rng.permutation(540)[:400]
    points = principal_components(digits().traces[1].activations[FC2][chosen][:, digits().analysis.important]).points
    return [alike(points, digits().test.targets[chosen], "Tests")]
