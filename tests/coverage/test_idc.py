"""Importance-Driven Coverage against its definition, its options, and what it refuses."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import CRITERIA, IDC, relevance
from idc_core.clustering.kmeans import cluster
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError, ModelError, SettingError
from tests.lrp.networks import Written, numbers, settle

TRAIN, TEST = numbers(120, 6, seed=5), numbers(60, 6, seed=6)
IMAGES = numbers(50, 1, 6, 6, seed=7)


def dense():
    return settle(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)))


def convolutional():
    return settle(
        Written(
            lambda net, x: net.out(F.max_pool2d(F.relu(net.conv(x)), 2).flatten(1)),
            conv=nn.Conv2d(1, 5, 3),
            out=nn.Linear(20, 3),
        )
    )


def fitted(**options):
    return IDC(dense(), "2", **{"m": 3, **options}).fit(TRAIN)


def by_definition(network, layer, m, train, test, drop_zeros=False, decimals=None, **settings):
    """Algorithms 1 and 2 and equations 5 and 6, one after the other; covered, total, neurons and centroids."""
    taken = []
    handle = network.get_submodule(layer).register_forward_hook(lambda m, i, o: taken.append(F.relu(o)))
    with torch.no_grad():
        network(train), network(test)
    handle.remove()
    active = [(values.flatten(2).mean(2) if values.dim() == 4 else values).numpy() for values in taken]
    relevant = relevance(network, train, [layer], **settings)[layer]
    importance = relevant.reshape(*relevant.shape[:2], -1).sum((0, 2))
    neurons = sorted(range(len(importance)), key=lambda neuron: -importance[neuron])[:m]
    centroids = [cluster(active[0][:, neuron], (2, 3, 4), drop_zeros).centroids for neuron in neurons]
    if decimals is not None:
        centroids = [np.round(values, decimals) for values in centroids]
    cells = set()
    for row in active[1]:
        nearest = [np.abs(values - row[neuron]).argmin() for neuron, values in zip(neurons, centroids, strict=True)]
        cells.add(tuple(int(index) for index in nearest))
    return len(cells), int(np.prod([len(values) for values in centroids])), neurons, centroids


class TestDefinition:
    @pytest.mark.parametrize("drop_zeros", [False, True])
    @pytest.mark.parametrize(
        "settings", [{}, {"rule": "z"}, {"rule": "alpha-beta", "alpha": 3.0, "bias": "redistribute"}]
    )
    def test_dense_layer(self, settings, drop_zeros):
        criterion = IDC(dense(), "0", m=4, drop_zeros=drop_zeros, **settings).fit(TRAIN).update(TEST)
        self.check(criterion, by_definition(dense(), "0", 4, TRAIN, TEST, drop_zeros, **settings))

    def test_convolution(self):
        criterion = IDC(convolutional(), "conv", m=3).fit(IMAGES[:30]).update(IMAGES[30:])
        self.check(criterion, by_definition(convolutional(), "conv", 3, IMAGES[:30], IMAGES[30:]))

    def check(self, criterion, expected):
        covered, total, neurons, centroids = expected
        assert criterion.important.tolist() == neurons
        assert criterion.important.dtype == np.int64
        for found, values in zip(criterion.centroids, centroids, strict=True):
            np.testing.assert_allclose(found, values, rtol=1e-9)
        assert (criterion.covered, criterion.total) == (covered, total)
        assert criterion.score == covered / total
        assert isinstance(criterion.covered, int)
        assert isinstance(criterion.total, int)

    @pytest.mark.parametrize("name", list(CLUSTERINGS))
    def test_another_way_to_cluster(self, name):
        criterion = IDC(dense(), "0", m=3, clustering=name).fit(TRAIN)
        clusters = criterion.clusters
        active = F.relu(criterion.model[:1](TRAIN)).detach().numpy()
        for neuron, found in zip(criterion.important, clusters, strict=True):
            np.testing.assert_array_equal(found.centroids, CLUSTERINGS[name].cluster(active[:, neuron]).centroids)
        criterion.update(TEST)
        tests = F.relu(criterion.model[:1](TEST)).detach().numpy()[:, criterion.important]
        cells = {
            tuple(int(np.searchsorted(found.boundaries, value)) for found, value in zip(clusters, row, strict=True))
            for row in tests
        }
        assert (criterion.covered, criterion.total) == (len(cells), np.prod([found.k for found in clusters]))

    def test_another_priority(self):
        criterion = fitted(priority="absolute")
        expected = np.abs(relevance(dense(), TRAIN, ["2"])["2"]).sum(0)
        np.testing.assert_allclose(criterion.importance, expected, rtol=1e-9)
        assert criterion.important.tolist() == np.argsort(-expected)[:3].tolist()

    def test_a_regression(self):
        network = settle(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)))
        criterion = IDC(network, "0", m=2).fit(TRAIN).update(TEST)
        np.testing.assert_allclose(criterion.importance, relevance(network, TRAIN, ["0"])["0"].sum(0), rtol=1e-9)
        assert 0 < criterion.score <= 1

    def test_neurons_that_never_fire(self):
        network = dense()
        network[0].bias.data[:4] = -100
        criterion = IDC(network, "0", m=8).fit(TRAIN).update(TEST)
        pairs = zip(criterion.important.tolist(), criterion.centroids, strict=True)
        sizes = {neuron: len(values) for neuron, values in pairs}
        assert [sizes[neuron] for neuron in range(4)] == [1] * 4
        assert criterion.total == np.prod(list(sizes.values()))
        assert 0 < criterion.score <= 1

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({}, "give the same for all training inputs"),
            ({"drop_zeros": True}, "vary too little"),
            ({"clustering": "dbscan"}, "vary too little"),
        ],
    )
    def test_where_no_neuron_varies_nothing_can_be_covered(self, options, reason):
        network = dense()
        network[0].bias.data[:] = -100
        criterion = IDC(network, "0", m=4, **options)
        with pytest.raises(ModelError, match=rf"covered in layer '0': each of its 4 .* one cell\. They {reason}"):
            criterion.fit(TRAIN)
        with pytest.raises(SettingError, match="call fit"):
            criterion.update(TEST)
        seen = IDC(dense(), "0", m=4, **options)
        seen.model[0].bias.data[0] += 3
        if "clustering" not in options:
            before = seen.fit(TRAIN).update(TEST).covered
            seen.model[0].bias.data[:] = -100
            with pytest.raises(ModelError, match="Nothing can be covered"):
                seen.fit(TRAIN)
            assert seen.covered == before

    def test_inputs_for_which_the_layer_has_other_neurons(self):
        network = settle(Written(lambda net, x: net.a(x).mean(2), a=nn.Identity()))
        criterion = IDC(network, "a", m=2).fit(numbers(50, 4, 2))
        with pytest.raises(DataError, match="'a' has 7 neurons for these inputs and had 4"):
            criterion.update(numbers(5, 7, 2))

    def test_a_cell_count_past_64_bits(self):
        network = settle(nn.Sequential(nn.Linear(6, 70), nn.ReLU(), nn.Linear(70, 3)))
        criterion = IDC(network, "0", m=70, clusters=(2,)).fit(TRAIN).update(TEST)
        assert criterion.total == 2**70
        assert criterion.score == criterion.covered / 2**70 > 0

    def test_it_is_registered(self):
        assert CRITERIA["idc"] is IDC
        assert IDC(dense(), "0").m == 6

    @pytest.mark.parametrize(("layer", "neurons"), [("0", 6), ("2", 5), ("4", 3)])
    def test_by_default_a_small_layer_gives_all_neurons(self, layer, neurons):
        criterion = IDC(dense(), layer).fit(TRAIN)
        assert criterion.m == len(criterion.important) == len(criterion.clusters) == neurons
        asked = IDC(dense(), layer, m=neurons).fit(TRAIN)
        assert criterion.update(TEST).score == asked.update(TEST).score
        assert criterion.important.tolist() == asked.important.tolist()
        assert IDC(dense(), layer).learn(numbers(50, neurons, seed=3).numpy(), np.arange(neurons)).m == neurons

    @pytest.mark.parametrize("clusters", [2, np.int64(2), [2]])
    def test_one_number_of_clusters(self, clusters):
        criterion = fitted(clusters=clusters)
        assert criterion.idc.clusters == (2,)
        assert [len(values) for values in criterion.centroids] == [2] * 3
        assert criterion.merge(fitted(clusters=(2,))).total == 8


class TestOriginal:
    """The option `original`: correctly classified inputs, zeros dropped in dense layers, centroids rounded."""

    def test_dense_layer(self):
        with torch.no_grad():
            predicted = dense()(TRAIN).argmax(1).numpy()
        truth = np.where(np.arange(len(TRAIN)) % 3 == 0, (predicted + 1) % 3, predicted)
        criterion = IDC(dense(), "0", m=4, original=True).fit(TRAIN, truth).update(TEST)
        right = TRAIN[np.arange(len(TRAIN)) % 3 != 0]
        covered, total, neurons, centroids = by_definition(dense(), "0", 4, right, TEST, True, 2)
        assert criterion.important.tolist() == neurons
        np.testing.assert_allclose(criterion.importance, relevance(dense(), right, ["0"])["0"].sum(0), rtol=1e-9)
        for found, values in zip(criterion.centroids, centroids, strict=True):
            np.testing.assert_array_equal(found, values)
        assert (criterion.covered, criterion.total) == (covered, total)

    def test_convolutions_keep_zeros(self):
        network = convolutional()
        network.conv.bias.data -= 3  # many channels are silent on many images
        with torch.no_grad():
            truth = network(IMAGES).argmax(1).numpy()
        criterion = IDC(network, "conv", m=3, original=True).fit(IMAGES, truth)
        kept = by_definition(network, "conv", 3, IMAGES, IMAGES)
        dropped = by_definition(network, "conv", 3, IMAGES, IMAGES, drop_zeros=True)
        assert any(len(a) != len(b) or (a != b).any() for a, b in zip(kept[3], dropped[3], strict=True))
        assert criterion.important.tolist() == kept[2]
        for found, expected in zip(criterion.clusters, kept[3], strict=True):
            np.testing.assert_allclose(found.centroids, expected, rtol=1e-9)

    def test_targets_come_with_a_dataset(self):
        with torch.no_grad():
            truth = dense()(TRAIN).argmax(1).numpy()
        data = Dataset(
            name="rows",
            split="train",
            inputs=TRAIN.numpy(),
            targets=truth,
            class_names=("a", "b", "c"),
            texts=(),
            task="classification",
            vocabulary=(),
            ids=np.arange(len(TRAIN)),
            fingerprint="0",
        )
        one, other = (IDC(dense(), "0", m=2, original=True) for _ in range(2))
        one.fit(data)
        other.fit(TRAIN, truth)
        np.testing.assert_array_equal(one.importance, other.importance)

    def test_centroids_that_rounding_makes_equal(self):
        network = dense()
        network[0].weight.data *= 1e-4
        network[0].bias.data *= 1e-4
        with torch.no_grad():
            truth = network(TRAIN).argmax(1).numpy()
        criterion = IDC(network, "0", m=2, original=True).fit(TRAIN, truth).update(TEST)
        assert all(not centroids.any() for centroids in criterion.centroids)
        assert criterion.total >= 4
        assert criterion.covered == 1

    def test_without_targets(self):
        with pytest.raises(SettingError, match=r"original=True.*targets"):
            IDC(dense(), "0", original=True).fit(TRAIN)

    @pytest.mark.parametrize("count", [0, 119, 121])
    @pytest.mark.parametrize("batched", [False, True])
    def test_targets_of_another_length(self, count, batched):
        inputs = [TRAIN[:50], TRAIN[50:]] if batched else TRAIN
        with pytest.raises(DataError, match=f"{count} targets"):
            IDC(dense(), "0", original=True).fit(inputs, np.zeros(count, int))

    def test_nothing_classified_correctly(self):
        with pytest.raises(DataError, match="correctly"):
            IDC(dense(), "0", original=True).fit(TRAIN, np.full(len(TRAIN), 7))


class TestMistakes:
    @pytest.mark.parametrize(
        "use",
        [
            lambda c: c.update(TEST),
            lambda c: c.score,
            lambda c: c.covered,
            lambda c: c.total,
            lambda c: c.counts,
            lambda c: c.count(np.zeros((2, 3))),
            lambda c: c.merge(fitted()),
            lambda c: fitted().merge(c),
        ],
    )
    def test_use_before_fit(self, use):
        with pytest.raises(SettingError, match="call fit"):
            use(IDC(dense(), "2", m=3))

    @pytest.mark.parametrize("m", [0, -1, 6, 2.0, True, "3"])
    def test_m_outside_the_layer(self, m):
        seen = []
        network = dense()
        network.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
        with pytest.raises(SettingError, match=r"m must be a whole number from 1 to (5, the layer's|100000)"):
            IDC(network, "2", m=m, batch_size=10).fit(TRAIN)
        assert [count for count in seen if count != 1] == ([7, 10] if m == 6 else [])  # 7 to see whose rows are whose

    @pytest.mark.parametrize(
        "options",
        [
            {"clusters": ()},
            {"clusters": (0,)},
            {"clusters": 1},
            {"clusters": 2.0},
            {"clusters": True},
            {"clusters": None},
            {"clusters": "23"},
            {"clusters": (2.5,)},
            {"priority": "best"},
            {"rule": "lrp"},
            {"epsilon": -1},
            {"alpha": 0},
            {"gamma": -0.1},
            {"bias": "drop"},
            {"batch_size": 0},
            {"clustering": "best"},
            {"clustering": "dbscan", "clusters": (3,)},
        ],
    )
    def test_settings(self, options):
        with pytest.raises(SettingError):
            fitted(**options)

    def test_an_unknown_layer(self):
        with pytest.raises(ModelError, match="fc9"):
            IDC(dense(), "fc9").fit(TRAIN)

    def test_no_inputs(self):
        with pytest.raises(DataError):
            IDC(dense(), "0").fit(TRAIN[:0])
        with pytest.raises(DataError):
            fitted().update([])

    def test_relevance_that_is_not_finite(self):
        network = dense()
        network[4].weight.data[:] = float("nan")
        with pytest.raises(SettingError, match=r"Input 0 gives relevance of layer '2' that is not finite") as caught:
            IDC(network, "2", m=2).fit(TRAIN)
        assert "epsilon" not in str(caught.value)  # it was used
        with pytest.raises(SettingError, match="or use the epsilon rule"):
            IDC(network, "2", m=2, rule="z").fit(TRAIN)

    @pytest.mark.parametrize(
        "other",
        [
            lambda: fitted(m=2),
            lambda: fitted(clusters=(2,)),
            lambda: fitted(clustering="gaussian-mixture"),
            lambda: IDC(dense(), "0", m=3).fit(TRAIN),
            lambda: IDC(dense(), "2", m=3).fit(TRAIN[:60]),
        ],
    )
    def test_merging_different_fits(self, other):
        criterion = fitted().update(TEST)
        before = criterion.covered
        with pytest.raises(SettingError, match="merged"):
            criterion.merge(other().update(TEST))
        assert criterion.covered == before

    def test_stopped_halfway(self):
        criterion = fitted().update(TEST[:20])
        before = criterion.covered, criterion.important.tolist()
        with pytest.raises(CancelledError):
            criterion.fit(TEST, on_progress=lambda *news: False)
        assert (criterion.covered, criterion.important.tolist()) == before


class TestFit:
    def test_forgets_what_was_counted(self):
        criterion = fitted().update(TEST)
        assert criterion.covered > 0
        assert criterion.fit(TRAIN).covered == 0
        assert criterion.score == 0

    def test_does_not_depend_on_batches(self):
        whole = fitted()
        for inputs, size in ((TRAIN, 7), ([TRAIN[:1], TRAIN[1:100], TRAIN[100:]], None), (TRAIN.numpy(), 120)):
            parts = IDC(dense(), "2", m=3, batch_size=size).fit(inputs)
            np.testing.assert_allclose(parts.importance, whole.importance, rtol=1e-9)
            assert parts.important.tolist() == whole.important.tolist()
            for one, other in zip(parts.centroids, whole.centroids, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9)

    def test_tells_its_progress(self):
        told = []
        IDC(dense(), "2", m=2, batch_size=60).fit(TRAIN, on_progress=lambda *news: told.append(news))
        assert told[:2] == [(60, 120, "inputs through the network"), (120, 120, "inputs through the network")]
        assert [news[:2] for news in told[2:]] == [(0, 2), (1, 2)]
