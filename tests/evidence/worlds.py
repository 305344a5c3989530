"""Worlds for the pages that say what stands out: in some nothing is to be found, in others something was planted.

A world gives the findings of one view as it opens, by the engine's functions that its page calls, of one seed's
numbers. LeNet-5 on digits, layer `fc2`, m = 6; the table of `docs/results/evidence.md` says what each world is.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np

import idc_core as idc
from idc_core.analysis.layer_sweep import count_assigned, highest_chance
from idc_core.analysis.projection import alike, principal_components
from idc_core.confusion import Evidence, class_table, collect_statistics, countable_layers, find_errors
from idc_core.confusion.findings import least_recalled
from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import equal_suites, evaluate_criteria
from idc_core.coverage.cell_table import tabulate
from idc_core.coverage.discovery import second_half
from idc_core.coverage.prioritisation import detect_faults, earliest, orders_by
from idc_core.evidence.additions import addition
from idc_core.evidence.correlations import rank_correlations
from idc_core.evidence.finding import Verdict
from idc_core.evidence.mistakes import judge_mistakes
from idc_core.evidence.of_tests import confused_pair
from idc_core.evidence.validity import Accepted, Validity
from idc_core.experiments.ablation import ablate
from idc_core.experiments.random_neurons import seeds_of_draws
from idc_core.experiments.retraining_results import RetrainedNetwork, Retraining
from idc_core.experiments.rq1 import compare_neurons, measure
from idc_core.filling.accepted import change_by
from idc_core.importance.ranking import Ranking, shared_finding
from idc_core.inspection import inspect, library, shuffled
from idc_core.inspection.result import compare_importance, grid
from idc_core.inspection.verification import verify
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from tests.inspection.planted import Table, is_letter, noisy_table, texts

FC2, M = "fc2", 6


@cache
def digits():
    """What all worlds share: network, inputs, activations, clusters."""
    model = idc.load_model("lenet5-digits")
    train, test = (idc.load_dataset("digits", split) for split in ("train", "test"))
    traces = tuple(collect(model, data.inputs, [FC2], RelevanceSettings()) for data in (train, test))
    analysis = idc.analyze(model, train, test, FC2, M, traces=traces)
    learnt = analysis.assign(traces[0].activations[FC2])
    scores = traces[1].scores.astype(np.float64)
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return SimpleNamespace(
        model=model,
        train=train,
        test=test,
        traces=traces,
        analysis=analysis,
        sizes=[one.k for one in analysis.clusters],
        cells=np.concatenate([learnt, analysis.assignments]),
        probabilities=odds / odds.sum(1, keepdims=True),
        right=analysis.predictions == test.targets,
    )


def counts(cells):
    """How many inputs lie in each of their cells (n, m)."""
    return np.unique(cells, axis=0, return_counts=True)[1]


def new_cells(cells, others):
    """Cells that inputs reach and others do not."""
    return len(np.unique(np.concatenate([cells, others]), axis=0)) - len(np.unique(others, axis=0))


def drawn(rng, number):
    """Cells of inputs that are drawn with replacement from all that there are, so that any two draws are alike."""
    cells = digits().cells
    return cells[rng.integers(0, len(cells), number)]


def added(cells, tests, looks=1):
    """What inputs (n, m) add to tests, or the mean of several such sets (s, n, m)."""
    several = cells if cells.ndim == 3 else cells[None]
    gains = [new_cells(one, tests) for one in several]
    return addition("New cells", gains, counts(tests), digits().analysis.total, several.shape[1], looks=looks)


def errors_at_one_rate(rng, true, share):
    """Predictions that are wrong at one rate, and as any other class."""
    return np.where(rng.random(len(true)) < share, (true + rng.integers(1, 10, len(true))) % 10, true)


def growth(rng):
    return [second_half(rng.permutation(digits().analysis.codes))]


def growth_in_two_kinds(rng):
    codes, classes = digits().analysis.codes, digits().test.targets
    first = rng.permutation(10)[:5]
    half = np.isin(classes, first)
    return [second_half(np.concatenate([codes[half], codes[~half]]))]


def _judged(probabilities, labels):
    tests, train = digits().test, digits().train
    found = judge_mistakes(probabilities, labels, tests.inputs, train.inputs, train.targets)
    return [found.finding] if found.doubted else []


def mistakes(rng):
    """The network is confident of a wrong class for some tests, whatever they look like; all labels are right."""
    probabilities, labels = digits().probabilities.copy(), digits().test.targets
    predicted = errors_at_one_rate(rng, labels, 0.03)
    probabilities[np.arange(len(labels))] = np.where(
        (predicted != labels)[:, None], np.eye(10)[predicted], np.eye(10)[labels]
    )
    return _judged(probabilities, labels)


def wrong_labels(rng):
    labels = errors_at_one_rate(rng, digits().test.targets, 0.02)
    return _judged(digits().probabilities, labels)


def accepted(rng):
    """Accepted inputs that are natural tests, classified correctly as often as the others."""
    order, data = rng.permutation(540), digits()
    some, rest = order[:40], order[40:]
    right = data.right
    table = tabulate(data.analysis.assignments[rest], data.sizes, correct=right[rest])
    return change_by(table, data.analysis.assignments[some], right[some]).findings


def validity(made):
    """What a detector accepts of made inputs that are made inputs of its `known-bad` kinds, or natural ones."""

    def world(rng):
        bad = tuple(Accepted(what, int(rng.binomial(100, 0.3)), 100) for what in ("noise", "shuffled pixels"))
        known = Validity("a detector", Accepted("natural", int(rng.binomial(200, 0.95)), 200), bad)
        return [known.finding(int(rng.binomial(60, made)), 60)]

    return world


def layers(rng):
    """Layers of one chance of a new cell, each with tests of its own."""
    cells = [drawn(rng, 540) for _ in range(5)]
    counted = [count_assigned(f"layer {at}", "tests", one, digits().sizes, [M])[0] for at, one in enumerate(cells)]
    return [highest_chance(counted)]


def layers_of_unequal_chance(rng):
    """As before, but a tenth of one layer's tests have a cell each."""
    cells = [drawn(rng, 540) for _ in range(5)]
    every = np.stack(np.unravel_index(rng.permutation(digits().analysis.total)[:54], digits().sizes), 1)
    cells[0][:54] = every
    counted = [count_assigned(f"layer {at}", "tests", one, digits().sizes, [M])[0] for at, one in enumerate(cells)]
    return [highest_chance(counted)]


