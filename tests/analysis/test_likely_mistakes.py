"""Each likely mistake made on a trained network, and found by its own detector; none where nothing is wrong."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import idc_core as idc
from idc_core.analysis.checking.detectors import DETECTORS
from idc_core.analysis.network_check import check_network
from idc_core.models import MODELS
from tests.analysis.toy_networks import DEVIATION, MEAN, Before, Colours, colours, digits, lenet, train, trained_colours


def found(build, read=digits, names=()):
    """Check a network and its data; return the mistakes by kind, as sentences."""
    idc.dataset("tried-data", class_names=names)(read)
    idc.network("tried", data="tried-data")(build)
    mistakes = check_network("tried").mistakes
    assert {one.kind for one in mistakes} <= set(DETECTORS)
    return {kind: " ".join(str(one) for one in mistakes if one.kind == kind) for kind in {m.kind for m in mistakes}}


def standardised(inputs):
    """Standardise as in the training of the colours."""
    return (inputs - MEAN) / DEVIATION


def test_correct_networks_are_not_blamed():
    assert found(lenet) == {}
    assert found(lambda: Before(trained_colours(), standardised), colours) == {}


@pytest.mark.parametrize("name", ["lenet1-digits", "lenet5-digits"])
def test_shipped_networks_are_not_blamed(name):
    assert check_network(name).mistakes == ()


SHIPPED_WITH_DATA = (
    "lenet5-mnist", "deepxplore-model3", "deepimportance-lenet5", "textcnn-20newsgroups",
    "charlstm-sql",
)  # fmt: skip
RARELY = (
    "convnet-cifar10", "vit-cifar10", "texttransformer-20newsgroups", "lenet1-mnist", "lenet4-mnist",
    "dave2-udacity", "deepxplore-model1", "deepxplore-model2", "deepimportance-lenet1", "deepimportance-lenet4",
)  # fmt: skip
"""Checked on the same data as one of those, or on CIFAR-10 as the test below that blames one thing only."""


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in SHIPPED_WITH_DATA),
        *(pytest.param(name, marks=pytest.mark.rare) for name in RARELY),
    ],
)
@pytest.mark.usefixtures("data_folder")
def test_no_other_shipped_network_is_blamed(name):
    assert check_network(name).mistakes == ()


def test_every_shipped_network_is_tried():
    assert set(MODELS) - {*SHIPPED_WITH_DATA, *RARELY} == {f"lenet{n}-digits" for n in (1, 4, 5)}


CAFFE = torch.tensor([103.939, 116.779, 123.68])[:, None, None]
PREPARED = {
    "trained on 0..255": (lambda x: x / 255, "multiplied by 255", "multiply them by 255"),
    "multiplied in forward": (lambda x: x * 255, "divided by 255", "do not multiply them"),
    "ImageNet's constants left out": (lambda x: (x * DEVIATION) + MEAN, "ImageNet's means", "Subtract 0.485,0.456"),
    "trained on -1..1": (lambda x: (x + 1) / 2, "mapped from 0..1 to -1..1", "Subtract"),
    "Caffe": (lambda x: ((x + CAFFE) / 255).flip(1), "Caffe's means", "Turn RGB into BGR"),
    "ImageNet's constants twice": (standardised, "undone (ImageNet's", "standardised twice"),
    "BGR": (lambda x: x.flip(1), "in reverse order", "flip(1)"),
    "rows and columns": (lambda x: x.transpose(2, 3), "rows and columns swapped", "Swap the last two axes"),
    "inverted": (lambda x: 1 - x, "inverted", "1 - inputs"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mistake", PREPARED)
def test_colour_inputs_prepared_otherwise_are_named(mistake):
    change, seen, remedy = PREPARED[mistake]
    said = found(lambda: Before(trained_colours(), lambda x: standardised(change(x))), colours)
    assert set(said) == {"inputs"}
    assert seen in said["inputs"]
    assert remedy in said["inputs"]
    assert "accuracy is 100.0 % instead of" in said["inputs"]


def test_moments_of_the_training_inputs_left_out_are_named_with_their_figures():
    mean, deviation = (torch.tensor(values)[:, None, None] for values in ((0.4, 0.5, 0.5), (0.32, 0.29, 0.29)))
    said = found(lambda: Before(trained_colours(), lambda x: standardised(x * deviation + mean)), colours)
    assert re.search(r"Subtract 0\.4\d*,0\.\d+,0\.\d+ and divide by 0\.3\d*,0\.", said["inputs"])


def test_a_network_from_a_file_is_mended_by_options(tmp_path):
    class Build:
        path = tmp_path / "net.onnx"

        def __call__(self):
            return Before(trained_colours(), lambda x: standardised(x * 0.25 + 0.5).flip(1))

    said = found(Build(), colours)
    assert "--mean" in said["inputs"]
    assert "--order BGR" in said["inputs"]
    assert "forward" not in said["inputs"]


def test_two_mistakes_on_top_of_each_other_are_both_named():
    said = found(lambda: Before(trained_colours(), lambda x: standardised((x / 255).flip(1))), colours)
    assert "multiplied by 255" in said["inputs"]
    assert "reverse order" in said["inputs"]


def test_inverted_grey_is_named():
    assert "Dark and bright are swapped" in found(lambda: Before(lenet(), lambda x: 1 - x))["inputs"]


@pytest.mark.parametrize(
    ("read", "remedy"),
    [
        (lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape), "use transpose(0, 3, 1, 2), not reshape"),
        (lambda x: x.reshape(len(x), 8, 8, 3).transpose(0, 3, 1, 2), "without transpose"),
    ],
)
def test_channels_in_another_place_are_named(read, remedy):
    def misread(split):
        pictures, targets = colours(split)
        return np.ascontiguousarray(read(pictures)), targets

    assert remedy in found(lambda: Before(trained_colours(), standardised), misread)["inputs"]


def test_data_divided_twice_are_named():
    def twice(split):
        pictures, targets = colours(split)
        return pictures / 255, targets

    assert "divided by 255 twice" in found(lambda: Before(trained_colours(), standardised), twice)["inputs"]


def table(split):
    """Return rows of three columns of very different scale."""
    rng = np.random.default_rng(split == "test")
    targets = np.arange(300) % 2
    return (rng.normal(0, 1, (300, 3)) + targets[:, None]) * (1.0, 1e3, 1e-2) + (0, 5e3, 0), targets


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_unstandardised_tables_are_named_for_classes_and_numbers(task):
    rows, targets = table("train")
    inputs = torch.tensor((rows - rows.mean(0)) / rows.std(0), dtype=torch.float32)
    if task == "regression":
        net = train(nn.Sequential(nn.Linear(3, 1)), inputs, inputs.sum(1, keepdim=True), F.mse_loss, 400)
        deviation = rows.std(0)
        read = lambda split: (table(split)[0], ((table(split)[0] - rows.mean(0)) / deviation).sum(1))  # noqa: E731
    else:
        net, read = train(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)), inputs, targets), table
    said = found(lambda: net, read)
    assert set(said) == {"inputs"}
    assert "standardised by means and deviations of the training inputs" in said["inputs"]
    assert ("the RMSE is" if task == "regression" else "accuracy is") in said["inputs"]


def test_classes_in_another_order_are_named():
    order = [3, 0, 1, 2, 4, 5, 6, 7, 8, 9]
    said = found(lambda: Before(lenet(), scores=lambda x: x[:, order]), names=tuple("abcdefghij"))
    assert set(said) == {"class-order"}
    assert "output 0 is 'd', output 1 is 'a', output 2 is 'b', output 3 is 'c'" in said["class-order"]


@pytest.mark.parametrize(
    ("what", "scores"),
    [
        ("softmax", lambda x: (x.softmax(1) + (2 * x).softmax(1)) / 2),
        ("log-softmax", lambda x: ((x.softmax(1) + (2 * x).softmax(1)) / 2).log()),
        ("sigmoid", lambda x: (x.sigmoid() + (2 * x).sigmoid()) / 2),
    ],
)
def test_probabilities_are_named(what, scores):
    said = found(lambda: Before(lenet(), scores=scores))
    assert set(said) == {"softmax"}
    assert f"a {what} was already applied" in said["softmax"]
    assert f"before the {what}" in said["softmax"]


@pytest.mark.parametrize(
    "scores",
    [lambda x: x.softmax(1), lambda x: (x - x.logsumexp(1, keepdim=True)).exp(), lambda x: x.softmax(1).clamp(1e-7, 1)],
    ids=["called", "written", "bounded"],
)
def test_a_softmax_that_the_engine_sees_is_a_note(scores):
    idc.dataset("tried-data")(digits)
    idc.network("tried", data="tried-data")(lambda: Before(lenet(), scores=scores))
    checked = check_network("tried")
    assert checked.mistakes == ()
    assert checked.notes == ("The network ends in a softmax; scores before it are analysed.",)


def test_dropout_that_stays_active_is_named():
    said = found(lambda: Before(lenet(), lambda x: F.dropout(x, 0.1)))
    assert set(said) == {"random"}
    assert "training=self.training" in said["random"]


def test_batch_normalisation_by_the_batch_is_named():
    said = found(lambda: Before(lenet(), lambda x: F.batch_norm(x, None, None, training=True) / 3 + 0.2))
    assert "batch" in said
    assert "takes its moments from the batch" in said["batch"]


def test_buffers_of_batch_normalisation_that_were_not_loaded_are_named():
    def build():
        net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(192), trained_head())
        return net.eval()

    said = found(build, colours)
    assert "running_mean and running_var" in said["batch-norm"]
    assert "chance" not in said


def trained_head():
    """Return a last layer with weights of its own."""
    torch.manual_seed(0)
    return nn.Linear(192, 6)


def test_weights_that_are_not_finite_are_named_alone():
    def build():
        net = lenet()
        with torch.no_grad():
            net.conv1.weight[0, 0, 0, :2] = torch.nan
        return net

    said = found(build)
    assert set(said) == {"weights"}
    assert "conv1.weight (2 of 150)" in said["weights"]


def test_scores_that_are_not_finite_are_named():
    assert "although all weights are" in found(lambda: Before(lenet(), scores=lambda x: x / 0))["weights"]


def zeroed(*names):
    """Return the network for the digits with some layers' weights set to zero."""
    net = lenet()
    with torch.no_grad():
        for name in names:
            for value in net.get_submodule(name).parameters():
                value.zero_()
    return net


