"""What people write in `forward` beside layers: leaves with gradients, autocast, hooks, vmap."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import IDC, attack, relevance
from idc_core.attribution.methods import attribute_layers
from idc_core.errors import DataError, IdcError, ModelError, SettingError, UnsupportedOperationError
from idc_core.perturbation import guided_noise
from idc_core.tracing.trace import collect
from tests.lrp.networks import ROWS, SEQUENCES, Written, numbers, settle


def written(forward, **modules):
    return settle(Written(forward, **(modules or {"a": nn.Linear(6, 6), "out": nn.Linear(6, 3)})))


def filled(net, x):
    with torch.no_grad():
        held = nn.Parameter(torch.zeros_like(x))
        held[:, :] = net.a(x)
    return net.out(held)


def plain(net, x):
    return net.out(net.a(x))


def flat(net, x):
    return net.out(net.a(x.flatten(1)))


def asked(net, x):
    x.requires_grad = True
    return net.out(net.a(x))


# name: forward pass, and the same with constants
MADE_INSIDE = {
    "parameter": (
        lambda net, x: net.out(net.a(x) * nn.Parameter(torch.full((6,), 2.0))),
        lambda net, x: net.out(net.a(x) * torch.full((6,), 2.0)),
    ),
    "expanded parameter": (
        lambda net, x: net.out(net.a(x) + nn.Parameter(torch.ones(1)).expand(6)),
        lambda net, x: net.out(net.a(x) + torch.ones(6)),
    ),
    "parameter that is written into": (filled, plain),
    "requires_grad_ of the input": (
        lambda net, x: net.out(net.a(x.requires_grad_())),
        lambda net, x: net.out(net.a(x)),
    ),
    "requires_grad of the input": (asked, plain),
    "requires_grad_ on the way": (lambda net, x: net.out(net.a(x).requires_grad_()), plain),
}


@pytest.mark.parametrize("name", MADE_INSIDE)
@pytest.mark.parametrize("layers", [["input", "a", "out"], ["out"], ["a"]])
def test_a_leaf_that_forward_makes_is_a_constant(name, layers):
    found, expected = (relevance(written(forward), ROWS, layers) for forward in MADE_INSIDE[name])
    for layer in layers:
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-12)


@pytest.mark.parametrize("layer", ["input", "lstm", "out"])
def test_first_states_with_gradients_as_in_tutorials(layer):
    def forward(gradients):
        def run(net, x):
            states = [torch.zeros(1, len(x), 4, dtype=x.dtype, requires_grad=gradients) for _ in range(2)]
            return net.out(net.lstm(x, tuple(states))[0][:, -1])

        return run

    found, expected = (
        relevance(written(forward(one), lstm=nn.LSTM(6, 4, batch_first=True), out=nn.Linear(4, 3)), SEQUENCES, [layer])
        for one in (True, False)
    )
    np.testing.assert_array_equal(found[layer], expected[layer])


class TestAutocast:
    """Sums of relevance are in single precision; a plain pass is what the network itself computes."""

    @staticmethod
    def networks(dtype=torch.bfloat16):
        def forward(net, x):
            with torch.autocast("cpu", dtype):
                return net.out(F.relu(net.a(x.flatten(1)))).float()

        torch.manual_seed(0)
        layers = {"a": nn.Linear(36, 8), "out": nn.Linear(8, 3)}
        plain = Written(lambda net, x: net.out(F.relu(net.a(x.flatten(1)))), **layers).eval()
        return Written(forward, **layers).eval(), plain

    @pytest.mark.parametrize("rule", ["epsilon", "alpha-beta", "gamma", "composite", "attnlrp"])
    def test_relevance_is_that_of_single_precision(self, rule):
        inputs = torch.rand(8, 1, 6, 6, generator=torch.Generator().manual_seed(1))
        found, expected = (relevance(one, inputs, ["input", "a"], rule) for one in self.networks())
        assert found["input"].dtype == np.float32
        np.testing.assert_array_equal(found["input"], expected["input"])
        np.testing.assert_array_equal(found["a"], expected["a"])

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_idc_noise_and_attacks_run(self, dtype):
        network, plain = self.networks(dtype)
        inputs = torch.rand(40, 1, 6, 6, generator=torch.Generator().manual_seed(1))
        assert IDC(network, "a", m=2).fit(inputs).update(inputs).score > 0
        np.testing.assert_allclose(
            collect(network, inputs, ["a"]).activations["a"], collect(plain, inputs, ["a"]).activations["a"], atol=0.02
        )
        assert (guided_noise(network, inputs[:4]) != inputs[:4].numpy()).any()
        assert attack(network, inputs[:4], [0, 1, 2, 0], "fgsm", epsilon=0.1).linf.max() <= 0.1 + 1e-6

    def test_the_callers_autocast_does_not_matter(self):
        network = self.networks()[1]
        inputs = torch.rand(8, 1, 6, 6, generator=torch.Generator().manual_seed(1))
        expected = relevance(network, inputs, ["input"])["input"], collect(network, inputs, []).scores
        with torch.autocast("cpu"):
            found = relevance(network, inputs, ["input"])["input"], collect(network, inputs, []).scores
            assert torch.is_autocast_enabled("cpu")
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


KINDS = {
    "lstm": lambda: Written(
        lambda net, x: net.out(net.lstm(x)[0][:, -1]), lstm=nn.LSTM(6, 4, batch_first=True), out=nn.Linear(4, 3)
    ),
    "dense": lambda: Written(
        lambda net, x: net.out(net.norm(net.a(x))), a=nn.Linear(6, 6), norm=nn.BatchNorm1d(6), out=nn.Linear(6, 3)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frozen", [False, True])
def test_weights_that_were_made_under_inference_mode(kind, frozen):
    with torch.inference_mode():
        network = (
            Written(
                lambda net, x: net.out(net.lstm(x)[0][:, -1]), lstm=nn.LSTM(6, 4, batch_first=True), out=nn.Linear(4, 3)
            )
            if kind == "lstm"
            else Written(
                lambda net, x: net.out(net.norm(net.a(x))),
                a=nn.Linear(6, 6),
                norm=nn.BatchNorm1d(6),
                out=nn.Linear(6, 3),
            )
        )
        network.requires_grad_(not frozen)
    given = (ROWS if kind == "dense" else SEQUENCES).float()
    kept = [(id(tensor), tensor.requires_grad) for tensor in (*network.parameters(), *network.buffers())]
    found, expected = (relevance(one, given, ["input", "out"]) for one in (network, copy.deepcopy(network)))
    for layer, values in expected.items():
        np.testing.assert_array_equal(found[layer], values)
    with torch.inference_mode():
        np.testing.assert_allclose(collect(network, given, []).scores, network.eval()(given), rtol=1e-5, atol=1e-6)
    assert [(id(tensor), tensor.requires_grad) for tensor in (*network.parameters(), *network.buffers())] == kept
    assert all(parameter.is_inference() for parameter in network.parameters())


WORK = {
    "relevance": lambda net, x: relevance(net, x, ["a"]),
    "collect": lambda net, x: collect(net, x, ["a"]),
    "IDC": lambda net, x: IDC(net, "a", m=2).fit(x),
    "gradients": lambda net, x: attribute_layers(net, x, ["a"], "gradient-x-input"),
    "attack": lambda net, x: attack(net, x, [0] * 4),
}


@pytest.mark.parametrize("work", WORK)
def test_a_network_on_the_meta_device_has_no_weights(work):
    with torch.device("meta"):
        network = Written(lambda net, x: net.out(net.a(x)), a=nn.Linear(6, 6), out=nn.Linear(6, 3))
    inputs = ROWS.float() if work != "attack" else torch.rand(4, 1, 1, 6)
    with pytest.raises(ModelError, match="has no weights: it is on the meta device"):
        WORK[work](network, inputs)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("kind", ["coo", "csr", "nested", "meta"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_inputs_are_to_be_made_dense(work, kind):
    network = written(lambda net, x: net.out(net.a(x)))
    inputs = {
        "coo": ROWS.to_sparse(),
        "csr": ROWS.to_sparse_csr(),
        "nested": torch.nested.nested_tensor(list(ROWS)),
        "meta": ROWS.to("meta"),
    }[kind]
    with pytest.raises(DataError, match="Expected dense inputs"):
        WORK[work](network, inputs)


@pytest.mark.parametrize("work", WORK)
def test_calls_within_vmap_are_told_to_take_the_batch(work):
    network = written(lambda net, x: net.out(net.a(x)))
    with pytest.raises(DataError, match=r"within torch.vmap.*whole batch"):
        torch.vmap(lambda x: torch.as_tensor(WORK[work](network, x[None])))(ROWS)


def test_vmap_within_forward():
    network = written(lambda net, x: net.out(torch.vmap(net.a)(x)))
    assert relevance(network, ROWS, ["out"])["out"].shape == (4, 3)
    for layers in (["input"], ["a"]):
        with pytest.raises(UnsupportedOperationError):
            relevance(network, ROWS, layers)


def _energy(x):
    return (x.tanh() ** 2).sum()


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1 - ctx.saved_tensors[0].tanh() ** 2)


def own_gradient(x, function=_energy, **options):
    with torch.enable_grad():
        given = x.clone().requires_grad_() if options else x.detach().requires_grad_()
        return torch.autograd.grad(function(given), given, **options)[0]


# name: what a forward does, and the words in which relevance of what stands before it is refused
TRANSFORMS = {
    "gradient of its own": (own_gradient, "cuts them off"),
    "gradient with a graph": (lambda x: own_gradient(x, create_graph=True), "gradient that the network takes"),
    "gradient by an own function": (lambda x: own_gradient(x, lambda y: Tanh.apply(y).sum()), "cuts them off"),
    "grad": (torch.func.grad(_energy), "torch.func"),
    "jacrev": (lambda x: torch.func.jacrev(lambda y: y.tanh().sum(0))(x).sum(0), "torch.func"),
    "jvp": (lambda x: torch.func.jvp(torch.tanh, (x,), (torch.ones_like(x),))[1], "torch.func"),
    "vjp": (lambda x: torch.func.vjp(torch.tanh, x)[1](torch.ones_like(x))[0], "torch.func"),
    "vmap": (torch.vmap(lambda row: row * row.sum()), "torch.vmap"),
    "vmap of grad": (torch.vmap(torch.func.grad(_energy)), "torch.vmap"),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_within_forward_are_seen_by_layers_behind_them_alone(name):
    run, said = TRANSFORMS[name]
    layers = {name: nn.Linear(6, 6) for name in "ab"} | {"out": nn.Linear(6, 3)}
    network = written(lambda net, x: net.out(net.b(run(net.a(x))).tanh()), **layers)
    values = network.b(run(network.a(ROWS)).detach()).detach()
    np.testing.assert_allclose(collect(network, ROWS, ["b"]).activations["b"], values.tanh(), rtol=1e-6, atol=1e-7)
    tail = written(lambda net, x: net.out(net.a(x).tanh()), a=nn.Identity(), out=nn.Linear(6, 3))
    tail.out = network.out
    np.testing.assert_allclose(
        relevance(network, ROWS, ["b"])["b"], relevance(tail, values, ["a"])["a"], rtol=1e-9, atol=1e-12
    )
    with pytest.raises(UnsupportedOperationError, match=said):
        relevance(network, ROWS, ["a"])
    if said.startswith("torch"):  # a part of the relevance would be missing
        beside = written(lambda net, x: net.out(x + run(net.a(x))), **layers)
        with pytest.raises(UnsupportedOperationError, match=said):
            relevance(beside, ROWS, ["a"])


NO_CLASSES = [["cat", "dog"], ["cat"] * 4, np.array(["cat"] * 4), [0, "dog"], [None] * 4, object()]


@pytest.mark.parametrize("given", NO_CLASSES, ids=map(str, range(len(NO_CLASSES))))
def test_targets_that_are_no_numbers_of_classes(given):
    network, pictures = (
        written(lambda net, x: net.out(net.a(x.flatten(1)))),
        np.random.default_rng(0).random((4, 1, 2, 3)),
    )
    said = "numbers of classes, counted from 0 in the order of the network's outputs"
    for work, kind in (
        (lambda: relevance(network, ROWS, ["a"], target=given), SettingError),
        (lambda: attribute_layers(network, ROWS, ["a"], "gradient-x-input", target=given), SettingError),
        (lambda: IDC(network, "a", m=2, original=True).fit(ROWS, given), SettingError),
        (lambda: attack(network, pictures, given), DataError),
        (lambda: attack(network, pictures, [0] * 4, goal=given), DataError),
    ):
        with pytest.raises(kind, match=said) as caught:
            work()
        assert ("'cat'" in str(caught.value).split("Give")[0]) == ("cat" in str(given))


def test_none_is_no_target():
    with pytest.raises(SettingError, match="not None"):
        relevance(written(lambda net, x: net.out(net.a(x))), ROWS, ["a"], target=None)


def test_classes_that_are_counted_from_one():
    network, pictures = (
        written(lambda net, x: net.out(net.a(x.flatten(1)))),
        np.random.default_rng(0).random((4, 1, 2, 3)),
    )
    for work in (
        lambda: relevance(network, ROWS, ["a"], target=[1, 2, 3, 1]),
        lambda: attribute_layers(network, ROWS, ["a"], "gradient-x-input", target=[1, 2, 3, 1]),
        lambda: attack(network, pictures, [1, 2, 3, 1]),
    ):
        with pytest.raises(IdcError, match=r"1\.\.3, counted from 1\. Subtract 1"):
            work()


def loader(inputs, targets):
    data = torch.utils.data.TensorDataset(inputs, targets)
    return torch.utils.data.DataLoader(data, batch_size=7)


def test_a_loader_brings_the_true_classes_that_the_original_program_needs():
    network, inputs = written(lambda net, x: net.out(F.relu(net.a(x)))), numbers(90, 6)
    targets = network(inputs).argmax(1)
    targets[::3] = (targets[::3] + 1) % 3
    expected = IDC(network, "a", m=2, original=True).fit(inputs, targets)
    everything = IDC(network, "a", m=2).fit(inputs)
    assert not np.allclose(expected.importance, everything.importance)
    for given in (loader(inputs, targets), loader(inputs, targets).dataset):
        found = IDC(network, "a", m=2, original=True).fit(given)
        np.testing.assert_allclose(found.importance, expected.importance)
        for one, other in zip(found.centroids, expected.centroids, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(SettingError, match="these batches hold no targets"):
        IDC(network, "a", m=2, original=True).fit(torch.utils.data.DataLoader(inputs, batch_size=7))


class Several(nn.Module):
    def __init__(self, arrange):
        super().__init__()
        self.dense, self.arrange = nn.Linear(6, 6), arrange

    def forward(self, x):
        return self.arrange(F.relu(self.dense(x)))


TUPLES = {
    "tuple": (lambda h: (h, h.sum()), lambda r: r[0], True),
    "list": (lambda h: [h], lambda r: r[0], True),
    "dictionary": (lambda h: {"h": h}, lambda r: r["h"], True),
    "None first": (lambda h: (None, h), lambda r: r[1], False),
    "nested": (lambda h: ((h, h), h), lambda r: r[1], False),
}


@pytest.mark.parametrize("name", TUPLES)
def test_a_layer_that_returns_several_things_works_or_is_refused(name):
    arrange, taken, works = TUPLES[name]
    network = written(lambda net, x: net.out(taken(net.p(x))), p=Several(arrange), out=nn.Linear(6, 3))
    work = [
        lambda: relevance(network, ROWS, ["p", "input"])["p"],
        lambda: IDC(network, "p", m=2).fit(numbers(30, 6)).importance,
    ]
    if works:
        alone = written(lambda net, x: net.out(net.p(x)), p=Several(lambda h: h), out=nn.Linear(6, 3))
        np.testing.assert_array_equal(work[0](), relevance(alone, ROWS, ["p"])["p"])
        work[1]()
    else:
        for one in work:
            with pytest.raises(ModelError, match=r"Layer 'p' returns a .*; expected a tensor"):
                one()
    with pytest.raises(IdcError, match=r"'p' (does not return one tensor|returns a .*; expected a tensor)"):
        attribute_layers(network, ROWS, ["p"], "gradient-x-input")


def nothing(*_):
    return None


HOOKS = {
    "full": (lambda net: net[0][0], "register_full_backward_hook", "on module '0.0'"),
    "on a block": (lambda net: net[0], "register_full_backward_hook", "on module '0'"),
    "before": (lambda net: net[1], "register_full_backward_pre_hook", "on module '1'"),
    "of old": (lambda net: net[0], "register_backward_hook", "on module '0'"),
    "on the network": (lambda net: net, "register_full_backward_hook", "on the network itself"),
}


@pytest.mark.parametrize("name", HOOKS)
def test_backward_hooks_are_named_and_to_be_removed(name):
    module, register, said = HOOKS[name]
    network = settle(nn.Sequential(nn.Sequential(nn.Linear(6, 6), nn.ReLU()), nn.Linear(6, 3)))
    handle = getattr(module(network), register)(nothing)
    with pytest.raises(UnsupportedOperationError, match=f"backward hook {said}.*Remove the hook"):
        relevance(network, ROWS, ["input"])
    assert collect(network, ROWS, ["1"]).scores.shape == (4, 3)
    handle.remove()
    assert relevance(network, ROWS, ["input"])["input"].shape == (4, 6)


def test_hooks_of_tensors_are_left_alone():
    heard = []

    def forward(net, x):
        hidden = net.a(x)
        hidden.register_hook(lambda gradient: heard.append(gradient) or 5 * gradient)
        hidden.retain_grad()
        return net.out(hidden)

    found = relevance(written(forward), ROWS, ["input"])["input"]
    np.testing.assert_array_equal(found, relevance(written(lambda net, x: net.out(net.a(x))), ROWS, ["input"])["input"])
    assert collect(written(forward), ROWS, ["a"]).scores.shape == (4, 3)
    assert not heard


class Mixing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sum(1, keepdim=True).sin()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        along = x.sum(1, keepdim=True)
        return gradient * along.sin() + (gradient * x).sum(1, keepdim=True) * along.cos()


class Custom(nn.Module):
    def forward(self, x):
        return Mixing.apply(x)


@pytest.mark.parametrize("last", [False, True])
def test_a_custom_function_is_reported_where_it_is(last):
    layers = [nn.Linear(6, 6), nn.Sequential(nn.ReLU(), Custom()), *([] if last else [nn.Linear(6, 3)])]
    with pytest.raises(UnsupportedOperationError, match=r"the function 'Mixing'.*in module '1\.1'"):
        relevance(settle(nn.Sequential(*layers)), ROWS, ["input"])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_input_that_is_no_number_is_named_with_the_layer(value):
    network, inputs = written(lambda net, x: net.out(F.relu(net.a(x)))), numbers(90, 6)
    inputs[17, 2] = value
    with pytest.raises(DataError, match=r"Input 17 gives activations of layer 'a' that are not finite") as caught:
        IDC(network, "a", m=2).fit(inputs)
    assert "epsilon" not in str(caught.value)


def test_a_value_that_is_cut_off_is_said():
    network = written(lambda net, x: net.out(net.a(x).detach()))
    with pytest.raises(UnsupportedOperationError, match=r"do not depend on a, input.*cuts them off with \.detach\(\)"):
        relevance(network, ROWS, ["input", "a"])
