"""The inputs in which a neuron mattered most, against a slow version; and where in them it looks."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.attribution.relevance import relevance
from idc_core.errors import DataError, SettingError, UnsupportedOperationError
from idc_core.importance.examples import find_examples
from idc_core.importance.maximisation import Strongest, locate, shares_of_relevance, strongest_inputs
from idc_core.importance.receptive import Fields, receptive_fields, relevant_boxes
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect, trace


class Small(nn.Module):
    """Two convolutions with pooling between, and scores."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv1, self.pool = nn.Conv2d(1, 4, 3), nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(4, 5, 3, stride=2, padding=1)
        self.scores = nn.Linear(5 * 4 * 4, 3)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        return self.scores(torch.relu(self.conv2(x)).flatten(1))


def pictures(n=23, side=16, seed=0):
    return np.random.default_rng(seed).random((n, 1, side, side), np.float32)


def slow(values, k):
    """Sort every neuron's inputs by hand: (k, neurons) positions."""
    columns = [sorted(range(len(values)), key=lambda i: (-column[i], i))[:k] for column in values.T]
    return np.array(columns).T


def one_by_one(model, inputs, layer, by, target):
    """Values and places of each input alone, from the pass's own definitions."""
    values, places = [], []
    for row, given in enumerate(inputs):
        label = target if isinstance(target, str) else [target[row]]
        batch = next(trace(model, given[None], [layer], None if by == "activation" else SETTINGS, target=label))
        held = (batch.relevance if by == "relevance" else batch.activations)[layer][0].flatten(1).double().numpy()
        total = held.sum(1) if by == "relevance" else held.mean(1)
        values.append(total / np.abs(total).sum() if by == "relevance" else total)
        places.append(held.argmax(1))
    return np.array(values), np.array(places)


SETTINGS = RelevanceSettings()


@pytest.mark.parametrize(
    ("by", "target"), [("relevance", "predicted"), ("relevance", "given"), ("activation", "predicted")]
)
def test_equals_a_slow_version_for_any_batch_size(by, target):
    model, inputs = Small(), pictures()
    target = target if target == "predicted" else np.arange(len(inputs)) % 3
    values, places = one_by_one(model, inputs, "conv2", by, target)
    expected = slow(values, 8)
    for size in (1, 5, None):
        found = strongest_inputs(model, inputs, "conv2", by=by, target=target, batch_size=size)
        assert (found.inputs == expected).all()
        assert found.values == pytest.approx(np.take_along_axis(values, expected, 0), rel=1e-4, abs=1e-6)
        assert (found.places == np.take_along_axis(places, expected, 0)).all()


def test_kept_rows_give_the_same_and_only_what_was_chosen_runs_again(monkeypatch):
    model, inputs = Small(), pictures(40)
    whole = strongest_inputs(model, inputs, "conv1", k=2)
    rows = shares_of_relevance(collect(model, inputs, ["conv1"], SETTINGS).relevance["conv1"])
    found = Strongest.of(rows, 2)
    assert (found.places == -1).all()
    ran = []

    def counted(model, given, *args, **options):
        ran.append(len(given))
        return trace(model, given, *args, **options)

    monkeypatch.setattr("idc_core.importance.maximisation.trace", counted)
    found = locate(model, inputs, "conv1", found)
    assert (found.inputs == whole.inputs).all()
    assert (found.places == whole.places).all()
    assert ran == [len(np.unique(whole.inputs))]


@pytest.mark.parametrize("cut", [1, 7, 20])
def test_halves_merge_to_the_whole_and_equals_come_in_their_order(cut):
    values = np.random.default_rng(cut).integers(0, 3, (23, 6)).astype(float)  # many equal ones
    whole = Strongest.of(values, 8)
    assert (whole.inputs == slow(values, 8)).all()
    merged = Strongest.of(values[:cut], 8).merge(Strongest.of(values[cut:], 8))
    assert (merged.inputs == whole.inputs).all()
    assert (merged.values == whole.values).all()
    assert merged.seen == 23
    assert Strongest.of(values[:3], 8).inputs.shape == (3, 6)


def test_shares_of_an_input_without_relevance_are_nought():
    shares = shares_of_relevance(np.array([[1.0, -3.0], [0.0, 0.0]]))
    assert shares.tolist() == [[0.25, -0.75], [0.0, 0.0]]


