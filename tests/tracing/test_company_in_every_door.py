"""Networks that sort a batch, have its size written in, or take time first, through what does not trace: each beside a
twin that takes any batch, one input at a time."""

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.attribution.methods import attribute
from idc_core.attribution.rollout import attention_rollout
from idc_core.confusion.scaled_activation import collect_statistics
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.experiments.ablation import ablate, silence_each
from idc_core.experiments.unclipped import unclipped
from idc_core.generation.cell_search import reach_cell
from idc_core.generation.similar_models import rounded
from idc_core.perturbation.editing import loss_direction
from tests.lrp.networks import Written, settle

COUNT = 7
PICTURES = (torch.rand(COUNT, 1, 8, 8, generator=torch.Generator().manual_seed(1)) * 255).round().numpy() / 255
CLASSES = np.arange(COUNT) % 3


def pooled(net, x):
    return torch.relu(net.conv(x)).mean((2, 3))


def ended(net, v):
    return net.g(torch.relu(net.b(torch.relu(net.a(v)))))


def plain(net, x):
    return ended(net, pooled(net, x))


def sorted_and_back(net, x):
    order = x.mean((1, 2, 3)).argsort()
    return plain(net, x[order])[order.argsort()]


def squeezed(net, x):
    v = torch.relu(net.conv(x)).mean((2, 3), keepdim=True).squeeze()
    return ended(net, v * v.new_ones(len(x), 1))


def recurrent(net, x):
    return net.g(torch.relu(net.b(net.lstm(x[:, 0])[0])).mean(1))


def recurrent_of_four(net, x):
    states = (torch.zeros(1, 4, 6, dtype=x.dtype),) * 2
    return net.g(torch.relu(net.b(net.turned(x[:, 0].transpose(0, 1), states)[0])).mean(0))


def recurrent_and_squeezed(net, x):
    turned = net.turned(x[:, 0].transpose(0, 1))[0]
    return net.g(torch.relu(net.b(turned)).mean(0, keepdim=True).squeeze())


KINDS = {
    "sorted": (sorted_and_back, plain),
    "squeezed": (squeezed, plain),
    "a batch of one": (lambda net, x: ended(net, pooled(net, x).view(1, 4)), plain),
    "a batch of five": (lambda net, x: ended(net, pooled(net, x) + x.new_zeros(5, 4)), plain),
    "time first, a batch of four": (recurrent_of_four, recurrent),
    "time first, squeezed": (recurrent_and_squeezed, recurrent),
}


def network_of(forward):
    net = settle(
        Written(
            forward,
            conv=nn.Conv2d(1, 4, 3),
            a=nn.Linear(4, 6),
            b=nn.Linear(6, 5),
            g=nn.Linear(5, 3),
            lstm=nn.LSTM(8, 6, batch_first=True),
        )
    )
    net.turned = nn.LSTM(8, 6).to(net.g.weight)
    net.turned.load_state_dict(net.lstm.state_dict())
    return net


def _attacked(name):
    return lambda net, one: idc.attack(net, PICTURES, CLASSES, name, **one).inputs


def _searched(net, one):
    guide = [idc.IDC(net, "b", m=2).fit(PICTURES)]
    found = idc.differential_search([net, rounded(net, 3)], PICTURES, iterations=3, guidance=guide, **one)
    return np.concatenate([found.inputs.ravel(), found.iterations, found.seed_index])


def _reached(net, one):
    criterion = idc.IDC(net, "b", m=2).fit(PICTURES)
    cell = [len(centroids) - 1 for centroids in criterion.centroids]
    return reach_cell(net, criterion, cell, PICTURES, iterations=3, **one).closest


def _silenced(net, one):
    found = ablate(net, PICTURES, CLASSES, "b", [3, 1, 2], [1, 2], 2, **one)
    each = silence_each(net, PICTURES, CLASSES, "b", [0, 1], CLASSES, 3, **one)
    return np.concatenate([found.important, found.random.ravel(), each.before, each.after.ravel()])


def _attributed(name, layer="input", **parameters):
    return lambda net, one: attribute(net, PICTURES, name, layer, **parameters, **one)


DOORS = {
    "fgsm": _attacked("fgsm"),
    "deepfool": _attacked("deepfool"),
    "jsma": _attacked("jsma"),
    "boundary": _attacked("boundary"),
    "unclipped": lambda net, one: unclipped(net, PICTURES, CLASSES, epsilon=0.1, step=0.05, steps=2),
    "differential": _searched,
    "reach": _reached,
    "silenced": _silenced,
    "statistics": lambda net, one: collect_statistics(net, PICTURES, ["b", "g"], **one).values,
    "direction": lambda net, one: np.stack([loss_direction(net, x, 1, "classification") for x in PICTURES[:2]]),
    "gradients": _attributed("gradient-x-input"),
    "gradients inside": _attributed("gradient-x-input", "b"),
    "steps inside": _attributed("integrated-gradients", "b", steps=4),
    "maps": _attributed("grad-cam"),
    "occlusion": _attributed("occlusion"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_door_gives_what_it_gives_of_each_input_alone(kind):
    net, twin = map(network_of, KINDS[kind])
    for door, work in DOORS.items():
        inside = door.endswith("inside")
        if "time first" in kind and (inside or door == "maps"):
            with pytest.raises(UnsupportedOperationError, match=r"one row per input|no way|maps"):
                work(net, {})
            continue
        expected = work(twin, {"batch_size": 1})
        np.testing.assert_allclose(work(net, {}), expected, rtol=1e-5, atol=1e-6, err_msg=f"{kind}, {door}")


def test_what_runs_an_input_beside_others_is_refused_where_inputs_run_alone():
    with pytest.raises(UnsupportedOperationError, match=r"run 1 at a time, and this method runs 2 together. Choose"):
        attribute(network_of(sorted_and_back), PICTURES, "deeplift", "b")


def test_scores_that_depend_on_the_batch_are_neither_attacked_searched_nor_silenced():
    net = network_of(lambda net, x: ended(net, pooled(net, x) - pooled(net, x).mean(0)))
    for door in ("fgsm", "differential", "silenced", "gradients", "unclipped"):
        with pytest.raises(ModelError, match="depend on which others are in its batch"):
            DOORS[door](net, {})


def test_attention_of_a_batch_with_a_written_size_is_rolled_out():
    def read(rows):
        return lambda net, x: net.g(
            (tokens := x[:, 0, :, :6] + x.new_zeros(rows or len(x), 1, 1)) + net.attention(*[tokens] * 3)[0]
        ).mean(1)

    def made(rows):
        return settle(Written(read(rows), attention=nn.MultiheadAttention(6, 2, batch_first=True), g=nn.Linear(6, 3)))

    expected = attention_rollout(made(0), PICTURES, batch_size=1)
    np.testing.assert_allclose(attention_rollout(made(3), PICTURES), expected, rtol=1e-6)
