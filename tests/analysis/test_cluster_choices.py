"""Other choices of clusters against the criterion itself, and against cells counted by hand."""

import numpy as np
import pytest
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score

from idc_core.analysis.cluster_choices import _BY_HAND, try_choices
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.errors import CancelledError, SettingError


def activations(n, seed, m=3):
    random = np.random.default_rng(seed)
    return np.maximum(random.normal(size=(n, m)) + random.integers(0, 3, (n, m)), 0).astype(np.float32)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", list(CLUSTERINGS))
@pytest.mark.parametrize("drop", [False, True])
def test_equals_clustering_for_each_choice_alone(name, drop):
    train, test = activations(400, 0), activations(60, 1)
    tried = try_choices(train, test, name, drop)
    found = [one for one in tried if one.index == "silhouette"]
    entry = CLUSTERINGS[name]
    assert [one.k for one in found] == ([None, *_BY_HAND] if entry.takes_k else [None])
    for one in found:
        clusters = [entry.cluster(column, (2, 3, 4) if one.k is None else (one.k,), drop) for column in train.T]
        cells = {
            tuple(int(np.searchsorted(c.boundaries, v)) for c, v in zip(clusters, row, strict=True)) for row in test
        }
        assert one.sizes == tuple(c.k for c in clusters)
        assert (one.covered, one.total) == (len(cells), np.prod(one.sizes))
        assert one.score == len(cells) / np.prod(one.sizes)
        scores = [c.silhouettes[c.k] for c in clusters if c.k in c.silhouettes]
        assert one.silhouette == pytest.approx(np.mean(scores) if scores else np.nan, nan_ok=True)
        assert (one.clustering, one.drop_zeros) == (name, drop)


@pytest.mark.parametrize(
    ("index", "score", "best"),
    [("Calinski-Harabasz", calinski_harabasz_score, max), ("Davies-Bouldin", davies_bouldin_score, min)],
)
def test_other_indices_choose_as_they_do_over_scikit_learns_scores(index, score, best):
    train, test = activations(300, 3), activations(40, 4)
    tried = {(one.k, one.index): one for one in try_choices(train, test, numbers=(2, 3, 4))}
    scores = {k: [score(v[:, None], labels(v, k)) for v in train.T] for k in (2, 3, 4)}
    sizes = tuple(best(scores, key=lambda k: scores[k][neuron]) for neuron in range(train.shape[1]))
    assert tried[None, index].sizes == sizes
    field = index.lower().replace("-", "_")
    for k in (2, 3, 4):
        assert getattr(tried[k, "silhouette"], field) == pytest.approx(np.mean(scores[k]))


def labels(values, k):
    return np.searchsorted(CLUSTERINGS["k-means"].cluster(values, (k,)).boundaries, values)


def test_a_planted_number_of_clusters_is_found_by_every_index():
    random = np.random.default_rng(0)
    train = np.concatenate([random.normal(centre, 0.1, (100, 1)) for centre in (0, 5, 10)])
    assert {one.sizes for one in try_choices(train, train, numbers=()) if one.k is None} == {(3,)}


def test_worked_by_hand():
    train = np.array([[0.0, 5.0], [0.0, 5.0], [9.0, 5.0], [9.0, 5.0]])
    one = try_choices(train, np.array([[1.0, 5.0], [2.0, 7.0]]), numbers=(2,))[1]
    assert (one.sizes, one.total, one.covered, one.score, one.silhouette) == ((2, 1), 2, 1, 0.5, 1.0)


def test_many_cells_are_counted_exactly():
    train = activations(300, 0, m=30)
    last = next(one for one in try_choices(train, train[:50], numbers=(8,)) if one.k == 8)
    assert last.total == 8**30 > 2**63
    assert last.covered <= 50


def test_stops_and_refuses():
    with pytest.raises(CancelledError):
        try_choices(activations(20, 0), activations(5, 1), on_progress=lambda *_: False)
    with pytest.raises(SettingError, match="same neurons"):
        try_choices(activations(20, 0), activations(5, 1, m=2))
