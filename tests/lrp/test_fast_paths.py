"""Every faster way through an operation against the plain one, over the settings that choose between them."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.errors import IdcError
from idc_core.lrp.affine import conv2d, conv2d_back
from idc_core.lrp.attention import _step_by_step
from idc_core.lrp.normalisation import _HeldDeviation
from idc_core.lrp.operations import OPERATIONS, Faster
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models.scaling import Scaling
from idc_core.models.wrapping import put_before
from idc_core.tracing.trace import trace
from tests.lrp.architectures import blocks_of, built, inputs_of
from tests.lrp.cases import CASES
from tests.lrp.networks import Written, numbers, settle

LAYOUTS = {"plain": torch.contiguous_format, "channels last": torch.channels_last}
Z = RelevanceSettings("z")


def close(found, expected, about):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10, msg=lambda text: f"{about}: {text}")


def carried(name, x, *args, settings=Z, **options):
    """Return an operation's output and the relevance of its input, where that of the output is the output itself."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        z = OPERATIONS[name](settings, x, *args, **options)
    return z.detach(), torch.autograd.grad(z, x, z.detach())[0]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 2])
def test_the_way_back_of_a_convolution(channels, layout):
    """Over one channel the gradient is a convolution with the turned kernel."""
    count = 0
    for kernel, stride, padding, dilation, (height, width), groups in itertools.product(
        ((1, 1), (2, 3), (3, 3)), (1, (1, 2), 2), (0, 1, (2, 1), 3), (1, (2, 1)), ((7, 7), (5, 8)), {1, channels}
    ):
        x = numbers(2, channels, height, width).contiguous(memory_format=LAYOUTS[layout]).requires_grad_()
        weight = numbers(2 * groups, channels // groups, *kernel, seed=2)
        given = (stride, padding, dilation, groups)
        with torch.enable_grad():
            z = F.conv2d(x, weight, None, *given)
            fast = conv2d(x, weight, None, *given)
        above = numbers(*z.shape, seed=3)
        (expected,) = torch.autograd.grad(z, x, above)
        close(fast, z, given)
        close(torch.autograd.grad(fast, x, above)[0], expected, given)
        close(conv2d_back(x.detach(), weight, *given)(above), expected, given)
        (gradient,) = torch.autograd.grad(F.conv2d(x, weight, None, *given), x, torch.ones_like(z))
        close(carried("conv2d", x, weight, None, *given)[1], x.detach() * gradient, given)
        count += 1
    assert count == 144 * channels


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_a_convolution_padded_by_a_word(padding):
    for channels, dilation in itertools.product((1, 2), (1, 2)):
        x, weight = numbers(2, channels, 6, 7).requires_grad_(), numbers(3, channels, 2, 3, seed=2)
        z = F.conv2d(x, weight, None, 1, padding, dilation)
        expected = x.detach() * torch.autograd.grad(z, x, torch.ones_like(z))[0]
        close(carried("conv2d", x, weight, None, 1, padding, dilation)[1], expected, (channels, dilation))


@pytest.mark.parametrize("size", [0.0, 0.1])
def test_number_by_number(size):
    """Sums and normalisations take a shorter way under epsilon and z; gamma 0 takes the long one."""
    short = RelevanceSettings("epsilon", epsilon=size) if size else RelevanceSettings("z")
    long = RelevanceSettings("gamma", gamma=0.0)
    settings = [short, long] if not size else [short]
    operations = [
        ("add", numbers(4, 3, 1)),
        ("add", numbers(2, 4, 1, 1, seed=5)),
        ("add", torch.tensor(0.3).double()),
        ("add", 2),
        ("sub", numbers(3, 1, seed=4)),
    ]
    for (name, other), shape in itertools.product(operations, ((2, 4, 3, 5), (2, 1, 3, 1))):
        x = numbers(*shape)
        found = [carried(name, x, other, settings=one) for one in settings]
        z = x + other if name == "add" else x - other
        expected = (
            x.expand(z.shape) * z / (z + torch.copysign(torch.full((), max(size, 1e-16), dtype=torch.float64), z))
        ).sum_to_size(x.shape)
        for value, shared in found:
            close(value, z, name)
            close(shared, expected, name)
    x, mean, var = numbers(2, 4, 3, 5), numbers(4), numbers(4).abs() + 0.5
    for weight, bias in itertools.product((None, numbers(4, seed=6)), (None, numbers(4, seed=7))):
        z = F.batch_norm(x, mean, var, weight, bias)
        scale = (torch.rsqrt(var + 1e-5) * (1 if weight is None else weight)).reshape(-1, 1, 1)
        expected = x * scale * z / (z + torch.copysign(torch.full((), max(size, 1e-16), dtype=torch.float64), z))
        value, relevance = carried("batch_norm", x, mean, var, weight, bias, settings=short)
        close(value, z, "batch_norm")
        if not size:
            close(relevance, expected, "batch_norm")


def test_the_gradient_of_a_normalisation():
    for shape, axes in (((3, 4, 5), (5,)), ((3, 4, 5), (4, 5)), ((2, 1), (1,))):
        for weight in (None, numbers(*axes, seed=2)):
            x = numbers(*shape).requires_grad_()
            dims = tuple(range(-len(axes), 0))
            deviation = (x.detach().var(dims, unbiased=False, keepdim=True) + 1e-5).sqrt()
            z = (x - x.mean(dims, keepdim=True)) / deviation * (1 if weight is None else weight)
            fast = _HeldDeviation.apply(x, axes, weight, None, 1e-5)
            above = numbers(*shape, seed=3)
            close(fast, z, (shape, axes))
            close(torch.autograd.grad(fast, x, above)[0], torch.autograd.grad(z, x, above)[0], (shape, axes))


MASKS = {
    "none": None,
    "added": numbers(5, 5, seed=9),
    "hidden": torch.ones(5, 5).tril().bool(),
    "per head": numbers(2, 4, 5, 5, seed=9),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("heads", [4, 2])
def test_attention_in_one_step(heads, mask):
    """Where biases absorb, queries and keys take a quarter and values half of what the steps would share out."""
    scale = None if heads == 4 else 0.7
    q, k, v = numbers(2, 4, 5, 3), numbers(2, heads, 5, 3, seed=2), numbers(2, heads, 5, 3, seed=3)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        one = OPERATIONS["scaled_dot_product_attention"](Z, *leaves, MASKS[mask], scale=scale, enable_gqa=heads == 2)
        steps = _step_by_step(Z, *leaves, MASKS[mask], False, scale)
    close(one, steps, mask)
    found, slow = (torch.autograd.grad(z, leaves, z.detach()) for z in (one, steps))
    close(found[2], slow[2], mask)
    for x, expected in zip(found[:2], slow[:2], strict=True):
        torch.testing.assert_close(x, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("layers", "bidirectional", "first"), list(itertools.product((1, 2), (False, True), (False, True)))
)
def test_recurrent_layers_that_nobody_follows(layers, bidirectional, first):
    network = torch.nn.LSTM(3, 4, layers, bidirectional=bidirectional, batch_first=first).double()
    x = numbers(2, 5, 3)
    expected, states = network(x)
    with Faster():
        found, others = network(x)
    for one, other in ((found, expected), *zip(others, states, strict=True)):
        torch.testing.assert_close(one, other)


def by_both(network, inputs, layers, rule):
    """Return relevance as a value times a gradient, and shared at every operation; what each says where it refuses."""
    settings = RelevanceSettings(rule)
    assert settings.as_gradient
    found = []
    for form in (settings, settings.by_relevance()):
        try:
            found.append(relevance(network, inputs, layers, rule=form))
        except IdcError as error:
            found.append(str(error))
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_relevance_as_a_gradient(name, bias):
    """With nothing damped it need not be divided and multiplied at every operation."""
    case = CASES[name]
    inputs = case.inputs.clone()
    if inputs.is_floating_point():
        inputs[0] = 0  # where values are 0, nothing can be divided by them
    for rule in ("attnlrp", "value-path"):
        found, expected = by_both(case.network(bias), inputs, case.layers, rule)
        if isinstance(expected, str):
            assert found == expected
            continue
        for layer in case.layers:
            close(torch.tensor(found[layer]), torch.tensor(expected[layer]), (rule, layer))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["bert", "vit", "t5"])
def test_relevance_of_a_transformer_as_a_gradient(name):
    network, inputs = built(name).double(), inputs_of(name)
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    layers = blocks_of(network)
    found, expected = by_both(network, inputs, layers, "attnlrp")
    largest = max(abs(values).max() for values in expected.values())
    for layer in layers:
        close(torch.tensor(found[layer] / largest), torch.tensor(expected[layer] / largest), layer)


def test_a_shift_behind_a_convolution_is_no_gradient():
    """The convolution's relevance is that of what the shift gives, which is not the value times a gradient."""
    network = settle(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(100, 3)))
    found, expected = by_both(network, numbers(3, 2, 7, 7), ["0", "1"], "attnlrp")
    for layer in ("0", "1"):
        close(torch.tensor(found[layer]), torch.tensor(expected[layer]), layer)
    close(torch.tensor(found["0"]), torch.tensor(found["1"]), "the convolution and the map behind it")