def test_constant_outputs_and_dead_layers_are_named():
    said = found(lambda: zeroed("conv2"))
    assert set(said) == {"constant", "dead"}
    assert "conv2, pool2" in said["dead"]
    assert "All 500 tests have the same output" in said["constant"]


def test_a_class_that_is_never_predicted_is_named():
    def build():
        net = lenet()
        with torch.no_grad():
            net.logits.weight[4], net.logits.bias[4] = 0, -1e6
        return net

    assert "Never predicted on 500 tests: 4 (" in found(build)["never-predicted"]


def test_untrained_weights_are_named():
    def build():
        torch.manual_seed(1)
        return Colours()

    said = found(build, colours)
    assert set(said) == {"chance"}
    assert "Check that trained weights are loaded" in said["chance"]


def test_an_untrained_regression_is_named():
    def build():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(3, 1))

    def read(split):
        rows = np.random.default_rng(split == "test").normal(0, 1, (200, 3))
        return rows, rows[:, 0] * 0.1

    assert "always predicting the mean of the targets gives" in found(build, read)["chance"]


def test_builds_that_differ_are_named():
    assert "fix its seed" in found(lambda: Colours(), colours)["rebuilt"]


def test_tests_among_the_training_inputs_and_duplicates_are_named():
    def read(split):
        inputs, targets = digits(split)
        if split == "train":
            return inputs, targets
        return np.concatenate([inputs, inputs[:2], digits("train")[0][:3]]), np.concatenate(
            [targets, 9 - targets[:2], digits("train")[1][:3]]
        )

    said = found(lenet, read)
    assert set(said) == {"leak", "duplicates"}
    assert "3 of 545 tests are training inputs, too: test 542 is training input 0" in said["leak"]
    assert (
        "2 of 545 tests are identical to others, 2 of them with another target, such as 540 to 0"
        in (said["duplicates"])
    )


