"""Pages that make a headline say that something stands out where something is, and in at most 5 % of cases otherwise.

`docs/results/evidence.md` has the counts: ``python -m pytest -m slow -rP tests/evidence/test_false_headlines.py``.
"""

import numpy as np
import pytest

from idc_core.evidence.finding import LEVEL
from tests.evidence.worlds import NOTHING, PLANTED, says


def count(world, seeds):
    """In how many worlds the page says that something stands out."""
    number = sum(says(world(np.random.default_rng(seed))) for seed in range(seeds))
    print(f"{number} of {seeds}")
    return number


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTHING)
def test_nothing_stands_out_where_nothing_is_there(name):
    world, seeds = NOTHING[name]
    assert count(world, seeds) <= LEVEL * seeds


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_stands_out(name):
    assert count(PLANTED[name], 50) >= 45