def test_refuses_what_it_cannot_rank_by():
    model, inputs = Small(), pictures(2)
    with pytest.raises(SettingError, match="'relevance' or 'activation', not 'size'"):
        strongest_inputs(model, inputs, "conv1", by="size")
    with pytest.raises(SettingError, match="k must be"):
        strongest_inputs(model, inputs, "conv1", k=0)
    inputs[1] = np.nan
    with pytest.raises(DataError, match="Input 1 gives activations"):
        strongest_inputs(model, inputs, "conv1")


def by_hand(chain, extent):
    """Receptive fields along one axis from kernel, stride and padding of each layer in turn."""
    fields = [(i, i + 1) for i in range(extent)]
    for kernel, stride, padding in chain:
        size = (len(fields) + 2 * padding - kernel) // stride + 1
        windows = [(stride * i - padding, stride * i - padding + kernel) for i in range(size)]
        fields = [(fields[max(a, 0)][0], fields[min(b, len(fields)) - 1][1]) for a, b in windows]
    return fields


@pytest.mark.parametrize(
    ("layer", "chain"),
    [("conv1", [(3, 1, 0)]), ("pool", [(3, 1, 0), (2, 2, 0)]), ("conv2", [(3, 1, 0), (2, 2, 0), (3, 2, 1)])],
)
def test_receptive_fields_are_those_of_the_layers_parameters(layer, chain):
    fields = receptive_fields(Small(), layer, pictures(1)[0])
    assert fields.rows.tolist() == fields.columns.tolist() == [list(field) for field in by_hand(chain, 16)]
    assert not fields.whole


def test_fields_of_dense_layers_tokens_and_large_pictures():
    assert receptive_fields(Small(), "scores", pictures(1)[0]).whole

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut, self.scores = nn.Conv2d(1, 6, 4, 4), nn.Linear(6, 2)
            self.mix = nn.Linear(6, 6)

        def forward(self, x):
            tokens = self.cut(x).flatten(2).transpose(1, 2)
            return self.scores(self.mix(torch.cat([tokens.mean(1, keepdim=True), tokens], 1)).mean(1))

    patches = receptive_fields(Tokens(), "mix", pictures(1)[0])
    assert patches.before == 1
    assert patches.size == (4, 4)
    assert receptive_fields(Tokens(), "cut", pictures(1)[0]).boxes(np.array([1])).tolist() == [[0, 4]]
    assert patches.boxes(np.array([0, 1, 2, 16])).tolist() == [[0, 0], [0, 0], [0, 4], [12, 12]]
    large = receptive_fields(
        nn.Sequential(nn.Conv2d(1, 1, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()), "0", pictures(1, 80)[0]
    )
    exact = np.array([(i, i + 3) for i in range(78)])
    assert (large.rows[:, 0] <= exact[:, 0]).all()
    assert (large.rows[:, 1] >= exact[:, 1]).all()
    assert large.size == (6, 6)
    with pytest.raises(UnsupportedOperationError, match="need a picture"):
        receptive_fields(Small(), "conv1", np.zeros(4, np.int64))


def test_boxes_have_one_size_and_stay_inside():
    fields = Fields(np.array([[0, 2], [1, 4], [3, 5]]), np.array([[0, 2], [1, 4], [3, 5]]), 5, 5)
    assert fields.boxes(np.arange(9)).tolist() == [[a, b] for a in (0, 1, 2) for b in (0, 1, 2)]
    picture = np.arange(25.0).reshape(1, 1, 5, 5)
    assert fields.crop(picture, np.array([8]))[0, 0].tolist() == picture[0, 0, 2:, 2:].tolist()
    assert fields.crop(picture, np.array([0]), (5, 5))[0].tolist() == picture[0].tolist()


def test_the_crops_of_a_channel_that_detects_a_patch_hold_the_patch():
    rng = np.random.default_rng(0)
    patch = rng.choice([-1.0, 1.0], (4, 4)).astype(np.float32)
    inputs = 0.2 * rng.standard_normal((200, 1, 20, 20)).astype(np.float32)
    corners = rng.integers(0, 17, (200, 2))
    planted = np.arange(200) % 2 == 0
    for number in np.flatnonzero(planted):
        top, left = corners[number]
        inputs[number, 0, top : top + 4, left : left + 4] += patch
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 6, 4), nn.ReLU(), nn.MaxPool2d(17), nn.Flatten(), nn.Linear(6, 2))
    with torch.no_grad():
        model[0].weight[2] = torch.from_numpy(patch)[None]
        model[4].weight[1, 2] = 1.0
    found, fields = strongest_inputs(model, inputs, "0"), receptive_fields(model, "0", inputs[0])
    held = (fields.boxes(found.places[:, 2]) == corners[found.inputs[:, 2]]).all(1) & planted[found.inputs[:, 2]]
    assert held.mean() >= 0.95


