"""Retraining: the same as a plain training loop, fair, repeatable, and nothing finished is lost by a stop."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn

from idc_core.base.statistics import holm, holm_levels
from idc_core.datasets import load_dataset
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.evidence.paired import interval, p_values
from idc_core.experiments.retraining import _with_fresh_weights, retrain, usual_recipe
from idc_core.experiments.retraining_results import RetrainedNetwork
from idc_core.models import MODELS, load_model
from idc_core.models.entry import Recipe
from idc_core.models.recipes import _one_cycle
from idc_core.models.training import measure
from idc_core.models.weights import fingerprint
from idc_core.store.cache import ArrayFolder

RECIPE = Recipe("adamw", 0.01, batch=16, epochs=99)


@pytest.fixture(scope="module")
def train():
    return load_dataset("digits", "train", 100)


@pytest.fixture(scope="module")
def tests():
    data = load_dataset("digits", "test", 60)
    return {"clean": (data.inputs, data.targets), "dark": (data.inputs * np.float32(0.2), data.targets)}


@pytest.fixture(scope="module")
def more():
    data = load_dataset("digits", "train")
    return data.inputs[200:230], data.targets[200:230]


@pytest.fixture
def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 10)).eval()


def plainly(net, inputs, targets, steps, epochs, seed):
    """A training loop written out: the reference."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    network, generator = copy.deepcopy(net).train(), torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    optimizer, order, states = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.0), [], []
    for step in range(steps * epochs):
        if len(order) < RECIPE.batch:
            order = torch.randperm(len(inputs), generator=generator).tolist()
        batch, order = order[: RECIPE.batch], order[RECIPE.batch :]
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * _one_cycle(step, steps * epochs)
        optimizer.zero_grad()
        F.cross_entropy(network(torch.tensor(inputs[batch])), torch.tensor(targets[batch])).backward()
        optimizer.step()
        if (step + 1) % steps == 0:
            states.append(copy.deepcopy(network).eval())
    torch.set_num_threads(threads)
    return states


def accuracy(network, test):
    with torch.inference_mode():
        return float((network(torch.tensor(test[0])).argmax(1).numpy() == test[1]).mean())


def test_equals_a_plain_training_loop(net, train, tests, more):
    found = retrain(net, train, {"none": None, "more": more}, tests, seeds=(4,), epochs=3, recipe=RECIPE)
    assert (found.steps, found.values.shape) == (6, (2, 1, 4, 2))
    both = (np.concatenate([train.inputs, more[0]]), np.concatenate([train.targets, more[1]]))
    for place, (name, data) in enumerate({"none": (train.inputs, train.targets), "more": both}.items()):
        states = plainly(net, *data, steps=6, epochs=3, seed=4)
        expected = [[accuracy(one, test) for test in tests.values()] for one in (net, *states)]
        assert found.values[place, 0].tolist() == expected
        weights = found.networks[name, 4].weights
        assert all(np.array_equal(weights[key], value.numpy()) for key, value in states[-1].state_dict().items())
    assert [found.added(name) for name in found.additions] == [[0], [30]]


def test_what_is_nothing_is_the_baseline_and_all_get_the_same_steps(net, train, tests, more):
    empty = (more[0][:0], more[1][:0])
    steps = {"none": 0, "empty": 0, "more": 0}

    def count(done, total, label):
        steps[label.split()[2].rstrip(",")] += "epoch" in label

    additions = {"none": None, "empty": empty, "more": lambda seed: more}
    found = retrain(net, train, additions, tests, seeds=1, epochs=2, recipe=RECIPE, on_progress=count)
    assert steps == {"none": 12, "empty": 12, "more": 12}
    assert np.array_equal(found.values[0], found.values[1])
    assert not np.array_equal(found.values[0], found.values[2])