def suites(rng):
    """Two suites of as many inputs as there are tests, ten seeds each, drawn as the tests are."""
    tests = drawn(rng, 540)
    return [added(np.stack([drawn(rng, 540) for _ in range(10)]), tests, looks=2) for _ in range(2)]


def attack(rng):
    """As many tests as are attacked, set aside."""
    cells = rng.permutation(digits().analysis.assignments)
    return [added(cells[:64], cells[64:])]


@cache
def _turned():
    """Cells of the tests turned by 90 degrees."""
    data = digits()
    inputs = np.ascontiguousarray(np.rot90(data.test.inputs, axes=(2, 3)))
    return data.analysis.assign(collect(data.model, inputs, [FC2], RelevanceSettings()).activations[FC2])


def turned(rng):
    chosen = rng.permutation(540)
    return [added(_turned()[chosen[:64]], digits().analysis.assignments[chosen[64:]])]


def suites_of_turned(rng):
    chosen = [rng.permutation(540)[:120] for _ in range(10)]
    tests = digits().analysis.assignments
    return [added(_turned()[np.stack(chosen)], tests, looks=2), added(drawn(rng, 540), tests, looks=2)]


def confusions(rng):
    """Half of the attacked tests are misclassified, as any class."""
    true = rng.choice(digits().test.targets, 64)
    found = confused_pair(digits().test.class_names, true, errors_at_one_rate(rng, true, 0.5), lambda *_: ())
    return [found] if found else []