def dense_detectors(patch, corners):
    """A dense layer of which each neuron has the patch among its weights, at its own corner."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(400, len(corners)), nn.ReLU(), nn.Linear(len(corners), 2))
    with torch.no_grad():
        for weights, (top, left) in zip(model[1].weight, corners, strict=True):
            weights.copy_(0.02 * torch.randn(400))
            weights.view(20, 20)[top : top + 4, left : left + 4] += patch
        model[3].weight.copy_(torch.tensor([[-1.0], [1.0]]).expand(2, len(corners)))
    return model, "1"


def dense_behind_detectors(patch, corners):
    """A dense layer behind a convolution that detects the patch anywhere."""
    convolution, hidden, scores = nn.Conv2d(1, 2, 4), nn.Linear(2 * 17 * 17, len(corners)), nn.Linear(len(corners), 2)
    with torch.no_grad():
        convolution.weight[1] = patch
        convolution.bias.fill_(-4)
        hidden.weight.copy_(torch.tensor([[0.0], [1.0]]).expand(2, 17 * 17).flatten().expand_as(hidden.weight))
        scores.weight.copy_(torch.tensor([[-1.0], [1.0]]).expand(2, len(corners)))
    return nn.Sequential(convolution, nn.ReLU(), nn.Flatten(), hidden, nn.ReLU(), scores), "3"


@pytest.mark.parametrize("build", [dense_detectors, dense_behind_detectors])
def test_the_crops_of_dense_neurons_that_detect_a_patch_hold_the_patch(build):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    patch = rng.choice([-1.0, 1.0], (4, 4)).astype(np.float32)
    inputs = 0.2 * rng.standard_normal((120, 1, 20, 20)).astype(np.float32)
    own = [(2, 1), (2, 8), (2, 15), (12, 1), (12, 8), (12, 15)]
    corners = np.array([own[number % 6] for number in range(120)])
    if build is dense_behind_detectors:
        corners = rng.integers(0, 17, (120, 2))
    for picture, (top, left) in zip(inputs[:, 0], corners, strict=True):
        picture[top : top + 4, left : left + 4] += patch
    model, layer = build(torch.from_numpy(patch), own)
    traces = collect(model, inputs, [layer], SETTINGS)
    found = find_examples(model, inputs, traces, layer, np.arange(6), np.arange(120))
    assert (found.values > 0).all()
    first, sizes = found.boxes[..., ::2], found.boxes[..., 1::2] - found.boxes[..., ::2]
    planted = corners[found.positions]
    assert ((first <= planted) & (planted + 4 <= found.boxes[..., 1::2])).all(-1).mean() >= 0.95
    assert (sizes <= 5).all(), "they hold little else"
    assert found.are_parts(inputs.shape)


def test_boxes_hold_their_share_of_relevance_and_are_the_smallest_that_do():
    rng = np.random.default_rng(1)
    maps = rng.standard_normal((5, 3, 9, 14)).astype(np.float32)
    maps[3] = -1  # without positive relevance
    heat = np.maximum(maps, 0).sum(1)

    def most(picture, tall, wide):
        """What the best box holds, by trying them all."""
        places = [(top, left) for top in range(10 - tall) for left in range(15 - wide)]
        held = [picture[top : top + tall, left : left + wide].sum() for top, left in places]
        return max(held) / picture.sum(), places[int(np.argmax(held))]

    for share in (0.05, 0.5, 0.9, 1.0):
        boxes = relevant_boxes(maps, share)
        sides = boxes[0, 1] - boxes[0, 0], boxes[0, 3] - boxes[0, 2]
        told = [one for one in range(5) if one != 3]
        assert np.mean([most(heat[one], *sides)[0] for one in told]) >= share - 1e-6
        assert [tuple(boxes[one, ::2]) for one in told] == [most(heat[one], *sides)[1] for one in told]
        smaller = min(sides[1] - 1, 9), sides[1] - 1
        assert sides[0] == min(sides[1], 9)
        assert not all(smaller) or np.mean([most(heat[one], *smaller)[0] for one in told]) < share
    assert relevant_boxes(-np.ones((2, 1, 4, 4))).tolist() == [[0, 4, 0, 4]] * 2
    series = np.zeros((1, 2, 30))
    series[0, 1, 12:15] = 1
    assert relevant_boxes(series).tolist() == [[0, 1, 12, 15]]


class Words(nn.Module):
    """Pairs of words by a convolution, and a hidden layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.pairs = nn.Embedding(20, 6, padding_idx=0), nn.Conv1d(6, 5, 2)
        self.hidden, self.scores = nn.Linear(5, 4), nn.Linear(4, 2)

    def forward(self, ids):
        pairs = torch.relu(self.pairs(self.embedding(ids).transpose(1, 2)))
        return self.scores(torch.relu(self.hidden(pairs.amax(2))))


