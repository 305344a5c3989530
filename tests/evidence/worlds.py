"""Worlds for the pages that say what stands out: in some nothing is to be found, in others something was planted.

A world gives the findings of one view as it opens, by the engine's functions that its page calls, of one seed's
numbers. LeNet-5 on digits, layer `fc2`, m = 6; the table of `docs/results/evidence.md` says what each world is.
"""

import sys

import numpy as np

from idc_core.evidence.finding import Verdict
from tests.evidence.worlds_of_cells import (
    accepted,
    attack,
    confusions,
    growth,
    layers,
    layers_of_unequal_chance,
    mistakes,
    one_confusion,
    suites,
    suites_of_turned,
    turned,
    validity,
    wrong_labels,
)
from tests.evidence.worlds_of_networks import (
    a_confused_pair,
    a_criterion_like_idc,
    alike_rankings,
    bias,
    class_errors,
    classes_as_hypotheses,
    criteria,
    hypotheses,
    important_units,
    map_of_classes,
    map_of_tests,
    prioritisation,
    rankings,
    retraining,
    strongest_units,
    trials,
    uncertain_errors,
    verification,
)

MANY, SOME, FEW = 400, 100, 50
"""Seeds of worlds that take milliseconds, hundredths and tenths of a second."""

NOTHING = {
    "Coverage, growth": (growth, MANY),
    "Coverage, mistakes": (mistakes, SOME),
    "Coverage, accepted": (accepted, MANY),
    "Coverage, validity": (validity(0.3), MANY),
    "Layers": (layers, MANY),
    "Test sets": (suites, SOME),
    "Adversarial": (attack, MANY),
    "Adversarial, confusions": (confusions, MANY),
    "Criteria": (criteria, FEW),
    "Criteria, prioritisation": (prioritisation, FEW),
    "Class errors": (class_errors, MANY),
    "Class errors, bias": (bias, SOME),
    "Neurons, ranking": (rankings, MANY),
    "Neurons, trials": (trials, FEW),
    "Robustness, 5 seeds": (retraining(5), MANY),
    "Robustness, 2 seeds": (retraining(2), MANY),
    "Hypotheses": (hypotheses, FEW),
    "Hypotheses, importance": (important_units, FEW),
    "Hypotheses, verification": (verification(0), FEW),
    "Clusters, map": (map_of_tests, SOME),
}
"""Worlds in which nothing is to be found, by view, and how many seeds are tried."""

PLANTED = {
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
"""Worlds in which something is."""


def said(world, seeds):
    """Whether a view says that something stands out, in the world of each seed from 0 up."""
    return [any(map(_stands_out, world(np.random.default_rng(seed)))) for seed in range(seeds)]


def _stands_out(one):
    return one if isinstance(one, bool) else one is not None and one.verdict is Verdict.STANDS_OUT


if __name__ == "__main__":
    for name, (nothing, seeds) in NOTHING.items():
        found = said(nothing, seeds)
        sys.stdout.write(f"{name}, nothing: {sum(found[:FEW])} of {FEW}, {sum(found)} of {seeds}\n")
    for name, planted in PLANTED.items():
        sys.stdout.write(f"{name}, planted: {sum(said(planted, FEW))} of {FEW}\n")