def one_confusion(rng):
    """The same, but that what is misclassified of one class becomes one other."""
    true = np.arange(64) % 10
    predicted = errors_at_one_rate(rng, true, 0.5)
    one, other = rng.permutation(10)[:2]
    predicted[true == one] = other
    return [confused_pair(digits().test.class_names, true, predicted, lambda *_: ())]


@cache
def _measured():
    """Results of the criteria that count targets, by name, IDC first."""
    data = digits()
    names = ["idc", *(name for name, kind in CRITERIA.items() if name != "idc" and not kind.card.can_fall)]
    names = [name for name in names if not CRITERIA[name].card.pairwise]
    made = [CRITERIA[name](data.model, FC2, **({"m": M} if name == "idc" else {})) for name in names]
    return dict(zip(names, evaluate_criteria(made, data.train.inputs, data.test.inputs, {}), strict=True))


def _agreement(first, others):
    found = rank_correlations(first, np.stack(others))
    return [found.finding([str(at) for at in range(len(others))], "{} correlates most")]


def criteria(rng):
    """Scores of IDC over some suites, and of the other criteria over others."""
    own, others = (equal_suites(540, seed=int(rng.integers(1 << 30))) for _ in range(2))
    first, *rest = _measured().values()
    return _agreement(first.of_suites(own), [one.of_suites(others) for one in rest])


def a_criterion_like_idc(rng):
    """Scores of IDC with noise of half of their spread, among the other criteria's."""
    own, others = (equal_suites(540, seed=int(rng.integers(1 << 30))) for _ in range(2))
    idc_alone, *criteria = _measured().values()
    first, rest = idc_alone.of_suites(own), [one.of_suites(others) for one in criteria]
    rest[0] = first + rng.normal(0, first.std() / 2, len(first))
    return _agreement(first, rest)


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
        found = verify(Table(columns), "units", units.tolist(), data, is_letter(*range(1, 8)), pairs=60)
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


NOTHING = {
    "Coverage, growth": growth,
    "Coverage, mistakes": mistakes,
    "Coverage, accepted": accepted,
    "Coverage, validity": validity(0.3),
    "Layers": layers,
    "Test sets": suites,
    "Adversarial": attack,
    "Adversarial, confusions": confusions,
    "Criteria": criteria,
    "Criteria, prioritisation": prioritisation,
    "Class errors": class_errors,
    "Class errors, bias": bias,
    "Neurons, ranking": rankings,
    "Neurons, trials": trials,
    "Robustness, 5 seeds": retraining(5),
    "Robustness, 2 seeds": retraining(2),
    "Hypotheses": hypotheses,
    "Hypotheses, importance": important_units,
    "Hypotheses, verification": verification(0),
    "Clusters, map": map_of_tests,
}
PLANTED = {
    "Coverage, growth": growth_in_two_kinds,
    "Coverage, mistakes": wrong_labels,
    "Coverage, validity": validity(0.9),
    "Layers": layers_of_unequal_chance,
    "Test sets": suites_of_turned,
    "Adversarial": turned,
    "Adversarial, confusions": one_confusion,
    "Criteria": a_criterion_like_idc,
    "Criteria, prioritisation": uncertain_errors,
    "Class errors": a_confused_pair,
    "Neurons, ranking": alike_rankings,
    "Robustness, 5 seeds": retraining(5, 0.02),
    "Hypotheses": classes_as_hypotheses,
    "Hypotheses, importance": strongest_units,
    "Hypotheses, verification": verification(10),
    "Clusters, map": map_of_classes,
}


def says(findings):
    """Whether a view says that something stands out."""
    return any(one if isinstance(one, bool) else one and one.verdict is Verdict.STANDS_OUT for one in findings)
