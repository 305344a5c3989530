"""Small networks, one an operation: what the tests of attribution propagate relevance through."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.lrp.networks import CLASSES, IMAGES, ROWS, SEQUENCES, SERIES, TOKENS, VOLUMES, Written, numbers, settle


@dataclass(frozen=True)
class Case:
    """An operation inside a network: ``body(net, x)`` is followed by a dense layer `out`.

    `layers` are those through which all relevance passes; `free` says that without biases nothing adds a constant.
    """

    body: Callable[[Any, Tensor], Tensor]
    inputs: Tensor
    modules: Callable[[bool], dict[str, nn.Module]]
    layers: tuple[str, ...]
    free: bool

    def network(self, bias: bool = True) -> nn.Module:
        net = Written(lambda net, x: self.body(net, x), **self.modules(bias))
        with torch.no_grad():
            features = self.body(settle(net), self.inputs.clone()).flatten(1).shape[1]
        out = nn.Linear(features, CLASSES, bias=bias)
        return settle(Written(lambda net, x: net.out(self.body(net, x).flatten(1)), **self.modules(bias), out=out))


CASES: dict[str, Case] = {}


def case(
    name: str,
    inputs: Tensor,
    body: Callable[[Any, Tensor], Tensor],
    modules: Callable[[bool], dict[str, nn.Module]] = lambda bias: {},
    layers: tuple[str, ...] | None = None,
    free: bool = True,
) -> None:
    assert name not in CASES
    layers = ("input", *modules(True), "out") if layers is None else layers
    CASES[name] = Case(body, inputs, modules, layers, free)


def layer(name: str, inputs: Tensor, build: Callable[[bool], nn.Module], free: bool = True) -> None:
    """Enter a case that is one module."""
    case(name, inputs, lambda net, x: net.a(x), lambda bias: {"a": build(bias)}, free=free)


def between(name: str, function: Callable[[Tensor], Tensor], free: bool = True) -> None:
    """Enter a case that is a function between two dense layers."""
    case(name, ROWS, lambda net, x: function(net.a(x)), lambda bias: {"a": nn.Linear(6, 8, bias=bias)}, free=free)


# Convolutions.
for d, data in ((1, SERIES), (2, IMAGES), (3, VOLUMES)):
    conv: Any = getattr(nn, f"Conv{d}d")
    up: Any = getattr(nn, f"ConvTranspose{d}d")
    layer(f"conv{d}d", data, lambda bias, conv=conv: conv(2, 3, 3, bias=bias))
    layer(f"conv{d}d strided", data, lambda bias, conv=conv: conv(2, 3, 2, stride=2, padding=1, bias=bias))
    layer(f"conv{d}d dilated", data, lambda bias, conv=conv: conv(2, 2, 2, dilation=2, padding="same", bias=bias))
    layer(f"conv{d}d grouped", data, lambda bias, conv=conv: conv(2, 4, 3, groups=2, padding=1, bias=bias))
    layer(f"conv{d}d of padding alone", data, lambda bias, conv=conv: conv(2, 3, 1, padding=1, bias=bias))
    for mode in ("circular", "reflect", "replicate"):
        layer(
            f"conv{d}d {mode}",
            data,
            lambda bias, conv=conv, mode=mode: conv(2, 3, 3, padding=1, padding_mode=mode, bias=bias),
        )
    layer(f"conv_transpose{d}d", data, lambda bias, up=up: up(2, 3, 3, bias=bias))
    layer(f"conv_transpose{d}d strided", data, lambda bias, up=up: up(2, 4, 3, 2, 1, 1, groups=2, bias=bias))
    layer(f"conv_transpose{d}d with gaps", data, lambda bias, up=up: up(2, 3, 2, stride=3, bias=bias))
case(
    "conv2d functional",
    IMAGES,
    lambda net, x: F.conv2d(x, net.a.weight, bias=net.a.bias, stride=(2, 1), padding=(1, 0)),
    lambda bias: {"a": nn.Conv2d(2, 3, 3, bias=bias)},
    ("input", "out"),
)

# Dense operations and products with fixed matrices.
layer("linear", ROWS, lambda bias: nn.Linear(6, 5, bias=bias))
layer("linear on sequences", SEQUENCES, lambda bias: nn.Linear(6, 3, bias=bias))
for name, product in {
    "@": lambda x, w: x @ w,
    "matmul": lambda x, w: torch.matmul(x, other=w),
    "matmul from the left": lambda x, w: torch.matmul(w.T, x.T).T,
    "mm": lambda x, w: x.mm(w),
    "addmm": lambda x, w: torch.addmm(torch.zeros(8, dtype=x.dtype), x, w),
    "mv": lambda x, w: torch.stack([w.T.mv(row) for row in x]),
    "bmm": lambda x, w: torch.bmm(x.unsqueeze(1), w.expand(len(x), -1, -1)),
    "F.linear": lambda x, w: F.linear(input=x, weight=w.T),
}.items():
    between(name, lambda x, product=product: product(x, numbers(8, 8, seed=3)))

# Pooling.
for name, pool in {
    "avg": nn.AvgPool2d(2),
    "avg overlapping": nn.AvgPool2d(3, 2),
    "avg padded": nn.AvgPool2d(3, 2, 1),
    "avg ceil": nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg divisor": nn.AvgPool2d(2, divisor_override=3),
    "adaptive avg": nn.AdaptiveAvgPool2d((3, 2)),
    "global avg": nn.AdaptiveAvgPool2d(1),
    "max": nn.MaxPool2d(2),
    "max overlapping": nn.MaxPool2d(3, 2),
    "max padded": nn.MaxPool2d(3, 2, 1),
    "max dilated": nn.MaxPool2d(2, 2, dilation=2),
    "max ceil": nn.MaxPool2d(3, 2, 1, ceil_mode=True),
    "max one": nn.MaxPool2d(1),
    "max rows": nn.MaxPool2d((7, 1)),
    "adaptive max": nn.AdaptiveMaxPool2d((1, 7)),
    "adaptive max uneven": nn.AdaptiveMaxPool2d((3, 2)),
    "upsample nearest": nn.Upsample(scale_factor=2),
    "upsample bilinear": nn.Upsample(scale_factor=2, mode="bilinear"),
}.items():
    layer(f"pool {name}", IMAGES, lambda bias, pool=pool: pool)
for d, data in ((1, SERIES), (3, VOLUMES)):
    layer(f"pool avg {d}d", data, lambda bias, d=d: getattr(nn, f"AvgPool{d}d")(2))
    layer(f"pool max {d}d", data, lambda bias, d=d: getattr(nn, f"MaxPool{d}d")(3, 1, 1))
    layer(f"pool adaptive avg {d}d", data, lambda bias, d=d: getattr(nn, f"AdaptiveAvgPool{d}d")(2))
    layer(f"pool adaptive max {d}d", data, lambda bias, d=d: getattr(nn, f"AdaptiveMaxPool{d}d")(2))
layer("pool max of ties", IMAGES.round(), lambda bias: nn.MaxPool2d(3, 1))
case("pool max of rows", ROWS, lambda net, x: F.max_pool1d(x, 2))
case("mean", IMAGES, lambda net, x: x.mean((2, 3)))
case("mean keyword", IMAGES, lambda net, x: torch.mean(input=x, dim=1, keepdim=True))
case("sum", IMAGES, lambda net, x: x.sum(-1))
case("sum keyword", IMAGES, lambda net, x: torch.sum(x, dim=(1, 2)))
case("amax", IMAGES.round(), lambda net, x: x.amax((2, 3)))
case("max over positions", SERIES, lambda net, x: x.max(2)[0])
case("max keyword", SERIES, lambda net, x: torch.max(x, dim=1, keepdim=True).values)

# Operations that move numbers.
for name, move in {
    "flatten": lambda x: torch.flatten(x, 1),
    "reshape": lambda x: x.reshape(len(x), 7, -1),
    "view": lambda x: x.view(x.size(0), -1),
    "view_as": lambda x: x.view_as(x.flatten(1)),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "transpose": lambda x: x.transpose(1, 3),
    "T": lambda x: x.mT,
    "cat": lambda x: torch.cat([x, x[:, :1]], 1),
    "cat keyword": lambda x: torch.cat(tensors=(x, x), dim=2),
    "stack": lambda x: torch.stack([x[:, 0], x[:, 1]], 1),
    "hstack": lambda x: torch.hstack([x, x]),
    "split": lambda x: torch.cat(x.split(1, 1), 2),
    "chunk": lambda x: x.chunk(2, 1)[0] + x.chunk(2, 1)[1],
    "slicing": lambda x: x[:, :, 1:6:2, ::3],
    "ellipsis": lambda x: x[..., 0],
    "index": lambda x: x[:, [1, 0, 1]],
    "select": lambda x: x.select(1, 0),
    "narrow": lambda x: x.narrow(2, 1, 3),
    "expand": lambda x: x[:, :, :, :1].expand(-1, -1, -1, 4),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "flip": lambda x: x.flip(3),
    "roll": lambda x: x.roll(1, 2),
    "unbind": lambda x: torch.stack(x.unbind(1), 2),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "unflatten": lambda x: x.unflatten(2, (7, 1)),
    "contiguous": lambda x: x.contiguous(),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2),
    "iteration": lambda x: torch.stack(list(x)),
    "zero padding": lambda x: F.pad(x, (1, 2, 0, 1)),
    "reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "cat with zeros": lambda x: torch.cat([x, torch.zeros_like(x)], 1),
    "stack with zeros": lambda x: torch.stack([torch.zeros_like(x), x], 1),
    "masked_fill": lambda x: x.masked_fill(torch.eye(7, dtype=torch.bool), 0.0),
    "clone": lambda x: x.clone(),
}.items():
    case(
        f"move {name}",
        IMAGES,
        lambda net, x, move=move: F.relu(net.a(move(x).flatten(1))),
        lambda bias, move=move: {"a": nn.Linear(move(IMAGES).flatten(1).shape[1], 5, bias=bias)},
    )
layer("identity", ROWS, lambda bias: nn.Identity())
layer("dropout", ROWS, lambda bias: nn.Dropout())
layer("dropout in place", ROWS, lambda bias: nn.Sequential(nn.Linear(6, 6, bias=bias), nn.Dropout(inplace=True)))
layer("dropout of channels", IMAGES, lambda bias: nn.Dropout2d())
layer("flatten and unflatten", IMAGES, lambda bias: nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 49))))

# Normalisation.
for d, data in ((1, SERIES), (2, IMAGES), (3, VOLUMES)):
    layer(f"batch_norm {d}d", data, lambda bias, d=d: getattr(nn, f"BatchNorm{d}d")(2), free=False)
layer("batch_norm of rows", ROWS, lambda bias: nn.BatchNorm1d(6, affine=False), free=False)
layer("layer_norm", SEQUENCES, lambda bias: nn.LayerNorm(6, bias=bias))
layer("layer_norm of images", IMAGES, lambda bias: nn.LayerNorm([2, 7, 7], elementwise_affine=False))

# Sums, differences, scaling and constants.
for name, combine, free in (
    ("residual +", lambda x: x + F.relu(x), True),
    ("residual torch.add", lambda x: torch.add(x, torch.tanh(x)), True),
    ("residual keyword", lambda x: torch.add(input=x, other=F.relu(x), alpha=0.5), True),
    ("sum of three", lambda x: x + F.relu(x) + torch.tanh(x), True),
    ("sum()", lambda x: sum([x, x.tanh()]), True),
    ("broadcast sum", lambda x: x[:, :1] + x, True),
    ("subtraction", lambda x: x - F.relu(x) * 0.3, True),
    ("torch.sub", lambda x: torch.sub(F.relu(x), x, alpha=2), True),
    ("constant minus", lambda x: 1 - x, False),
    ("adding a constant", lambda x: x + 0.7, False),
    ("adding a tensor", lambda x: numbers(8) + x, False),
    ("scaling", lambda x: 2 * x * 0.7, True),
    ("scaling by a tensor", lambda x: x * numbers(8), True),
    ("scaling to more", lambda x: x.unsqueeze(1) * numbers(3, 1), True),
    ("division", lambda x: x / 3, True),
    ("negation", lambda x: -x, True),
    ("standardising", lambda x: (x - 0.1) / 0.3, False),
):
    between(name, combine, free)


def residual_in_place(net: Any, x: Tensor) -> Tensor:
    y = net.a(x)
    y += x
    y *= 1
    return y.relu_()


def arithmetic_in_place(net: Any, x: Tensor) -> Tensor:
    y = net.a(x)
    return y.mul_(0.5).sub_(x).div_(2).add_(x, alpha=2).masked_fill_(x > 2, 0.0)


case("residual +=", ROWS, residual_in_place, lambda bias: {"a": nn.Linear(6, 6, bias=bias)}, ("input", "out"))
case("arithmetic in place", ROWS, arithmetic_in_place, lambda bias: {"a": nn.Linear(6, 6, bias=bias)}, ("input",))

# Activation functions: as modules, as functions, in place. The others look at several values, or need arguments.
OTHERS = {"GLU", "LogSoftmax", "MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "Threshold"}
for name in sorted({*nn.modules.activation.__all__} - OTHERS):
    layer(name, ROWS, lambda bias, name=name: nn.Sequential(nn.Linear(6, 8, bias=bias), getattr(nn, name)()))
for name in ("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "SiLU", "Mish", "Hardtanh", "Hardswish"):
    layer(
        f"{name} in place",
        ROWS,
        lambda bias, name=name: nn.Sequential(nn.Linear(6, 8, bias=bias), getattr(nn, name)(inplace=True)),
    )
for name, activate in {
    "F.relu": F.relu,
    "F.relu in place": lambda x: F.relu(x, inplace=True),
    "relu_": lambda x: x.relu_(),
    "torch.tanh": torch.tanh,
    "tanh_": lambda x: x.tanh_(),
    "F.gelu": lambda x: F.gelu(x, approximate="tanh"),
    "F.leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "torch.sigmoid": torch.sigmoid,
    "F.silu": F.silu,
    "F.prelu": lambda x: F.prelu(x, torch.full((1,), 0.3, dtype=x.dtype)),
    "clamp": lambda x: x.clamp(min=0),
    "clip": lambda x: torch.clip(x, -0.5, 0.5),
    "threshold": lambda x: F.threshold(x, 0.1, 0.0),
    "F.softplus": lambda x: F.softplus(input=x, beta=2),
    "F.elu_": lambda x: F.elu_(x),
}.items():
    between(name, activate)

# Embeddings and recurrent layers.
case(
    "embedding",
    TOKENS,
    lambda net, x: net.b(net.a(x)).tanh(),
    lambda bias: {"a": nn.Embedding(10, 6), "b": nn.Linear(6, 3, bias=bias)},
)
case(
    "embedding with positions",
    TOKENS,
    lambda net, x: net.b(torch.arange(x.size(1)).expand_as(x)) + net.a(x),
    lambda bias: {"a": nn.Embedding(10, 6), "b": nn.Embedding(10, 6)},
    ("out",),
)
case(
    "text convolution",
    TOKENS,
    lambda net, x: F.relu(net.b(net.a(x).transpose(1, 2))).amax(2),
    lambda bias: {"a": nn.Embedding(10, 6), "b": nn.Conv1d(6, 4, 3, padding=1, bias=bias)},
)
for name, options in {
    "lstm": {},
    "lstm of two layers": {"num_layers": 2},
    "lstm both ways": {"bidirectional": True},
    "lstm of two layers both ways": {"num_layers": 2, "bidirectional": True, "dropout": 0.5},
}.items():
    size = 5 * (1 + options.get("bidirectional", False))
    layer_modules = lambda bias, options=options: {"a": nn.LSTM(6, 5, batch_first=True, bias=bias, **options)}  # noqa: E731
    case(name, SEQUENCES, lambda net, x: net.a(x)[0], layer_modules)
    case(f"{name}, last output", SEQUENCES, lambda net, x: net.a(x)[0][:, -1], layer_modules)
    case(
        f"{name}, length first",
        SEQUENCES,
        lambda net, x: net.a(x.transpose(0, 1))[0].transpose(0, 1),
        lambda bias, options=options: {"a": nn.LSTM(6, 5, bias=bias, **options)},
    )
    case(
        f"{name}, last state",
        SEQUENCES,
        lambda net, x: torch.hstack(tuple(net.a(x)[1][0][-(2 if net.a.bidirectional else 1) :])),
        layer_modules,
    )


def cells(net: Any, x: Tensor) -> Tensor:
    state = None
    for step in x.unbind(1):
        state = net.a(step, state)
    return state[0]


case("lstm cell", SEQUENCES, cells, lambda bias: {"a": nn.LSTMCell(6, 5, bias=bias)}, ("input", "out"))


# Attention, gates, and normalisations written by hand. A softmax is expanded to first order, which leaves a bias over.
def mixed(function: Callable[..., Tensor]) -> Callable[[Any, Tensor], Tensor]:
    return lambda net, x: function(net.a(x), net.b(x), net.c(x))


def three(bias: bool) -> dict[str, nn.Module]:
    return {name: nn.Linear(6, 6, bias=bias) for name in "abc"}


for name, attend in {
    "attention": F.scaled_dot_product_attention,
    "attention that is causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "attention written by hand": lambda q, k, v: torch.softmax(q @ k.mT / 2, -1) @ v,
}.items():
    case(name, SEQUENCES, mixed(attend), three, ("input", "out"), free=False)
case("gate", SEQUENCES, mixed(lambda a, b, c: F.silu(a) * b + c), three, ("input", "out"))
case("products of matrices", SEQUENCES, mixed(lambda a, b, c: a @ b.mT @ c), three, ("input", "out"))
layer(
    "transformer layer",
    SEQUENCES,
    lambda bias: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, activation="gelu", bias=bias),
    free=False,
)
layer("group_norm", IMAGES, lambda bias: nn.GroupNorm(1, 2, affine=bias))
layer("rms_norm", SEQUENCES, lambda bias: nn.RMSNorm(6))
between("rms_norm by hand", lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)))
between("swish by hand", lambda x: x * torch.sigmoid(x))


# Networks of several pieces.
def block(net: Any, x: Tensor) -> Tensor:
    y = F.relu(net.conv1(x))
    y = net.pool(y + net.conv2(y))
    return y.mean((2, 3))


case(
    "convolutional block",
    IMAGES,
    block,
    lambda bias: {
        "conv1": nn.Conv2d(2, 4, 3, bias=bias),
        "conv2": nn.Conv2d(4, 4, 3, padding=1, bias=bias),
        "pool": nn.MaxPool2d(2),
    },
    ("input", "conv1", "pool", "out"),
)
case(
    "nested containers",
    IMAGES,
    lambda net, x: net.a(x),
    lambda bias: {
        "a": nn.Sequential(
            nn.Sequential(nn.Conv2d(2, 3, 3, bias=bias), nn.ReLU(inplace=True)),
            nn.ModuleDict({"b": nn.AvgPool2d(2)})["b"],
        )
    },
    ("input", "a", "a.0", "a.0.0", "out"),
)


def dense(bias: bool) -> dict[str, nn.Module]:
    return {"a": nn.Linear(6, 5, bias=bias)}


case("module on two branches", ROWS, lambda net, x: F.relu(net.a(x)) + F.relu(net.a(x.flip(1))), dense)
case("module twice before a ReLU", ROWS, lambda net, x: torch.cat([F.relu(y) for y in (net.a(x), net.a(-x))], 1), dense)
case("without gradients", ROWS, lambda net, x: torch.no_grad()(net.a)(x), dense)
