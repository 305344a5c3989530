"""Projections against scikit-learn's, and what they owe their reader."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import PCA

from idc_core.analysis.projection import alike, principal_components, sample, umap
from idc_core.errors import CancelledError, SettingError
from idc_core.evidence.finding import Verdict


def clumps(n=120, m=6, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=(n, m)) + 8 * (np.arange(n) % 3)[:, None] * np.eye(m)[0]).astype(np.float32)


class TestPrincipalComponents:
    @pytest.mark.parametrize("m", [2, 3, 6, 12])
    def test_equal_those_of_scikit_learn(self, m):
        values = np.random.default_rng(m).normal(size=(300, m)) @ np.random.default_rng(1).normal(size=(m, m)) + 5
        theirs = PCA(2).fit(values)
        found = principal_components(values)
        np.testing.assert_allclose(found.explained, theirs.explained_variance_ratio_, rtol=1e-9)
        signs = np.sign((found.loadings * theirs.components_).sum(axis=1))
        np.testing.assert_allclose(found.loadings, theirs.components_ * signs[:, None], atol=1e-9)
        np.testing.assert_allclose(found.points, theirs.transform(values) * signs, atol=1e-9)

    def test_largest_loading_is_positive(self):
        for seed in range(5):
            loadings = principal_components(clumps(seed=seed)).loadings
            assert (loadings[np.arange(2), np.abs(loadings).argmax(axis=1)] > 0).all()

    def test_one_neuron_lies_on_a_line(self):
        values = np.array([[1.0], [2.0], [6.0]])
        found = principal_components(values)
        assert found.points.tolist() == [[-2.0, 0.0], [-1.0, 0.0], [3.0, 0.0]]
        assert found.explained == (1.0, 0.0)

    def test_equal_inputs_are_one_point(self):
        found = principal_components(np.full((4, 3), 2.0))
        assert not found.points.any()
        assert found.explained == (0.0, 0.0)

    @given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 6)), elements=st.floats(-1e3, 1e3)))
    def test_shares_and_distances(self, values):
        found = principal_components(values)
        assert 0 <= found.explained[1] <= found.explained[0] <= 1 + 1e-9
        assert sum(found.explained) <= 1 + 1e-9
        apart = np.linalg.norm(found.points[0] - found.points[-1])
        assert apart <= np.linalg.norm(values[0] - values[-1]) + 1e-6, "a projection brings inputs no further apart"


@pytest.mark.slow  # UMAP compiles for twenty seconds
class TestUmap:
    def test_same_seed_same_picture_and_groups_stay_apart(self):
        values = clumps()
        first, second = umap(values, seed=3), umap(values, seed=3)
        np.testing.assert_array_equal(first.points, second.points)
        assert first.explained is None
        centres = np.array([first.points[g::3].mean(axis=0) for g in range(3)])
        within = max(np.linalg.norm(first.points[g::3] - centres[g], axis=1).max() for g in range(3))
        between = min(np.linalg.norm(centres[a] - centres[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        assert between > within
        assert not np.array_equal(first.points, umap(values, seed=4).points)

    def test_few_inputs(self):
        assert umap(clumps(5)).points.shape == (5, 2)

    def test_says_which_step_runs_and_stops_before_it(self):
        steps = []
        umap(clumps(30), on_progress=lambda done, total, label: steps.append((done, total, label)))
        assert steps == [(0, 2, "loading UMAP"), (1, 2, "laying out the inputs"), (2, 2, "laying out the inputs")]
        with pytest.raises(CancelledError):
            umap(clumps(30), on_progress=lambda done, total, label: False)

    @pytest.mark.parametrize("wrong", [{"neighbours": 1}, {"spread": -0.1}, {"spread": 1.5}])
    def test_refused_parameters(self, wrong):
        with pytest.raises(SettingError, match="Expected neighbours of at least 2"):
            umap(clumps(), **wrong)


@pytest.mark.parametrize("project", [principal_components, umap])
@pytest.mark.parametrize(
    ("values", "reason"),
    [(np.zeros((0, 3)), "at least"), (np.zeros(9), "at least"), (np.full((9, 2), np.nan), "finite")],
)
def test_refused_activations(project, values, reason):
    with pytest.raises(SettingError, match=reason):
        project(values)


def test_share_of_points_beside_their_like():
    points = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0], [5.0, 6.0]])
    shares = [alike(points, np.array(groups), "Alike").number for groups in ([0, 0, 1, 1, 1], [0, 1, 1, 1, 1])]
    assert shares == [1, 3 / 5]
    assert alike(points, np.array([0, 0, 1, 0, 1]), "Alike").number in (2 / 5, 3 / 5)
    assert alike(points[:1], np.array([0]), "Alike") is None


def test_neighbours_of_one_group_are_compared_with_mixed_groups():
    places = np.random.default_rng(0).normal(size=(200, 2))
    sides = (places[:, 0] > 0).astype(np.int64)
    apart = alike(places, sides, "Alike")
    assert apart.verdict is Verdict.STANDS_OUT
    assert 0.4 < apart.control.low < 0.5 < apart.control.high < 0.6
    assert alike(places, np.random.default_rng(1).permutation(sides), "Alike").verdict is Verdict.AS_EXPECTED


def test_sample():
    positions = np.arange(100, 200)[::-1]
    drawn = sample(positions, 30, seed=1)
    assert len(set(drawn.tolist())) == 30
    assert set(drawn.tolist()) <= set(positions.tolist())
    assert (np.diff(drawn) > 0).all()
    np.testing.assert_array_equal(drawn, sample(positions, 30, seed=1))
    assert not np.array_equal(drawn, sample(positions, 30, seed=2))
    np.testing.assert_array_equal(sample(positions, 100), np.sort(positions))
