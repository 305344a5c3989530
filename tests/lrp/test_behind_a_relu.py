"""Operations on activations of which many are exactly 0: with biases redistributed nothing is lost on the way.

Redistribution gives relevance to activations that are 0. Each operation here hands all of it on, or is refused by name.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.errors import UnsupportedOperationError
from tests.lrp.networks import Written, numbers, settle
from tests.lrp.test_conservation import check

INPUTS = numbers(4, 6)
SHAPE = (2, 4, 4)
FIXED = numbers(4, 4, seed=7)
PLACES = torch.tensor([2, 0, 3, 1])
INDEX = PLACES.expand(4, 2, 4, 4)
HIDDEN = torch.tensor([True, False, False, True])


def gated(x):
    one, other = x.chunk(2, 1)
    return one * other


def squeezed(x):
    return x * F.relu(F.conv2d(x.mean((2, 3), keepdim=True), FIXED[:2, :2, None, None]))


def padded_tokens(x):
    """Attention over tokens of which one is 0, as padding is behind layers without biases."""
    tokens = x.flatten(1).unflatten(1, (4, 8)) * torch.tensor([1.0, 1.0, 0.0, 1.0]).unsqueeze(1)
    return F.scaled_dot_product_attention(tokens, tokens, tokens)


def with_a_class_token(x):
    tokens = torch.cat([torch.zeros(len(x), 1, 8, dtype=x.dtype), x.flatten(1).unflatten(1, (4, 8))], 1)
    return F.scaled_dot_product_attention(tokens @ WEIGHT, tokens, tokens)[:, 0]


def written_into(x):
    y = x.clone()
    y[:, :, 1] = 0.0
    return y


WEIGHT = numbers(8, 8, seed=8)

PRODUCTS = {
    "mul": lambda x: x * x.flip(1),
    "gate": gated,
    "glu": lambda x: F.glu(x, 1),
    "squeeze and excitation": squeezed,
    "squeeze and excitation behind a sigmoid": lambda x: (
        x * torch.sigmoid(x.mean((2, 3), keepdim=True) @ FIXED[:1, :1] - 1)
    ),
    "matmul": lambda x: x @ x.mT,
    "bmm": lambda x: torch.bmm(x.flatten(0, 1), x.flatten(0, 1).mT).unflatten(0, (len(x), 2)),
    "einsum": lambda x: torch.einsum("nchw,ncvw->nhv", x, x.flip(1)),
    "baddbmm": lambda x: torch.baddbmm(x[:, 0], x[:, 1], x[:, 0].mT),
    "bilinear": lambda x: F.bilinear(x, x.flip(1), WEIGHT.reshape(4, 4, 4)),
    "lerp": lambda x: torch.lerp(x, x.flip(1), torch.tanh(x.flip(2))),
    "addcmul": lambda x: torch.addcmul(x, x.flip(1), x.flip(2)),
    "addcdiv": lambda x: torch.addcdiv(x, x.flip(1), x.flip(2) + 1),
    "attention": lambda x: F.scaled_dot_product_attention(x, x.flip(1), x.flip(2)),
    "attention over padding": padded_tokens,
    "attention of a class token that is 0": with_a_class_token,
    "attention by hand": lambda x: torch.softmax(x @ x.mT, -1) @ x,
}

OPERATIONS = PRODUCTS | {
    "add": lambda x: x + x.flip(1),
    "add a constant": lambda x: x + FIXED,
    "sub": lambda x: x - x.flip(1),
    "div": lambda x: x / (1 + x.flip(1)),
    "pow": lambda x: x**3,
    "square": torch.square,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "swish by hand": lambda x: x * torch.sigmoid(x),
    "rms norm by hand": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5),
    "layer norm": lambda x: F.layer_norm(x, (4,)),
    "group norm": lambda x: F.group_norm(x, 2, numbers(2), numbers(2)),
    "rms norm": lambda x: F.rms_norm(x, (4,)),
    "batch norm": lambda x: F.batch_norm(x, FIXED[0, :2], FIXED[0, :2].abs() + 1, FIXED[1, :2], FIXED[2, :2]),
    "local response norm": lambda x: F.local_response_norm(x, 2),
    "normalize": lambda x: F.normalize(x, dim=1),
    "softmax": lambda x: torch.softmax(x, -1),
    "linear": lambda x: F.linear(x, FIXED, FIXED[0]),
    "convolution": lambda x: F.conv2d(x, FIXED[:2, :2, None, None].expand(2, 2, 3, 3), FIXED[0, :2], padding=1),
    "transposed convolution": lambda x: F.conv_transpose2d(x, FIXED[:2, :2, None, None], FIXED[0, :2], stride=2),
    "average pooling": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "max pooling": lambda x: F.max_pool2d(x, 3, 2, 1),
    "power pooling": lambda x: F.lp_pool2d(x, 2, 2),
    "mean": lambda x: x.mean((2, 3)),
    "sum": lambda x: x.sum(1),
    "cumsum": lambda x: x.cumsum(2),
    "var": lambda x: x.var(2),
    "std": lambda x: x.std(2),
    "norm": lambda x: torch.linalg.vector_norm(x, 2, 2),
    "max": lambda x: x.max(2)[0],
    "min": lambda x: x.min(2)[0],
    "amax": lambda x: x.amax((1, 3)),
    "amin": lambda x: x.amin((1, 3)),
    "cat with a constant": lambda x: torch.cat([x, FIXED.expand(len(x), 1, 4, 4)], 1),
    "stack": lambda x: torch.stack([x, x.flip(1)], 1),
    "pad": lambda x: F.pad(x, (1, 0, 2, 1), value=0.5),
    "masked_fill": lambda x: x.masked_fill(HIDDEN, 0.3),
    "where": lambda x: torch.where(HIDDEN, x, 0.3),
    "where, the method": lambda x: x.where(HIDDEN, torch.tensor(0.3).to(x)),
    "where, by bytes": lambda x: torch.where(HIDDEN.byte(), x, torch.tensor(0.3).to(x)),
    "where, of a constant": lambda x: torch.tensor(0.3).to(x).where(~HIDDEN, other=x),
    "write": written_into,
    "gather": lambda x: x.gather(3, INDEX[: len(x)]),
    "index_select": lambda x: x.index_select(3, PLACES[:3]),
    "index_add": lambda x: x.index_add(3, PLACES, x.flip(1)),
    "scatter_add": lambda x: x.scatter_add(3, INDEX[: len(x)], x),
    "scatter": lambda x: torch.zeros_like(x).repeat(1, 1, 1, 2).scatter(3, INDEX[: len(x)] + 2, x),
    "scatter a constant": lambda x: x.scatter(3, INDEX[: len(x), :, :, :2], 0.5),
    "index_copy": lambda x: x.index_copy(3, PLACES[:2], FIXED[:, :2].expand(len(x), 2, 4, 2)),
    "index_put": lambda x: x.index_put((torch.arange(len(x)), PLACES[: len(x)] % 2), FIXED),
    "index_fill": lambda x: x.index_fill(3, PLACES[:2], 0.5),
    "masked_scatter": lambda x: x.masked_scatter(HIDDEN, FIXED.expand(len(x), 2, 4, 4).contiguous()),
    "slice_scatter": lambda x: x.slice_scatter(FIXED[:, :2].expand(len(x), 2, 4, 2), 3, 1, 3),
    "select_scatter": lambda x: x.select_scatter(FIXED[0].expand(len(x), 2, 4), 3, 1),
    "tril": torch.tril,
    "triu": lambda x: x.triu(1),
    "diag_embed": torch.diag_embed,
    "unfold": lambda x: F.unfold(x, 3, padding=1),
    "fold": lambda x: F.fold(x.repeat(1, 2, 1, 1).flatten(2), (5, 5), 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "topk": lambda x: x.topk(2)[0],
    "sort": lambda x: x.sort(2)[0],
    "roll": lambda x: x.roll(1, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "constant_pad_nd": lambda x: torch.constant_pad_nd(x, (1, 1)),
    "nan_to_num": torch.nan_to_num,
    "logsumexp": lambda x: x.logsumexp(2),
    "median": lambda x: x.median(2)[0],
    "kthvalue": lambda x: x.kthvalue(2)[0],
    "mode": lambda x: x.mode()[0],
    "logaddexp": lambda x: torch.logaddexp(x, x.flip(1)),
    "clamp to watched bounds": lambda x: x.clamp(x.flip(1) - 1, x.flip(2)),
    "scatter that adds": lambda x: x.scatter(3, INDEX[: len(x)], x.flip(1), reduce="add"),
    "index_put that adds": lambda x: x.index_put(
        (torch.arange(len(x)).repeat(2),), x.repeat(2, 1, 1, 1), accumulate=True
    ),
    "diagonal_scatter": lambda x: x.diagonal_scatter(FIXED[0].expand(len(x), 2, 4), 0, 2, 3),
    "maximum": lambda x: torch.maximum(x, x.flip(1)),
    "minimum": lambda x: torch.minimum(x, FIXED),
    "kron": lambda x: torch.stack([torch.kron(row[0], row[1]) for row in x]),
    "outer": lambda x: torch.stack([torch.outer(*row[0, :2]) for row in x]),
    "dot": lambda x: torch.stack([torch.dot(*row[0, :2]) for row in x])[:, None],
    "cross": lambda x: torch.linalg.cross(x[..., :3], x.flip(1)[..., :3]),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1)),
    "prod": lambda x: x.prod(2),
    "diff": lambda x: x.diff(dim=2),
}


REFUSED = {
    "block_diag": lambda x: torch.stack([torch.block_diag(row[0], row[1]) for row in x]),
    "cdist": lambda x: torch.cdist(x, x.flip(1)),
    "cumprod": lambda x: x.cumprod(2),
    "dist": lambda x: torch.stack([torch.dist(row[0], row[1]) for row in x])[:, None],
    "trace": lambda x: torch.stack([row[0].trace() for row in x])[:, None],
    "hypot": lambda x: torch.hypot(x, x.flip(1)),
    "atan2": lambda x: torch.atan2(x, x.flip(1) + 1),
    "remainder": lambda x: x % 0.3,
    "sign": torch.sign,
}


def network_of(function):
    def run(net, x):
        return function(F.relu(net.a(x)).unflatten(1, SHAPE)).flatten(1)

    parts = {"a": nn.Linear(6, 32)}
    with torch.no_grad():
        width = run(settle(Written(run, **parts)), INPUTS).shape[1]
    return settle(
        Written(lambda net, x: net.out(F.relu(net.b(run(net, x)))), **parts, b=nn.Linear(width, 5), out=nn.Linear(5, 3))
    )


@pytest.mark.sampled(5)
@pytest.mark.usefixtures("kept_together")
@pytest.mark.parametrize("name", OPERATIONS)
def test_all_of_it_arrives(name):
    network = network_of(OPERATIONS[name])
    # To value-path what a softmax gives is a constant, so that nothing passes through it.
    for rule in ("epsilon", "gamma", "alpha-beta", "attnlrp", *["value-path"] * (name != "softmax")):
        check(network, INPUTS, ["input", "a", "b", "out"], bias="redistribute", rule=rule)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_hand_it_on_is_refused_by_name(name):
    with pytest.raises(UnsupportedOperationError, match=rf"propagated through (linalg_)?{name}\."):
        relevance(network_of(REFUSED[name]), INPUTS, ["a"], bias="redistribute")