def test_the_seed_decides_and_the_network_stays_as_it_was(net, train, tests):
    before = fingerprint(net)
    first, again = (retrain(net, train, {"none": None}, tests, seeds=2, epochs=1, recipe=RECIPE) for _ in range(2))
    assert np.array_equal(first.values, again.values)
    one, other = (first.networks["none", seed].weights["1.weight"] for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert fingerprint(net) == before
    assert not net.training
    assert all(parameter.grad is None for parameter in net.parameters())


def test_additions_may_depend_on_the_seed_and_tests_on_the_network(net, train, tests, more):
    asked, seen = [], []

    def made(seed):
        asked.append(seed)
        return more[0][: seed + 1], more[1][: seed + 1]

    def anew_test(network):
        assert not network.training
        seen.append(fingerprint(network))
        return tests["clean"]

    found = retrain(net, train, {"made": made}, {**tests, "anew": anew_test}, seeds=(1, 5), epochs=2, recipe=RECIPE)
    assert (asked, found.added("made")) == ([1, 5], [2, 6])
    assert len(set(seen)) == 5  # two networks after two epochs, and the one both began with
    assert np.array_equal(found.values[..., 0], found.values[..., 2])
    unit = found.networks["made", 5]
    assert np.array_equal(unit.shown, more[0][:6])
    assert np.array_equal(unit.shown_targets, more[1][:6])


@pytest.mark.parametrize("kind", ["dict", "folder"])
def test_a_stop_loses_nothing_that_was_finished(net, train, tests, more, tmp_path, kind):
    store = {} if kind == "dict" else ArrayFolder(tmp_path / "run")
    additions = {"none": None, "more": more}
    settings = {"seeds": 2, "epochs": 2, "recipe": RECIPE}
    whole = retrain(net, train, additions, tests, **settings)
    stopped = retrain(
        net, train, additions, tests, **settings, store=store, on_progress=lambda done, total, label: done < 30
    )
    assert list(stopped.networks) == [("none", 0), ("more", 0)]
    assert not stopped.complete
    assert sorted(store) == ["more-0", "none-0"]
    assert np.isnan(stopped.values[:, 1]).all()
    labels = []
    rest = retrain(
        net,
        train,
        additions,
        tests,
        **settings,
        store=store,
        on_progress=lambda done, total, label: labels.append(label),
    )
    assert not any("seed 0" in label for label in labels)
    assert rest.complete
    assert np.array_equal(rest.values, whole.values)
    key = "1.weight"
    assert np.array_equal(rest.networks["more", 0].weights[key], whole.networks["more", 0].weights[key])


@pytest.mark.parametrize("changed", ["network", "data", "addition", "recipe", "tests"])
def test_a_store_of_another_experiment_is_refused(net, train, tests, more, changed):
    store = {}
    given = {"model": net, "train": train, "additions": {"more": more}, "tests": tests, "recipe": RECIPE}
    retrain(**given, seeds=1, epochs=1, store=store)
    other = copy.deepcopy(net)
    with torch.no_grad():
        other[1].bias[0] += 1
    values = {
        "network": {"model": other},
        "data": {"train": replace(train, inputs=train.inputs * np.float32(0.5))},
        "addition": {"additions": {"more": (more[0][:9], more[1][:9])}},
        "recipe": {"recipe": replace(RECIPE, learning_rate=0.02)},
        "tests": {"tests": {"clean": tests["dark"], "dark": tests["dark"]}},
    }
    with pytest.raises(DataError, match="of another experiment"):
        retrain(**given | values[changed], seeds=1, epochs=1, store=store)


def test_a_damaged_file_counts_as_absent(tmp_path):
    store = ArrayFolder(tmp_path)
    unit = RetrainedNetwork(np.zeros((2, 1)), 3, np.ones((3, 4)), np.arange(3), {"a.b": np.eye(2, dtype=np.float32)})
    store["none-0"] = unit.arrays()
    back = RetrainedNetwork.of(store["none-0"])
    assert (back.added, list(back.weights)) == (3, ["a.b"])
    assert np.array_equal(back.weights["a.b"], np.eye(2))
    assert "none-0" in store
    file = tmp_path / "none-0.npz"
    file.write_bytes(file.read_bytes()[:100])
    assert "none-0" not in store
    np.savez(file, values=np.array([object()]), allow_pickle=True)
    assert "none-0" not in store, "nothing is unpickled"
    del store["none-0"]
    assert list(store) == []


def test_from_scratch_begins_anew_with_every_seed(net, train, tests):
    found = retrain(net, train, {"none": None}, tests, seeds=2, epochs=1, start="scratch", recipe=RECIPE)
    assert found.values[0, 0, 0].tolist() != found.values[0, 1, 0].tolist()
    assert found.values[0, 0, 0, 0] < 0.4
    assert usual_recipe(load_model("lenet5-digits"), "scratch") == MODELS["lenet5-digits"].recipe


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if not entry.published])
def test_every_network_of_the_registry_can_begin_anew(name):
    network = MODELS[name].build()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.01)  # norms begin with ones and zeros
    old = {key: value.clone() for key, value in network.state_dict().items()}
    fresh = _with_fresh_weights(network).state_dict()
    assert all(not torch.equal(fresh[key], value) for key, value in old.items())
    assert all(torch.equal(network.state_dict()[key], value) for key, value in old.items())


def test_weights_without_a_beginning_are_refused(net):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(10))

    with pytest.raises(ModelError, match="'5' of the network, a Scaled, has weights but no reset_parameters"):
        _with_fresh_weights(nn.Sequential(*net, Scaled()))


def test_retraining_is_gentler_than_training():
    own = MODELS["lenet5-digits"].recipe
    assert usual_recipe(load_model("lenet5-digits")) == replace(own, learning_rate=own.learning_rate / 3)


