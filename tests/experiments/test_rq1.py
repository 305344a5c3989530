"""RQ1: a planted network with known distances, slow references, texts, seeds, and the network left as it was found."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from idc_core.datasets import load_dataset
from idc_core.datasets.dataset import Dataset
from idc_core.errors import CancelledError, DataError, ModelError, SettingError
from idc_core.evidence.finding import Verdict
from idc_core.experiments.random_neurons import seeds_of_draws, shuffled_others
from idc_core.experiments.rq1 import Changes, _flip_pixels, _replace_words, compare_neurons, measure, rq1
from idc_core.models import MODELS, load_model
from tests.lrp.networks import Written, settle
from tests.lrp.test_model_untouched import assert_free, build, state


def dataset(inputs, vocabulary=()):
    count = len(inputs)
    return Dataset(
        "planted",
        "test",
        np.asarray(inputs),
        np.zeros(count, np.int64),
        ("a", "b"),
        "classification",
        vocabulary,
        (),
        np.arange(count),
        "0" * 16,
    )


def planted():
    """Four neurons, each of which reads one pixel of 4x4; only the first one's pixel decides.

    Neuron 0 is twice pixel 5, neuron 1 pixel 6, neuron 2 half of pixel 7, neuron 3 always 0.
    """
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for neuron, (pixel, weight) in enumerate([(5, 2.0), (6, 1.0), (7, 0.5)]):
            network[1].weight[neuron, pixel] = weight
        network[3].weight[0, 0] = 1.0
    images = np.full((3, 1, 4, 4), 0.6, np.float32)
    images[:, 0, 1, 1] = [0.9, 0.3, 0.5]
    return network, dataset(images)


def test_the_deciding_pixel_moves_its_neuron_and_no_other():
    network, test = planted()
    found = rq1(network, test, "1", [0], seeds=4)
    # 0.9 becomes 0; 0.3 and 0.5 become 1; the neuron is twice the pixel.
    assert found.distance == pytest.approx([1.8, 1.4, 1.0])
    assert found.changed.tolist() == [1, 1, 1]
    assert len(found.seeds) == len(set(found.random_neurons.flatten().tolist())), "each draw is another neuron"
    assert found.random_distance.tolist() == [[0.0] * 3] * len(found.seeds)
    assert set(found.random_neurons.flatten()) <= {1, 2, 3}
    deviation = np.std([1.8, 0.6, 1.0])
    assert found.scaled == pytest.approx(np.array([1.8, 1.4, 1.0]) / deviation)
    assert found.constant == 3
    told = found.summary()
    assert (told.ratio, told.share_more, told.seeds_won) == (float("inf"), 1.0, len(found.seeds))
    assert told.important.mean == pytest.approx(1.4)
    assert told.important.median == pytest.approx(1.4)
    assert told.important.deviation == pytest.approx(np.std([1.8, 1.4, 1.0]))
    assert told.effect == pytest.approx(1.4 / np.std([1.8, 1.4, 1.0]))
    assert told.random.high == 0.0


def test_an_unimportant_neuron_loses_against_the_one_that_decides():
    network, test = planted()
    found = compare_neurons(measure(network, test, "1"), [1, 2], seeds=2)
    assert found.distance.tolist() == [0.0] * 3
    assert np.sort(found.random_neurons).tolist() == [[0, 3]], "half of the layer has one draw of others"
    assert found.seeds == (0,)
    assert found.finding("Distance", "by as many random ones").verdict is Verdict.TOO_FEW
    told = found.summary()
    assert (told.ratio, told.share_more, told.seeds_won) == (0.0, 0.0, 0)
    assert told.effect < -1


def test_nothing_moves_where_nothing_is_relevant():
    network, test = planted()
    with torch.no_grad():
        network[3].weight.zero_()
    found = rq1(network, test, "1", [0])
    assert found.changed.tolist() == [0, 0, 0]
    assert found.summary().effect == 0.0
    assert found.summary().seeds_won == 0
    assert found.distance.tolist() == [0.0] * 3


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.01, 0.1, 0.29, 0.5, 1.0]))
def test_flipping_agrees_with_a_slow_reference(seed, colours, share):
    rng = np.random.default_rng(seed)
    images = rng.random((3, colours, 4, 5)).round(1)
    # Few different values, some of them zero, so that there are ties.
    relevance = rng.integers(-2, 3, (3, colours, 4, 5)).astype(float)
    found, counts = _flip_pixels(torch.tensor(images), torch.tensor(relevance), share)
    for image, weights, flipped, count in zip(images, relevance, found.numpy(), counts, strict=True):
        places = [(-abs(weights[:, y, x].sum()), y, x) for y in range(4) for x in range(5)]
        chosen = [(y, x) for weight, y, x in sorted(places)[: max(1, round(share * 20 - 0.49))] if weight < 0]
        expected = image.copy()
        for y, x in chosen:
            for colour in range(colours):
                expected[colour, y, x] = 0 if image[colour, y, x] > 0.5 else 1
        assert np.array_equal(flipped, expected)
        assert int(count) == len(chosen)


@pytest.mark.parametrize(
    ("size", "share", "pixels"),
    [((28, 28), 0.02, 15), ((32, 32), 0.02, 20), ((100, 100), 0.02, 200), ((4, 4), 0.02, 1), ((10, 10), 0.29, 29)],
)
def test_shares_are_rounded_down_to_whole_pixels(size, share, pixels):
    """The last product is a little below 29 in floating point."""
    images = torch.zeros(1, 3, *size)
    found, counts = _flip_pixels(images, torch.rand(1, 3, *size) + 0.1, share)
    assert int(counts) == pixels
    assert int(found.sum()) == 3 * pixels


def test_words_are_replaced_by_the_unknown_one():
    tokens = torch.tensor([[5, 6, 7, 1, 0, 0], [1, 1, 0, 0, 0, 0], [9, 8, 7, 6, 5, 4]])
    relevance = torch.tensor([[0.1, -0.5, 0.2, 9.0, 9.0, 9.0], [1.0, 1, 1, 1, 1, 1], [0.0, 3, 1, 2, 0, 0]])
    found, counts = _replace_words(tokens, relevance, 0.5)
    assert found.tolist() == [[5, 1, 7, 1, 0, 0], [1, 1, 0, 0, 0, 0], [9, 1, 1, 1, 5, 4]]
    assert counts.tolist() == [1, 0, 3]


def test_texts_lose_the_word_that_decides():
    network = Written(
        lambda net, x: net.out(torch.relu(net.hidden(net.words(x))).sum(1)),
        words=nn.Embedding(8, 2, padding_idx=0),
        hidden=nn.Linear(2, 2),
        out=nn.Linear(2, 2),
    )
    network = settle(network)
    with torch.no_grad():
        network.words.weight.copy_(torch.tensor([[0.0, 0], [0, 0], [3, 0], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]))
        network.hidden.weight.copy_(torch.eye(2))
        network.hidden.bias.zero_()
        network.out.weight.copy_(torch.tensor([[1.0, 0], [0, 0.1]]))
        network.out.bias.zero_()
    test = dataset(np.array([[2, 3, 4, 0], [3, 2, 5, 6]]), ("", "?", *"abcdef"))
    found = rq1(network, test, "hidden", [0], seeds=1)
    # The word of 3 vanishes from one of three words and one of four; a neuron's activation is their mean.
    assert found.distance == pytest.approx([1.0, 0.75])
    assert found.random_distance.tolist() == [[0.0, 0.0]]


def changes(seed=0, n=12, neurons=7):
    rng = np.random.default_rng(seed)
    before, after = rng.random((2, n, neurons)).astype(np.float32)
    before[:, [2, 5]] = 0.25
    return Changes("fc", before, after, np.ones(n, np.int64), {})


def test_distances_agree_with_a_slow_reference():
    found = changes()
    result = compare_neurons(found, [1, 2, 4], seeds=(3, 9))
    assert result.constant == 2
    for neurons, plain, scaled in [
        (result.important, result.distance, result.scaled),
        *zip(result.random_neurons, result.random_distance, result.random_scaled, strict=True),
    ]:
        for i in range(len(plain)):
            moves = [float(found.after[i, j]) - float(found.before[i, j]) for j in neurons]
            alive = [j for j in neurons if j not in (2, 5)]
            units = [
                (float(found.after[i, j]) - float(found.before[i, j])) / np.std(found.before[:, j].astype(float))
                for j in alive
            ]
            assert plain[i] == pytest.approx(sum(move**2 for move in moves) ** 0.5)
            assert scaled[i] == pytest.approx((sum(unit**2 for unit in units) * 3 / len(alive)) ** 0.5)
    told = result.summary()
    pairs = [result.distance[i] > row[i] for row in result.random_distance for i in range(12)]
    assert told.share_more == pytest.approx(np.mean(pairs))
    difference = result.distance - result.random_distance.mean(0)
    assert told.effect == pytest.approx(difference.mean() / difference.std())
    assert told.seeds_won == sum(result.distance.mean() > row.mean() for row in result.random_distance)


def test_seeds_give_the_same_draws_every_time_and_different_ones_differ():
    found = changes(neurons=40)
    first, again = compare_neurons(found, [0, 1, 2], 5), compare_neurons(found, [2, 0, 1], range(5))
    assert first.random_neurons.tolist() == again.random_neurons.tolist()
    assert len({tuple(sorted(row)) for row in first.random_neurons}) > 1
    assert first.seeds == (0, 1, 2, 3, 4)
    assert not set(first.random_neurons.flatten()) & {0, 1, 2}


def test_seeds_of_draws_are_of_different_sets():
    seeds = seeds_of_draws([4], 84, 39)
    assert len(seeds) == 39
    assert len({shuffled_others(np.array([4]), 84, seed)[0] for seed in seeds}) == 39
    assert seeds_of_draws([0, 1], 4, 39) == (0,)
    assert len(seeds_of_draws([0, 1], 5, 39)) == 3


def test_the_distance_is_compared_in_deviations():
    found = compare_neurons(changes(neurons=40), [0, 1, 2], 39)
    said = found.finding("Distance", "by as many random ones")
    assert said.number == pytest.approx(found.scaled.mean())
    assert said.control.value == pytest.approx(found.random_scaled.mean())


def test_any_batch_size_gives_the_same():
    model, test = load_model("lenet5-digits"), load_dataset("digits", "test", 40)
    results = [rq1(model, test, "conv2", [0, 3, 5], batch_size=size) for size in (1, 7, None)]
    for other in results[1:]:
        assert np.allclose(other.distance, results[0].distance, rtol=1e-4, atol=1e-6)
        assert np.allclose(other.random_scaled, results[0].random_scaled, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("deep")])
def test_works_for_the_networks_of_the_registry(name, request):
    if not name.endswith("-digits"):
        request.getfixturevalue("data_folder")
    model = load_model(name)
    test = load_dataset(model.card.dataset, "test", 12)
    found = rq1(model, test, model.card.default_layer, [0, 1])
    assert found.distance.shape == (12,)
    assert np.isfinite(found.random_scaled).all()
    assert found.changed.max() >= 1
    assert found.distance.max() + found.random_distance.max() > 0


def test_progress_is_told_and_can_stop_and_leaves_the_network_as_it_was():
    network = build()
    before = state(network)
    test = dataset(np.random.default_rng(0).random((40, 2, 7, 7)))
    heard = []
    rq1(network, test, "0", [0], batch_size=16, on_progress=lambda *told: heard.append(told))
    assert [(done, total) for done, total, _ in heard] == [(16, 40), (32, 40), (40, 40)]
    assert state(network) == before
    with pytest.raises(CancelledError, match="after 16 of 40"):
        rq1(network, test, "0", [0], batch_size=16, on_progress=lambda *told: False)
    assert state(network) == before
    assert_free(network)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"important": [0, 1, 2]}, SettingError, "has 4 neurons, so that there are no 3 .* m of at most 2"),
        ({"important": [4]}, SettingError, r"outside 0\.\.3"),
        ({"important": [1, 1]}, SettingError, "twice"),
        ({"seeds": []}, SettingError, "seeds must be"),
        ({"share": 0}, SettingError, "share must be a number above 0"),
        ({"share": 1.5}, SettingError, "at most 1, not 1.5"),
        ({"share": True}, SettingError, "share must be"),
        ({"rule": "guess"}, SettingError, "guess"),
        ({"layer": "fc7"}, ModelError, "no layer 'fc7'"),
        ({"test": dataset(np.full((2, 1, 4, 4), 7.0, np.float32))}, DataError, "pixels in 0..1; .* from 7 to 7"),
        ({"test": dataset(np.full((2, 1, 4, 4), np.nan, np.float32))}, DataError, "pixels in 0..1"),
        ({"test": dataset(np.zeros((0, 1, 4, 4), np.float32))}, DataError, "no inputs"),
    ],
)
def test_mistakes_are_explained(change, error, sentence):
    network, test = planted()
    with pytest.raises(error, match=sentence):
        rq1(network, **{"test": test, "layer": "1", "important": [0]} | change)
