"""A dot a random set at its silhouette, none over another, and the chosen units as a labelled diamond."""

import numpy as np
import pytest

from idc_core.figures.verification import among_random


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("chosen", "side"), [(0.6, "right"), (-0.3, "left")])
def test_every_set_has_a_dot_and_the_chosen_units_a_label(chosen, side, dark):
    random = np.array([0.1, 0.2, 0.1, -0.1, 0.1])
    figure = among_random(random, chosen, "3 neurons", "A finding", dark=dark)
    dots, line, diamond = figure.data
    assert dots.x == pytest.approx(np.sort(random))
    assert sorted(zip(np.round(dots.x, 6), dots.y, strict=True)) == [(-0.1, 1), (0.1, 1), (0.1, 2), (0.1, 3), (0.2, 1)]
    assert list(line.x) == [chosen, chosen]
    assert (list(diamond.x), diamond.marker.symbol) == ([chosen], "diamond")
    (label,) = figure.layout.annotations
    assert label.text == ("3 neurons: 0.600" if chosen > 0 else "3 neurons: \u22120.300")
    assert label.xanchor == side
    assert figure.layout.title.text == "A finding"


def test_sets_that_are_all_alike_stand_in_one_column():
    figure = among_random(np.zeros(4), 0.0, "1 neuron", "A finding")
    assert list(figure.data[0].y) == [1, 2, 3, 4]
    assert np.diff(figure.layout.xaxis.range) > 0
