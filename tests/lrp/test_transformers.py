"""Operations of transformers against slow versions written from the papers: loops over single numbers, float64."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from tests.lrp.networks import IMAGES, SEQUENCES, Written, numbers, settle, total
from tests.lrp.one_operation import close, shown


# Achtibat et al. 2024, equation 14: R_ji(A) = sum_p A_ji V_ip R_jp / (2 O_jp), and the same for V.
def product_of_matrices(a, v, r, part=0.5):
    r_a, r_v, o = np.zeros_like(a), np.zeros_like(v), a @ v
    for j, i, p in itertools.product(range(a.shape[0]), range(a.shape[1]), range(v.shape[1])):
        share = a[j, i] * v[i, p] * r[j, p] / o[j, p]
        r_a[j, i] += part * share
        r_v[i, p] += (1 - part) * share
    return r_a, r_v


# Achtibat et al. 2024, equation 11: R_i = x_i (R_i - s_i sum_j R_j).
def softmax_of_rows(x, r, spread=False):
    s, found = np.exp(x - x.max(1, keepdims=True)), np.zeros_like(x)
    s /= s.sum(1, keepdims=True)
    for row in range(len(x)):
        for i in range(x.shape[1]):
            if s[row, i]:
                found[row, i] = x[row, i] * (r[row, i] - s[row, i] * sum(r[row]))
        if spread:
            seen = [i for i in range(x.shape[1]) if s[row, i]]
            left = sum(r[row]) - sum(found[row])
            for i in seen:
                found[row, i] += left / len(seen)
    return s, found


def attention(q, k, v, r, scale=None, hidden=None, bias=None):
    """Return the relevance of queries, keys and values of one head."""
    scale = 1 / math.sqrt(q.shape[1]) if scale is None else scale
    scores = q @ k.T * scale
    masked = scores if bias is None else scores + bias
    masked = masked if hidden is None else np.where(hidden, -np.inf, masked)
    s, _ = softmax_of_rows(masked, np.zeros_like(masked))
    r_s, r_v = product_of_matrices(s, v, r)
    _, r_masked = softmax_of_rows(masked, r_s)
    r_scores = np.zeros_like(scores)
    for place in np.ndindex(scores.shape):  # the mask is a bias, which keeps its share
        if r_masked[place]:
            r_scores[place] = scores[place] / masked[place] * r_masked[place]
    r_q, r_k = product_of_matrices(q, k.T, r_scores)
    return r_q, r_k.T, r_v


PRODUCTS = {
    "@": lambda a, b: a @ b.mT,
    "matmul": lambda a, b: torch.matmul(a, other=b.transpose(1, 2)),
    "bmm": lambda a, b: a.bmm(b.mT),
    "einsum": lambda a, b: torch.einsum("nif,njf->nij", a, b),
    "einsum of a list": lambda a, b: torch.einsum("nif,njf->nij", [a, b]),
    "baddbmm": lambda a, b: torch.baddbmm(torch.zeros(1, 5, 5, dtype=a.dtype), a, b.mT, beta=0),
    "rmatmul": lambda a, b: b.mT.__rmatmul__(a),
    "heads": lambda a, b: (a.unsqueeze(1) @ b.unsqueeze(1).mT).squeeze(1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_matrices(name):
    (a, b), _, (r_a, r_b), r = shown(PRODUCTS[name], layers="ab")
    for n in range(len(a)):
        expected = product_of_matrices(a[n].numpy(), b[n].numpy().T, r[n])
        close(r_a[n], expected[0])
        close(r_b[n], expected[1].T)


@pytest.mark.parametrize(
    "gate",
    [
        lambda a, b: a * b.tanh(),
        lambda a, b: F.silu(a).mul(b),
        lambda a, b: torch.mul(a, other=torch.sigmoid(b)),
        lambda a, b: F.glu(torch.cat([a, b], -1)),
        lambda a, b: torch.addcmul(torch.zeros_like(a.detach()), a, b),
    ],
)
def test_gates_share_equally(gate):
    _, _, found, r = shown(gate, layers="ab")
    for one in found:
        close(one, r / 2)


def test_a_gate_for_each_channel():
    # Squeeze and excitation: the gate is computed by a layer, so that it is an activation and no statistic.
    _, _, (r_a, r_b), r = shown(lambda a, b: a * b.mean(1, keepdim=True).sigmoid(), layers="ab")
    close(r_a, r / 2)
    close(r_b.sum(1), r.sum(1) / 2)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_softmax(masked, spread):
    hidden = torch.ones(5, 6, dtype=torch.bool).triu(2) if masked else torch.zeros(5, 6, dtype=torch.bool)
    (a,), _, (r_a,), r = shown(
        lambda a: torch.softmax(a.masked_fill(hidden, float("-inf")), -1),
        layers="a",
        bias="redistribute" if spread else "absorb",
    )
    for n in range(len(a)):
        x = np.where(hidden.numpy(), -np.inf, a[n].numpy())
        close(r_a[n], softmax_of_rows(x, r[n], spread)[1])


LATER = torch.ones(5, 5, dtype=torch.bool).triu(1)
BIAS = numbers(5, 5, seed=4)
ATTENTIONS = {
    "plain": ({}, {}),
    "scaled": ({"scale": 0.7}, {"scale": 0.7}),
    "causal": ({"is_causal": True}, {"hidden": LATER.numpy()}),
    "masked": ({"attn_mask": ~LATER.T}, {"hidden": LATER.T.numpy()}),
    "added": ({"attn_mask": BIAS}, {"bias": BIAS.numpy()}),
    "added with nothing": (
        {"attn_mask": torch.zeros(5, 5, dtype=torch.float64).masked_fill(LATER, float("-inf"))},
        {"hidden": LATER.numpy()},
    ),
}
ATTENTIONS["masked"][0]["attn_mask"].fill_diagonal_(True)
ATTENTIONS["masked"][1]["hidden"] = ~ATTENTIONS["masked"][0]["attn_mask"].numpy()


def by_steps(q, k, v, attn_mask=None, is_causal=False, scale=None):
    """Attention as networks write it down themselves."""
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = torch.where(LATER, torch.finfo(scores.dtype).min, scores)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float64).to(q.dtype), v)


@pytest.mark.parametrize("written", ["operation", "by steps"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name, written):
    options, slow = ATTENTIONS[name]
    attend = F.scaled_dot_product_attention if written == "operation" else by_steps
    values, _, found, r = shown(lambda q, k, v: attend(q, k, v, **options))
    for n in range(len(r)):
        expected = attention(*(value[n].numpy() for value in values), r[n], **slow)
        for one, other in zip(found, expected, strict=True):
            close(one[n], other)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_step_by_step_where_biases_are_spread(name):
    def run(attend):
        return shown(lambda q, k, v: attend(q, k, v, **ATTENTIONS[name][0]), bias="redistribute")[2]

    for one, other in zip(run(F.scaled_dot_product_attention), run(by_steps), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8 * np.abs(other).max())


def heads(x, count):
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def test_queries_that_share_keys():
    def attend(q, k, v):
        k, v = (heads(x, 3)[:, :1] for x in (k, v))
        return F.scaled_dot_product_attention(heads(q, 3), k, v, enable_gqa=True)

    values, _, found, r = shown(attend)
    for n in range(len(r)):
        q, k, v = (value[n].numpy() for value in values)
        r_k, r_v = np.zeros((2, *k[:, :2].shape))
        for head in range(3):
            own = slice(2 * head, 2 * head + 2)
            r_q, more_k, more_v = attention(q[:, own], k[:, :2], v[:, :2], r[n, head])
            close(found[0][n][:, own], r_q)
            r_k, r_v = r_k + more_k, r_v + more_v
        close(found[1][n][:, :2], r_k)
        close(found[2][n][:, :2], r_v)


CONSTANTS = {
    "queries": lambda attend, a, b: attend(BIAS.expand(len(a), 5, 5), a[..., :5], b[..., :5]),
    "keys": lambda attend, a, b: attend(a[..., :5], BIAS.expand(len(a), 5, 5), b[..., :5]),
    "values": lambda attend, a, b: attend(a[..., :5], b[..., :5], BIAS.expand(len(a), 5, 5)),
    "queries and keys": lambda attend, a, b: attend(*BIAS.expand(2, len(a), 5, 5), a[..., :5] + b[..., :5]),
    "keys and values": lambda attend, a, b: attend(a[..., :5] + b[..., :5], *BIAS.expand(2, len(a), 5, 5)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_what_is_constant_takes_no_part(name):
    def run(attend):
        return shown(lambda a, b: CONSTANTS[name](attend, a, b), layers="ab")[2]

    for one, other in zip(run(F.scaled_dot_product_attention), run(by_steps), strict=True):
        close(one, other)


class TestValuePath:
    """Ali et al. 2022: attention weights are constants, so that R_i(V) = sum_j s_ji V_ip R_jp / O_jp."""

    @pytest.mark.parametrize("written", ["operation", "by steps"])
    @pytest.mark.parametrize("name", ATTENTIONS)
    def test_relevance_flows_through_the_values(self, name, written):
        options, slow = ATTENTIONS[name]
        attend = F.scaled_dot_product_attention if written == "operation" else by_steps
        values, _, found, r = shown(lambda q, k, v: attend(q, k, v, **options), rule="value-path")
        assert not found[0].any()
        assert not found[1].any()
        for n in range(len(r)):
            q, k, v = (value[n].numpy() for value in values)
            scores = q @ k.T * slow.get("scale", 1 / math.sqrt(6)) + slow.get("bias", 0.0)
            s, _ = softmax_of_rows(np.where(slow.get("hidden", False), -np.inf, scores), np.zeros_like(scores))
            close(found[2][n], product_of_matrices(s, v, r[n], 0.0)[1])

    def test_it_is_conserved_without_biases(self):
        encoder = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, bias=False, norm_first=True)
        net = Written(lambda net, x: net.out(net.encoder(x).flatten(1)), encoder=encoder, out=nn.Linear(30, 3, False))
        net = settle(net)
        with torch.no_grad():
            start = net(SEQUENCES).amax(1)
        found = relevance(net, SEQUENCES, ["input", "encoder"], rule="value-path")
        for values in found.values():
            close(total(values).numpy(), start.numpy())


def module(bias=True, **options):
    return settle(nn.MultiheadAttention(6, 2, batch_first=True, bias=bias, **options)).requires_grad_(False)


PADDING = torch.tensor([[False, False, False, True, True]])
MODULES = {
    "plain": (module(), {}, None),
    "without weights": (module(), {"need_weights": False}, None),
    "no bias": (module(False), {}, None),
    "masked": (module(), {"attn_mask": LATER, "need_weights": False}, ~LATER),
    "padded": (module(), {"key_padding_mask": PADDING}, ~PADDING),
    "both": (module(), {"key_padding_mask": PADDING, "attn_mask": LATER}, ~(LATER | PADDING)),
    "added": (module(), {"attn_mask": BIAS}, BIAS),
    "other sizes": (module(kdim=6, vdim=6), {}, None),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_module_is_its_parts(name):
    mixer, options, mask = MODULES[name]
    separate = [getattr(mixer, f"{one}_proj_weight") for one in "qkv"]
    weights = separate if mixer.in_proj_weight is None else mixer.in_proj_weight.chunk(3)
    shifts = (None,) * 3 if mixer.in_proj_bias is None else mixer.in_proj_bias.chunk(3)

    def by_hand(x):
        q, k, v = (heads(F.linear(x, w, b), 2) for w, b in zip(weights, shifts, strict=True))
        return mixer.out_proj(by_steps(q, k, v, mask).transpose(1, 2).flatten(2))

    def by_module(x):
        given = {key: PADDING.expand(len(x), 5) if value is PADDING else value for key, value in options.items()}
        return mixer(x, x, x, **given)[0]

    _, one, (found,), r = shown(by_module, layers="a")
    _, other, (expected,), r_hand = shown(by_hand, layers="a")
    close(one.numpy(), other.numpy())
    close(r, r_hand)
    close(found, expected)


def test_the_module_returns_its_weights():
    mixer = module()
    net = settle(Written(lambda net, x: net.out(net.mixer(x, x, x)[0][:, 0]), mixer=mixer, out=nn.Linear(6, 3)))
    kept = []

    def see(module, inputs, output):
        kept.append(output[1].detach())

    handle = net.mixer.register_forward_hook(see)
    relevance(net, SEQUENCES, ["input"], rule="attnlrp", batch_size=4)
    handle.remove()
    with torch.no_grad():
        expected = net.mixer(SEQUENCES, SEQUENCES, SEQUENCES)[1]
    close(kept[-1].numpy(), expected.numpy())


def test_attention_in_single_precision():
    net = settle(
        Written(lambda net, x: net.out(by_steps(net.a(x), net.a(x), x)[:, 0]), a=nn.Linear(6, 6), out=nn.Linear(6, 3))
    )
    expected = relevance(net, SEQUENCES, ["input"], rule="attnlrp")["input"]
    found = relevance(net.float(), SEQUENCES.float(), ["input"], rule="attnlrp")["input"]
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_channels_gate_pictures():
    def excite(net, x):
        y = net.conv(x)
        gate = torch.sigmoid(net.up(F.relu(net.down(F.adaptive_avg_pool2d(y, 1)))))
        return net.out(net.z(y * gate).mean((2, 3)))

    net = settle(
        Written(
            excite,
            conv=nn.Conv2d(2, 4, 3),
            down=nn.Conv2d(4, 2, 1),
            up=nn.Conv2d(2, 4, 1),
            z=nn.Identity(),
            out=nn.Linear(4, 3),
        )
    )
    found = relevance(net, IMAGES, ["conv", "up", "z"], rule="attnlrp")
    close(total(found["up"]).numpy(), total(found["z"]).numpy() / 2)


@pytest.mark.usefixtures("kept_together")
@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("bottom", [torch.finfo(torch.float64).min, -math.inf])
def test_a_mask_that_hides_nothing_is_as_none(bottom, bias):
    """Networks leave the mask out for batches without padding: an input is to have one relevance in every batch."""

    def masked(net, x):
        scores = net.q(x) @ net.k(x).transpose(-1, -2)
        hidden = torch.zeros(len(x), 1, 5, dtype=torch.bool)
        hidden[:, :, 3:] = (torch.arange(len(x)) > 1)[:, None, None]
        if net.always or bool(hidden.any()):
            scores = scores + torch.zeros(hidden.shape, dtype=x.dtype).masked_fill(hidden, bottom)
        return net.out((scores.softmax(-1) @ x)[:, 0])

    net = settle(Written(masked, q=nn.Linear(6, 6), k=nn.Linear(6, 6), out=nn.Linear(6, 3)))
    net.always = False
    whole, alone = (relevance(net, x, ["input", "q"], epsilon=0.1, bias=bias) for x in (SEQUENCES, SEQUENCES[:2]))
    net.always = True
    zeros = relevance(net, SEQUENCES[:2], ["input", "q"], epsilon=0.1, bias=bias)
    for layer, values in whole.items():
        close(alone[layer], values[:2])
        close(zeros[layer], values[:2])
