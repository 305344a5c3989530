"""Surprise adequacy of traces: ties, singular covariances, blocks; and the moments of a stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from idc_core.coverage import adequacy
from idc_core.coverage.adequacy import DistanceAdequacy, LikelihoodAdequacy, MahalanobisAdequacy, Neighbours, _whitening
from idc_core.coverage.moments import Moments
from idc_core.errors import DataError
from tests.coverage import slow_criteria as slow

RANDOM = np.random.default_rng(3)
TRACES = RANDOM.normal(size=(90, 4)) @ RANDOM.normal(size=(4, 4))
CLASSES = RANDOM.integers(3, size=90)
OTHERS = 1.5 * RANDOM.normal(size=(40, 4))
OTHER_CLASSES = RANDOM.integers(3, size=40)


def nearest(points, others):
    return Neighbours(others).nearest(points, slice(0, len(others)))


class TestNearest:
    @given(*(arrays(np.float64, (rows, 3), elements=st.integers(-2, 2)) for rows in (7, 20)))
    def test_of_equally_near_points_the_first(self, points, others):
        indices, distances = nearest(points, others)
        slowly = np.linalg.norm(points[:, None] - others, axis=2)
        np.testing.assert_array_equal(indices, slowly.argmin(1))
        np.testing.assert_array_equal(distances, slowly.min(1))

    def test_far_from_the_origin(self):
        others = 1e7 + RANDOM.normal(size=(300, 5))
        points = others[::3] + 1e-6 * RANDOM.normal(size=(100, 5))
        indices, distances = nearest(points, others)
        np.testing.assert_array_equal(indices, np.arange(0, 300, 3))
        np.testing.assert_array_equal(distances, np.linalg.norm(points - others[::3], axis=1))

    def test_in_one_place(self):
        indices, distances = Neighbours(TRACES).nearest(OTHERS, slice(20, 50))
        expected, apart = nearest(OTHERS, TRACES[20:50])
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(distances, apart)

    def test_blocks_stay_small_and_change_nothing(self, monkeypatch):
        whole = nearest(OTHERS, TRACES)
        sizes = []
        count = np.count_nonzero
        monkeypatch.setattr(adequacy, "_BLOCK_BYTES", 4 * 8 * 90 * 7)
        monkeypatch.setattr(np, "count_nonzero", lambda block, axis: sizes.append(block.shape) or count(block, axis))
        parts = nearest(OTHERS, TRACES)
        assert sizes == [(7, 90)] * 5 + [(5, 90)]
        np.testing.assert_array_equal(parts, whole)


def test_of_equal_training_traces_one_is_kept():
    traces = np.repeat(TRACES.astype(np.float32), 50, 0)
    classes = np.repeat(CLASSES, 50)
    order = RANDOM.permutation(len(traces))
    many, once = DistanceAdequacy(traces[order], classes[order]), DistanceAdequacy(TRACES.astype(np.float32), CLASSES)
    assert len(many.arrays()["points"]) == len(TRACES)
    tests = np.concatenate([OTHERS, TRACES]).astype(np.float32)
    labels = np.concatenate([OTHER_CLASSES, CLASSES])
    np.testing.assert_array_equal(many(tests, labels), once(tests, labels))


class TestLikelihood:
    def test_neurons_that_hardly_vary(self):
        traces = np.hstack([TRACES, np.where(CLASSES[:, None] == 1, TRACES[:, :1], 0.001 * TRACES[:, 1:2] ** 2)])
        others = np.hstack([OTHERS, OTHERS[:, :1]])
        everywhere = LikelihoodAdequacy(traces, CLASSES, 0.01)
        apart = LikelihoodAdequacy(traces, CLASSES, 0.01, "own class")
        for label in range(3):
            rows = np.flatnonzero(label == OTHER_CLASSES)
            narrow = [slow.lsa(list(TRACES[label == CLASSES]), x) for x in OTHERS[rows]]
            np.testing.assert_allclose(everywhere(others, OTHER_CLASSES)[rows], narrow, rtol=1e-9)
            if label != 1:
                np.testing.assert_allclose(apart(others, OTHER_CLASSES)[rows], narrow, rtol=1e-9)
        assert not np.allclose(apart(others, OTHER_CLASSES), everywhere(others, OTHER_CLASSES))

    def test_the_neurons_that_vary_most(self):
        chosen = np.sort(np.argsort(-TRACES.var(0))[:2])
        expected = [slow.lsa(list(TRACES[:, chosen]), x[chosen]) for x in OTHERS]
        np.testing.assert_allclose(LikelihoodAdequacy(TRACES, most=2)(OTHERS), expected, rtol=1e-9)

    def test_a_singular_covariance(self):
        expected = LikelihoodAdequacy(TRACES)(OTHERS)
        # The same traces in a plane of a larger space: a rotation moves no distances.
        rotation = np.linalg.qr(RANDOM.normal(size=(7, 7)))[0][:4]
        found = LikelihoodAdequacy(TRACES @ rotation, variance=0)(OTHERS @ rotation)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_densities_below_the_smallest_number(self):
        found = LikelihoodAdequacy(TRACES)(OTHERS + 1000)
        assert np.isfinite(found).all()
        assert (found > 745).all()

    def test_fewer_than_two_of_a_class(self):
        classes = np.where(np.arange(90) == 5, 7, CLASSES)
        assert np.isinf(LikelihoodAdequacy(TRACES, classes)(OTHERS, np.full(40, 7))).all()

    def test_nothing_that_varies(self):
        with pytest.raises(DataError, match="lower variance"):
            LikelihoodAdequacy(np.ones((5, 3)))


class TestDistance:
    def test_what_is_known_of_training_is_used_again(self, monkeypatch):
        measure = DistanceAdequacy(TRACES, CLASSES)
        first = measure(OTHERS, OTHER_CLASSES)
        monkeypatch.setattr(DistanceAdequacy, "_other", lambda *args: pytest.fail("measured twice"))
        np.testing.assert_array_equal(measure(OTHERS, OTHER_CLASSES), first)

    def test_order_of_training_does_not_matter(self):
        order = RANDOM.permutation(90)
        expected = DistanceAdequacy(TRACES, CLASSES)(OTHERS, OTHER_CLASSES)
        found = DistanceAdequacy(TRACES[order], CLASSES[order])(OTHERS, OTHER_CLASSES)
        np.testing.assert_array_equal(found, expected)

    def test_where_classes_meet(self):
        measure = DistanceAdequacy(np.array([[0.0], [0.0], [5.0]]), np.array([0, 1, 0]))
        assert measure(np.array([[1.0], [0.0], [5.0]]), np.array([0, 0, 0])).tolist() == [np.inf, 0.0, 0.0]


class TestMoments:
    @given(st.lists(st.integers(0, 90), max_size=6))
    def test_however_rows_are_cut(self, cuts):
        found = Moments()
        for part in np.split(TRACES + 1e4, sorted(cuts)):
            found.merge(Moments().add(part))
        np.testing.assert_allclose(found.mean, (TRACES + 1e4).mean(0), rtol=1e-12)
        np.testing.assert_allclose(found.covariance(1), np.cov(TRACES.T), rtol=1e-8)

    def test_merging_leaves_the_other_alone(self):
        other = Moments().add(TRACES)
        both = Moments().merge(other).add(OTHERS)
        assert (both.count, other.count) == (130, 90)
        np.testing.assert_allclose(other.covariance(), np.cov(TRACES.T, bias=True), rtol=1e-12)

    def test_whitening(self):
        matrix, volume = _whitening(Moments().add(TRACES), 1, 2.2e-16)
        np.testing.assert_allclose(np.cov((TRACES @ matrix).T), np.eye(4), atol=1e-12)
        assert volume == pytest.approx(np.linalg.slogdet(np.cov(TRACES.T))[1])

    @pytest.mark.parametrize("count", [2, 3, 5, 7])
    def test_a_class_of_equal_traces(self, count):
        one = RANDOM.normal(size=(1, 5))
        measure = MahalanobisAdequacy({0: Moments().add(np.repeat(one, count, 0))})
        assert measure(one, np.zeros(1, int)).tolist() == [0.0]

    @pytest.mark.parametrize("shift", [0, 100])
    def test_directions_of_rounding_in_single_precision(self, shift):
        spread = RANDOM.normal(size=(2, 90, 3)) @ RANDOM.normal(size=(3, 12))  # of twelve directions three
        traces, others = spread + shift * RANDOM.normal(size=12)
        zeros = np.zeros(90, int)
        likely, far = LikelihoodAdequacy(traces)(others), MahalanobisAdequacy({0: Moments().add(traces)})(others, zeros)
        short = traces.astype(np.float32)
        found = MahalanobisAdequacy({0: Moments().add(short)}, precision=1.2e-7)(others.astype(np.float32), zeros)
        np.testing.assert_allclose(LikelihoodAdequacy(short)(others.astype(np.float32)), likely, rtol=1e-3)
        np.testing.assert_allclose(found, far, rtol=1e-3)

    def test_mahalanobis_in_the_directions_that_vary(self):
        flat = np.hstack([TRACES, TRACES[:, :2] @ [[1.0], [2.0]]])
        others = np.hstack([OTHERS, OTHERS[:, :2] @ [[1.0], [2.0]]])
        one, other = (MahalanobisAdequacy({0: Moments().add(traces)}) for traces in (TRACES, flat))
        zeros = np.zeros(40, int)
        np.testing.assert_allclose(other(others, zeros), one(OTHERS, zeros), rtol=1e-9)
