"""Distinct faults: clusters by hand, and groups that were relabelled in training."""

import dataclasses

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.errors import SettingError
from idc_core.models import MODELS, load_model
from idc_core.models.training import fit, reproducible
from idc_core.tracing.trace import collect
from idc_core.worth.faults import cluster_faults, distinct_faults


def groups():
    """Tests of class 0: two tight groups taken for 1, one for 2, two stray ones, and many right ones between."""
    random = np.random.default_rng(0)
    places = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0]])
    tight = [place + random.normal(0, 0.3, (8, 3)) for place in places]
    features = np.concatenate([*tight, [[30, 30, 30], [-30, 4, 2]], random.normal(0, 9, (40, 3))])
    predicted = np.repeat([1, 1, 2, 1, 3, 0], [8, 8, 8, 1, 1, 40])
    return features, np.zeros(len(features), np.int64), predicted


def linked(points, least):
    """Groups of points that stay together when each is linked to its closest ones: of two far groups, these."""
    group = list(range(len(points)))
    for row, point in enumerate(points):
        for other in sorted(range(len(points)), key=lambda near: np.linalg.norm(points[near] - point))[:least]:
            first, second = group[row], group[other]
            group = [first if one == second else one for one in group]
    return [{row for row in range(len(points)) if group[row] == one} for one in sorted(set(group))]


def test_faults_are_groups_of_like_tests_within_a_pair_of_classes():
    features, targets, predicted = groups()
    found = cluster_faults(features, targets, predicted)
    pair = np.flatnonzero(predicted == 1)
    slow = [{int(pair[row]) for row in one} for one in linked(features[pair][:16], 5)]
    faults = [set(np.flatnonzero(found.fault == number).tolist()) for number in range(3)]
    assert sorted(map(sorted, faults)) == sorted(map(sorted, [*slow, set(range(16, 24))]))
    assert (found.fault[24:] == -1).all()
    assert found.alone == 2
    assert found.wrong.sum() == 26
    assert found.yardstick().targets == 3
    assert found.yardstick().share(np.array([0, 1, 20, 24])) == 2 / 3


def test_the_order_of_tests_and_the_scale_of_features_change_nothing():
    features, targets, predicted = groups()
    before = cluster_faults(features, targets, predicted).fault
    order = np.random.default_rng(1).permutation(len(targets))
    after = np.empty_like(before)
    after[order] = cluster_faults(features[order] * [1, 1e3, 1e-3] + 5, targets[order], predicted[order]).fault
    assert ((before[:, None] == before) & (before >= 0)).tolist() == ((after[:, None] == after) & (after >= 0)).tolist()


def test_few_mistakes_and_none_are_no_faults():
    features, targets, predicted = groups()
    assert cluster_faults(features, targets, predicted, least=9).yardstick().targets == 1  # 17 taken for 1
    none = cluster_faults(features, targets, targets)
    assert (none.alone, none.yardstick().targets) == (0, 0)
    with pytest.raises(SettingError, match="least"):
        cluster_faults(features, targets, predicted, least=1)


def test_the_network_under_test_does_not_tell_its_own_faults_apart():
    model, pool = load_model("lenet1-digits"), load_dataset("digits", "test", 20)
    with pytest.raises(SettingError, match="not under test"):
        distinct_faults(model, model, pool, "fc1")


@pytest.mark.slow
@pytest.mark.parametrize(("planted", "wrong", "groups"), [(7, 2, 1), (1, 6, 1), (1, 6, 2)])
def test_a_group_relabelled_in_training_is_one_fault(planted, wrong, groups):
    """Groups are the two most unlike quarters of a class, as another network sees them."""
    from sklearn.cluster import KMeans

    train, other, entry = load_dataset("digits", "train"), load_model("lenet5-digits"), MODELS["lenet1-digits"]
    seen = collect(other, train.inputs, ["fc2"]).activations["fc2"]
    own = np.flatnonzero(train.targets == planted)
    quarters = KMeans(4, n_init=10, random_state=0).fit(seen[own])
    apart = np.linalg.norm(quarters.cluster_centers_[:, None] - quarters.cluster_centers_, axis=2)
    chosen = [own[quarters.labels_ == one] for one in np.unravel_index(apart.argmax(), apart.shape)[:groups]]
    targets = train.targets.copy()
    targets[np.concatenate(chosen)] = wrong
    with reproducible(1):
        network = entry.build()
        fit(network, dataclasses.replace(train, targets=targets), entry.recipe, seed=1)
    found = distinct_faults(network.eval(), other, train, "fc2")
    main = []
    for tests in chosen:
        shown = found.fault[tests][found.wrong[tests]]
        assert len(shown) >= 0.8 * len(tests)
        main.append(np.bincount(shown[shown >= 0]).argmax())
        assert (shown == main[-1]).mean() >= 0.8
        assert np.isin(np.flatnonzero(found.fault == main[-1]), tests).mean() >= 0.9
    assert len(set(main)) == groups
