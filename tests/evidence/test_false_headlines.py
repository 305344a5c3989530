"""Pages say that something stands out where something is, and in at most 5 % of cases where nothing is.

``python -m tests.evidence.worlds`` makes the counts of `docs/results/evidence.md`.
"""

import pytest
from scipy import stats

from idc_core.evidence.finding import LEVEL
from tests.evidence.worlds import FEW, NOTHING, PLANTED, said

SLOW = {"Criteria", "Hypotheses"}
"""Worlds of which fewer seeds are tried here."""


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NOTHING)
def test_nothing_stands_out_where_nothing_is_there(name):
    world, seeds = NOTHING[name]
    tried = 20 if name in SLOW else seeds
    assert sum(said(world, tried)) <= stats.binom.ppf(0.99, tried, LEVEL)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_stands_out(name):
    seeds = 10 if name in SLOW else FEW
    assert sum(said(PLANTED[name], seeds)) >= 0.9 * seeds