def test_examples_of_texts_are_the_words_that_a_place_reads_or_that_count_most():
    model, neurons = Words(), np.array([3, 1])
    ids = np.random.default_rng(2).integers(1, 20, (30, 9))
    ids[:, :3] = 0  # padding comes first
    chosen = np.arange(5, 30)
    traces = collect(model, ids, ["pairs", "hidden"], SETTINGS)
    found = find_examples(model, ids, traces, "pairs", neurons, chosen)
    whole = strongest_inputs(model, ids[chosen], "pairs")
    assert (found.positions == 5 + whole.inputs[:, neurons]).all()
    first = whole.places[:, neurons]
    assert (found.boxes[..., 2] == np.maximum(first - 3, 0)).all()
    assert (found.boxes[..., 3] == np.maximum(first + 2 - 3, 0)).all()
    read = (np.arange(9) >= first[..., None]) & (np.arange(9) < first[..., None] + 2)
    assert (found.marks == read & (ids[found.positions] != 0)).all()
    dense = find_examples(model, ids, traces, "hidden", neurons, chosen, by="activation", k=3)
    given = ids[dense.positions[:, 0]]
    maps = relevance(model, given, ["input"], of=("hidden", 3))["input"]
    assert dense.boxes[:, 0, 2].tolist() == np.argmax(maps[:, 3:], 1).tolist()
    assert (dense.boxes[..., 3] - dense.boxes[..., 2] == 1).all()
    maps[:, :3] = 0
    assert (dense.marks[:, 0] == (maps >= maps.max(1, keepdims=True) / 4) & (maps > 0)).all()
    assert dense.marks[:, 0].sum(1).max() > 1, "more words than one have relevance"
    assert dense.values == pytest.approx(np.sort(traces.activations["hidden"][chosen][:, neurons], 0)[::-1][:3])
    assert not dense.are_parts(ids.shape)
    assert len(dense.shown(0)) == (dense.values[:, 0] > 0).sum()


def test_examples_of_pictures_hold_the_field_of_their_place():
    model, inputs = Small(), pictures(12)
    traces = collect(model, inputs, ["conv1", "scores"], SETTINGS)
    found = find_examples(model, inputs, traces, "conv1", np.array([2]), np.arange(12), k=4)
    places = strongest_inputs(model, inputs, "conv1", k=4).places[:, 2]
    tops, lefts = np.divmod(places, 14)
    assert found.boxes[:, 0].tolist() == [[a, a + 3, b, b + 3] for a, b in zip(tops, lefts, strict=True)]
    assert found.are_parts(inputs.shape)
    assert found.remark == ""
    dense = find_examples(model, inputs, traces, "scores", np.array([0]), np.arange(12), k=4)
    maps = relevance(model, inputs[dense.positions[:, 0]], ["input"], of=("scores", 0))["input"]
    assert dense.boxes[:, 0].tolist() == relevant_boxes(maps).tolist()


def test_pictures_are_whole_where_no_relevance_gets_to_them_and_it_is_said_why(monkeypatch):
    model, inputs = Small(), pictures(6)
    traces = collect(model, inputs, ["scores"], SETTINGS)

    def refuse(*given, **options):
        raise UnsupportedOperationError("It cannot pass through a teapot.")

    monkeypatch.setattr("idc_core.importance.examples.relevance", refuse)
    found = find_examples(model, inputs, traces, "scores", np.array([0]), np.arange(6))
    assert (found.boxes == [0, 16, 0, 16]).all()
    assert found.remark == "It cannot pass through a teapot."
    assert not found.are_parts(inputs.shape)
