"""A network that draws random numbers while it is evaluated is refused by name, whatever is to be done with it."""

import random

import numpy as np
import pytest
import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import nn

from idc_core import CRITERIA, IDC, relevance
from idc_core.attribution.methods import attribute_layers
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.randomness import randomness_allowed
from idc_core.tracing.trace import collect
from tests.lrp.networks import IMAGES, ROWS, SEQUENCES, Written, numbers, settle


def filled(name, *values):
    return lambda x: x + getattr(torch.empty_like(x), name)(*values)


def drawn(distribution):
    return lambda x: x + distribution.sample(x.shape).to(x)


# what is said: how a value is changed
ON_ROWS = {
    "randn_like": lambda x: x + torch.randn_like(x),
    "rand_like": lambda x: x * torch.rand_like(x),
    "randint_like": lambda x: x + torch.randint_like(x, 5),
    "rand ": lambda x: x * torch.rand(x.shape, dtype=x.dtype),
    "randn ": lambda x: x + torch.randn(6, dtype=x.dtype),
    "randint ": lambda x: x + torch.randint(9, (6,)),
    "randperm": lambda x: x[:, torch.randperm(6)],
    "normal ": lambda x: torch.normal(x, 1.0),
    "bernoulli ": lambda x: x * torch.bernoulli(torch.full_like(x, 0.5)),
    "multinomial": lambda x: x[:, torch.multinomial(torch.ones(6), 6)],
    "poisson": lambda x: torch.poisson(x.abs()),
    "binomial": lambda x: x + torch.binomial(torch.full_like(x, 5.0), torch.full_like(x, 0.5)),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x),
    "normal_": filled("normal_"),
    "uniform_": filled("uniform_"),
    "exponential_": filled("exponential_"),
    "cauchy_": filled("cauchy_"),
    "geometric_": filled("geometric_", 0.5),
    "log_normal_": filled("log_normal_"),
    "random_": filled("random_", 9),
    "bernoulli_": filled("bernoulli_", 0.5),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "rrelu_": lambda x: F.rrelu_(x + 0, training=True),
    "dropout": lambda x: F.dropout(x),
    "dropout_": lambda x: torch.dropout_(x + 0, 0.5, True),
    "native_dropout": lambda x: torch.native_dropout(x, 0.5, True)[0],
    "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
    "feature_dropout": lambda x: torch.feature_dropout(x[..., None, None], 0.5, True).flatten(1),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x[..., None, None], training=True).flatten(1),
    "dropout1d": lambda x: F.dropout1d(x[..., None]).flatten(1),
    "dropout2d": lambda x: F.dropout2d(x[..., None, None]).flatten(1),
    "dropout3d": lambda x: F.dropout3d(x[..., None, None, None]).flatten(1),
    "multinomial of a distribution": drawn(D.Categorical(torch.ones(3))),
    "_standard_gamma": drawn(D.Gamma(torch.tensor(1.0), torch.tensor(1.0))),
    "_sample_dirichlet": lambda x: x + D.Dirichlet(torch.ones(6)).sample().to(x),
}


def on_rows(change):
    return Written(lambda net, x: net.out(change(net.a(x))), a=nn.Linear(6, 6), out=nn.Linear(6, 3)), ROWS


def noisy_view(x):
    noise = torch.zeros_like(x)
    noise[:, :3].normal_()
    return x + noise