def test_few_equal_rows_of_a_table_are_a_note():
    def read(split):
        rows, targets = table(split)
        rows[1] = rows[0]
        return (rows - rows.mean(0)) / rows.std(0), targets

    inputs, targets = read("train")
    net = train(nn.Sequential(nn.Linear(3, 2)), inputs.astype(np.float32), targets)
    idc.dataset("tried-data")(read)
    idc.network("tried", data="tried-data")(lambda: net)
    checked = check_network("tried")
    assert checked.mistakes == ()
    assert [note.split(" are")[0] for note in checked.notes if note[0].isdigit()] == [
        "1 of 300 training inputs",
        "1 of 300 tests",
    ]


def test_a_class_without_tests_or_training_inputs_is_named():
    def read(split):
        inputs, targets = digits(split)
        kept = targets != (3 if split == "test" else 5)
        return inputs[kept], targets[kept]

    said = found(lenet, read, tuple(f"digit {n}" for n in range(10)))
    assert set(said) == {"empty-class"}
    assert "no training inputs: digit 5" in said["empty-class"]
    assert "no tests: digit 3" in said["empty-class"]


def test_splits_of_another_scale_are_named():
    def read(split):
        inputs, targets = digits(split)
        return (inputs / 255 if split == "test" else inputs), targets

    assert "Prepare both splits in the same way" in found(lenet, read)["ranges"]


@pytest.mark.rare
@pytest.mark.usefixtures("data_folder")
def test_colours_in_reverse_order_are_named_of_a_real_network():
    idc.network("tried", data="cifar10")(lambda: Before(idc.load_model("convnet-cifar10"), lambda x: x.flip(1)))
    mistakes = check_network("tried").mistakes
    assert [one.kind for one in mistakes] == ["inputs"]
    assert "reverse" in mistakes[0].seen


def test_a_network_that_draws_random_numbers_is_named_and_not_analysed():
    said = found(lambda: Before(lenet(), lambda x: x + 0.2 * torch.randn_like(x)))
    assert set(said) == {"random"}
    assert all("randn_like draws random numbers" in layer.stopped for layer in check_network("tried").layers)


@pytest.mark.parametrize("frozen", [torch.no_grad, torch.inference_mode])
def test_scores_without_a_gradient_to_the_input_are_noted(frozen):
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.within = lenet()

        def forward(self, x):
            with frozen():
                return self.within(x)

    assert found(Frozen) == {}
    (note,) = (one for one in check_network("tried").notes if "gradient" in one)
    assert "The scores of the network 'tried' have no gradient to its input" in note
    assert found(lenet) == {}
    assert not any("gradient" in one for one in check_network("tried").notes)