FROM_ZERO = {
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "cos": torch.cos,
    "clamp": lambda x: x.clamp(min=0.5),
    "power": lambda x: 2**x,
    "softplus": F.softplus,
    "tanh": torch.tanh,
}


@pytest.mark.parametrize("name", FROM_ZERO)
def test_a_value_of_zero_hands_on_what_its_function_gets(name):
    """A gradient times 0 would lose it."""
    body = lambda net, x: net.out(FROM_ZERO[name](torch.relu(net.a(x))))  # noqa: E731
    network = settle(Written(body, a=nn.Linear(6, 8), out=nn.Linear(8, 3)))
    found, expected = by_both(network, numbers(5, 6), ["input", "a"], "attnlrp")
    for layer in expected:
        close(torch.tensor(found[layer]), torch.tensor(expected[layer]), (name, layer))


def test_black_pixels_of_a_scaled_network_have_relevance():
    network = settle(nn.Sequential(nn.Flatten(), nn.Linear(108, 4)))
    put_before(network, Scaling((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    pictures = numbers(3, 3, 6, 6).abs()
    pictures[1:, :, :3] = 0  # not of the first, by which a network is known
    found, expected = by_both(network, pictures, ["input"], "attnlrp")
    assert abs(expected["input"][1, :, :3]).min() > 0
    close(torch.tensor(found["input"]), torch.tensor(expected["input"]), "input")


def test_a_shift_that_the_first_inputs_do_not_meet():
    """A batch that shifts is run again, and its relevance shared at every operation."""

    def body(net, x):
        hidden = net.a(x)
        return net.out(torch.relu(net.norm(hidden) if x.sum() > 0 else hidden))

    parts = {"a": nn.Linear(6, 8), "norm": nn.BatchNorm1d(8), "out": nn.Linear(8, 3)}
    network = settle(Written(body, **parts))
    inputs = torch.cat([-numbers(1, 6).abs(), numbers(1, 6).abs()])
    settings = RelevanceSettings("attnlrp")
    found, expected = (
        [batch.relevance["a"] for batch in trace(network, inputs, ["a"], form, batch_size=1)]
        for form in (settings, settings.by_relevance())
    )
    for one, other in zip(found, expected, strict=True):
        close(one, other, "shifted")


@pytest.mark.parametrize("parameters", [{"epsilon": 1e-6}, {"bias": "redistribute"}])
def test_what_is_damped_or_spread_is_shared_at_every_operation(parameters):
    assert not RelevanceSettings("attnlrp", **parameters).as_gradient
    assert not RelevanceSettings("epsilon").as_gradient