class Active(nn.Module):
    """Layers whose dropout stays active, whatever mode the network is in."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        training, self.layer.training = self.layer.training, True
        found = self.layer(*[x] * (3 if isinstance(self.layer, nn.MultiheadAttention) else 1))
        self.layer.training = training
        return found[0][:, -1]


OTHERS = {
    "fractional_max_pool2d": lambda: (
        Written(lambda net, x: net.a(F.fractional_max_pool2d(x, 2, output_size=3).mean((2, 3))), a=nn.Linear(2, 3)),
        IMAGES,
    ),
    "scaled_dot_product_attention": lambda: (
        Written(lambda net, x: net.a(F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)[:, 0]), a=nn.Linear(6, 3)),
        SEQUENCES,
    ),
    "multi_head_attention_forward": lambda: (
        Written(
            lambda net, x: net.a(net.block(x)),
            block=Active(nn.MultiheadAttention(6, 2, dropout=0.5, batch_first=True)),
            a=nn.Linear(6, 3),
        ),
        SEQUENCES,
    ),
    **{
        kind: lambda make=make: (
            Written(
                lambda net, x: net.a(net.block(x)),
                block=Active(make(6, 4, 2, dropout=0.5, batch_first=True)),
                a=nn.Linear(4, 3),
            ),
            SEQUENCES,
        )
        for kind, make in {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN}.items()
    },
    "normal_ into a view": lambda: on_rows(noisy_view),
    "randn as the scores": lambda: (Written(lambda net, x: torch.randn(len(x), 3), a=nn.Linear(6, 3)), ROWS),
}
NETWORKS = {name: lambda change=change: on_rows(change) for name, change in ON_ROWS.items()} | OTHERS


@pytest.mark.parametrize("name", NETWORKS)
def test_every_random_operation_is_refused_by_name_in_tracing_and_in_relevance(name):
    made, inputs = NETWORKS[name]()
    network = settle(made)
    said = rf"\b{name.split()[0]} (draws random numbers|stays active) in evaluation.*no two passes agree"
    layers = ["a"] if name != "randn as the scores" else []
    for settings in (None, IDC(network, "a").settings):
        with pytest.raises(UnsupportedOperationError, match=said) as caught:
            collect(network, inputs, layers, settings)
        assert ("training=self.training" in str(caught.value)) == ("stays active" in str(caught.value))


def noise(net, x):
    return net.out(F.relu(net.a(x + torch.randn_like(x))))


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_refuses(name):
    network = settle(Written(noise, a=nn.Linear(6, 6), out=nn.Linear(6, 3)))
    criterion = CRITERIA[name](network, "a")
    with pytest.raises(UnsupportedOperationError, match="randn_like draws random numbers"):
        criterion.fit(numbers(30, 6))


@pytest.mark.parametrize("method", ["epsilon", "gradient-x-input", "integrated-gradients", "deeplift", "conductance"])
def test_every_attribution_refuses(method):
    network = settle(Written(noise, a=nn.Linear(6, 6), out=nn.Linear(6, 3)))
    with pytest.raises(UnsupportedOperationError, match="randn_like draws random numbers"):
        attribute_layers(network, ROWS, ["out"], method)


def test_the_module_is_named():
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    network = settle(nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.ReLU(), Noise()), nn.Linear(6, 3)))
    with pytest.raises(UnsupportedOperationError, match=r"randn_like draws random .* in module '1\.1'"):
        relevance(network, ROWS, ["0"])


def unused(net, x):
    torch.rand([])  # LayerDrop draws before it looks whether the network is being trained
    return net.out(net.a(x))


def seeded(net, x):
    own = torch.Generator().manual_seed(3)
    return net.out(
        net.a(x) + torch.randn(6, generator=own, dtype=x.dtype) * torch.rand(6, generator=own, dtype=x.dtype)
    )


HARMLESS = {
    "a number that nothing uses": unused,
    "a generator that forward seeds": seeded,
    "dropout that is off": lambda net, x: net.out(F.dropout(net.a(x), training=net.training)),
    "dropout of nothing": lambda net, x: net.out(F.dropout(net.a(x), 0.0)),
    "alpha dropout by its defaults": lambda net, x: net.out(F.alpha_dropout(net.a(x))),
    "rrelu by its defaults": lambda net, x: net.out(F.rrelu(net.a(x))),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_gives_the_same_in_every_pass_is_no_randomness(name):
    network = settle(Written(HARMLESS[name], a=nn.Linear(6, 6), out=nn.Linear(6, 3)))
    first, second = (relevance(network, ROWS, ["input", "a"]) for _ in range(2))
    np.testing.assert_array_equal(first["input"], second["input"])
    np.testing.assert_allclose(collect(network, ROWS, ["a"]).scores, network(ROWS).detach(), rtol=1e-5)


def test_a_generator_that_goes_on_from_pass_to_pass_is_refused():
    own = torch.Generator().manual_seed(3)

    def forward(net, x):
        return net.out(net.a(x) + torch.randn(6, generator=own, dtype=x.dtype))

    network = settle(Written(forward, a=nn.Linear(6, 6), out=nn.Linear(6, 3)))
    with pytest.raises(UnsupportedOperationError, match="randn draws random numbers"):
        relevance(network, numbers(40, 6), ["a"], batch_size=8)


def test_who_looks_for_randomness_may_run_such_a_network():
    network, _ = on_rows(ON_ROWS["dropout"])
    with randomness_allowed():
        assert collect(settle(network), ROWS, ["a"]).scores.shape == (4, 3)


class Outside(nn.Module):
    """Draws from a generator that PyTorch does not show."""

    def __init__(self, draw, used):
        super().__init__()
        self.out, self.draw, self.used = nn.Linear(4, 3), draw, used

    def forward(self, x):
        drawn = float(self.draw())
        return self.out(x) * drawn if self.used else self.out(x)


@pytest.mark.usefixtures("draws_put_back")
@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_random_numbers_that_pytorch_does_not_show(draw):
    state, inputs = np.random.get_state(), torch.ones(3, 4)
    used, unused = (Outside(draw, one).eval() for one in (True, False))
    assert relevance(unused, inputs, ["out"])["out"].shape == (3, 3)
    with pytest.raises(UnsupportedOperationError, match="numbers of Python or NumPy are drawn in the network of the"):
        relevance(used, inputs, ["out"])
    np.random.set_state(state)