def test_regression_is_measured_by_its_error(train):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 1)).eval()
    lit = replace(train, targets=train.inputs.mean((1, 2, 3)), class_names=(), task="regression")
    found = retrain(net, lit, {"none": None}, {"own": (lit.inputs, lit.targets)}, seeds=1, epochs=4, recipe=RECIPE)
    assert found.unit == "RMSE"
    assert found.values[0, 0, 0, 0] == pytest.approx(measure(net, lit)["rmse"])
    assert found.values[0, 0, -1, 0] < found.values[0, 0, 0, 0]


def test_texts_can_be_added_too(train):
    torch.manual_seed(0)
    words = np.random.default_rng(0).integers(2, 30, (100, 7))
    texts = replace(train, inputs=words, targets=train.targets)

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.logits = nn.Embedding(30, 8), nn.Linear(8, 10)

        def forward(self, tokens):
            return self.logits(self.embedding(tokens).mean(1))

    found = retrain(
        Bag().eval(),
        texts,
        {"more": (words[:5], texts.targets[:5])},
        {"own": (words, texts.targets)},
        seeds=1,
        epochs=2,
        recipe=RECIPE,
    )
    assert found.added("more") == [5]


def test_interval_is_students_at_holms_levels():
    values = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 1.0], [3.0, 5.0, -1.0]])
    mean, half = interval(values)
    assert mean.tolist() == [2, 5, 0]
    p = p_values(values)
    assert p[:1] == pytest.approx(stats.ttest_1samp(values[:, :1], 0).pvalue)
    # Three equal differences may be 5 steps of 1, or one step of 5, of which rounding leaves a variance of 25 / 6.
    assert p[1:].tolist() == pytest.approx([2 * stats.t.sf(5 / np.sqrt(25 / 18), 2), 1])
    # No column passes at a third of 5 %.
    assert half == pytest.approx(stats.t.isf(0.05 / 6, 2) * np.sqrt([1 / 3, 25 / 18, 1 / 3]))
    assert interval(values[:, :1])[1] == pytest.approx([4.302652729749464 / np.sqrt(3)])
    assert np.isnan(interval(np.ones((1, 2)))[1]).all()
    assert np.isnan(interval(np.ones((0, 2)))[0]).all()


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_equal_differences_of_equally_good_networks_are_rounding(seeds):
    """Accuracies of 540 tests: 0.5 % are different in either network, so that many pairs differ by the same number."""
    random = np.random.default_rng(0)
    values = (random.binomial(540, 0.005, (seeds, 4000)) - random.binomial(540, 0.005, (seeds, 4000))) / 540
    p = p_values(values)
    assert (p <= 0.05).mean() <= 0.055
    assert (p <= 0.05 / 12).mean() <= 0.006
    assert p_values(np.full((seeds, 1), 0.2) + np.arange(seeds)[:, None] / 540) < 0.01


def test_differences_are_taken_seed_by_seed(net, train, tests, more):
    found = retrain(net, train, {"none": None, "more": more}, tests, seeds=3, epochs=1, recipe=RECIPE)
    one = found.difference("more", "none")
    pairs = found.values[1, :, -1] - found.values[0, :, -1]
    assert np.array_equal(one.values, pairs)
    assert one.mean == pytest.approx(pairs.mean(0))
    levels = holm_levels(p_values(pairs))
    assert one.high - one.mean == pytest.approx(stats.t.isf(levels / 2, 2) * pairs.std(0, ddof=1) / np.sqrt(3))
    assert one.exceeds.tolist() == (holm(p_values(pairs)) < 0.05).tolist()
    column = found.most_different("more", "none")
    said = found.finding("more", "none", column, "Accuracy with more", "with nothing added")
    assert said.number == pytest.approx(found.mean()[1, -1, column])
    assert said.control.value == pytest.approx(found.mean()[0, -1, column])
    assert said.looks == len(tests)
    row = next(row for row in found.rows() if (row["addition"], row["test"]) == ("more", "dark"))
    assert row["minus_none"] == pytest.approx(pairs[:, 1].mean())
    assert row["mean"] == pytest.approx(found.values[1, :, -1, 1].mean())
    with pytest.raises(SettingError, match="no addition 'most'"):
        found.difference("more", "most")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"additions": {}}, "at least one addition"),
        ({"tests": {}}, "at least one addition and one test"),
        ({"epochs": 0}, "epochs must be"),
        ({"start": "random"}, "start must be"),
        ({"seeds": 0}, "seeds must be"),
        ({"additions": {"a": (np.zeros((2, 3), np.float32), np.zeros(2, int))}}, "addition 'a' has inputs of shape"),
        ({"tests": {"t": (np.zeros((2, 1, 28, 28), np.float32), np.zeros(2))}}, "test 't' has targets of shape"),
    ],
)
def test_mistakes_are_explained(net, train, tests, changed, sentence):
    given = {"additions": {"none": None}, "tests": tests, "epochs": 1, "seeds": 1, "recipe": RECIPE}
    with pytest.raises((SettingError, DataError), match=sentence):
        retrain(net, train, **given | changed)
