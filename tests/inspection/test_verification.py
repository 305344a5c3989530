"""Units that follow a hypothesis tell swaps that keep it from swaps that break it; others do not."""

import numpy as np
import pytest

from idc_core.errors import DataError, SettingError
from idc_core.inspection import Hypothesis
from idc_core.inspection.verification import verify
from tests.inspection.planted import Table, is_letter, noisy_table, texts


def network(letters=17, units=20):
    columns = noisy_table(letters, units, seed=4)
    columns[:, 5] = np.isin(np.arange(letters), (1, 2, 3, 4, 5, 6, 7))
    return Table(columns)


DATA = texts(letters=17)
HYPOTHESIS = is_letter(1, 2, 3, 4, 5, 6, 7)


def test_the_planted_unit_separates_and_random_units_do_not():
    found = verify(network(), "units", [5], DATA, HYPOTHESIS, pairs=100)
    assert found.silhouette == pytest.approx(1)
    assert found.random.max() < 0.5
    assert found.p_value == pytest.approx(0.01)
    assert (found.baseline == 0).all()
    assert (found.treatment == -1).all()


def test_other_units_are_no_better_than_random_ones():
    found = verify(network(), "units", [2], DATA, HYPOTHESIS, pairs=100)
    assert found.silhouette < 0.5
    assert found.p_value > 0.02


def test_the_same_seed_gives_the_same():
    first, second = (verify(network(), "units", [5, 7], DATA, HYPOTHESIS, pairs=20, sets=5, seed=3) for _ in range(2))
    assert first.silhouette == second.silhouette
    assert (first.random == second.random).all()
    assert first.baseline.shape == (20, 2)


def test_layers_with_one_value_a_record_work_too():
    found = verify(network(), "logits", [0], DATA, HYPOTHESIS, pairs=20, sets=5)
    assert found.baseline.shape == (20, 1)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"pairs": 5}, SettingError),
        ({"sets": 0}, SettingError),
        ({"units": []}, SettingError),
        ({"units": [99]}, SettingError),
        ({"units": list(range(15))}, SettingError),
        ({"hypothesis": Hypothesis("n", "t", "number", lambda r: r.inputs)}, SettingError),
        ({"hypothesis": Hypothesis("g", "t", "binary", lambda r: r.inputs > 3, recomputable=False)}, SettingError),
        ({"hypothesis": is_letter(1), "tries": 2}, DataError),
    ],
)
def test_mistakes_are_explained(change, error):
    arguments = {"units": [5], "hypothesis": HYPOTHESIS, "pairs": 20, "sets": 2, **change}
    with pytest.raises(error):
        verify(network(), "units", dataset=DATA, **arguments)
