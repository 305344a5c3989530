"""Attention rollout: equal to the paper's equation written slowly, however a network writes its attention."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.attribution.rollout import attention_rollout
from idc_core.errors import CancelledError, DataError, UnsupportedOperationError

HEADS, WIDTH = 2, 6


class Attention(nn.Module):
    """One attention with the weights of `nn.MultiheadAttention`, computed in one of three ways."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.weights = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def split(self, x):
        q, k, v = F.linear(x, self.weights.in_proj_weight, self.weights.in_proj_bias).chunk(3, -1)
        return (y.unflatten(2, (HEADS, -1)).transpose(1, 2) for y in (q, k, v))

    def forward(self, x, hidden):
        if self.way == "module":
            return self.weights(x, x, x, key_padding_mask=hidden, need_weights=False)[0]
        q, k, v = self.split(x)
        mask = None if hidden is None else ~hidden[:, None, None]
        if self.way == "fused":
            z = F.scaled_dot_product_attention(q, k, v, mask)
        else:
            scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
            scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
            if self.way == "heads among the inputs":
                z = torch.bmm(F.softmax(scores.flatten(0, 1), dim=-1), v.flatten(0, 1)).unflatten(0, (-1, HEADS))
            else:
                z = scores.softmax(-1) @ v
        return self.weights.out_proj(z.transpose(1, 2).flatten(2))


WAYS = ["module", "fused", "by hand", "heads among the inputs"]


class Encoder(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.attentions = nn.ModuleList(Attention(way) for _ in range(3))
        self.dense = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.logits = nn.Linear(WIDTH, 4)

    def encode(self, x, hidden=None):
        for norm, attention, dense in zip(self.norms, self.attentions, self.dense, strict=True):
            x = x + attention(norm(x), hidden)
            x = x + F.gelu(dense(x))
        return x


class Pictures(Encoder):
    """Patches of 2 x 2 pixels behind a class token, which alone is read."""

    def __init__(self, way):
        super().__init__(way)
        self.patches = nn.Conv2d(3, WIDTH, 2, stride=2)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))

    def start(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(len(x), -1, -1), x], 1)

    def forward(self, x):
        return self.logits(self.encode(self.start(x))[:, 0])


class Words(Encoder):
    """Words and positions; the mean over the words is read, and padding is neither seen nor read."""

    def __init__(self, way):
        super().__init__(way)
        self.embedding = nn.Embedding(20, WIDTH)
        self.positions = nn.Embedding(5, WIDTH)

    def start(self, ids):
        return self.embedding(ids) + self.positions(torch.arange(ids.shape[1]).expand(ids.shape))

    def forward(self, ids):
        seen = (ids != 0)[..., None]
        mean = (self.encode(self.start(ids), ids == 0) * seen).sum(1) / seen.sum(1)
        return F.softmax(self.logits(mean), 1)


def network(kind, way):
    torch.manual_seed(0)
    return kind(way).double().eval()


def tokens():
    ids = torch.randint(1, 20, (4, 5), generator=torch.Generator().manual_seed(0))
    ids[1, 3:] = 0
    ids[2, 0] = 0
    return ids


def images():
    return torch.rand(3, 3, 4, 6, generator=torch.Generator().manual_seed(0)).double()


def slowly(model, x, hidden, rows):
    """Equation 1 of Abnar and Zuidema for one input's tokens (length, width), element by element."""
    length, size = len(x), WIDTH // HEADS
    rollout = np.eye(length)
    for norm, attention, dense in zip(model.norms, model.attentions, model.dense, strict=True):
        y = norm(x)
        q, k, v = F.linear(y, attention.weights.in_proj_weight, attention.weights.in_proj_bias).chunk(3, -1)
        mean, z = np.zeros((length, length)), torch.zeros_like(x)
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            for i in range(length):
                score = [
                    -np.inf if hidden[j] else float((q[i, own] * k[j, own]).sum()) / size**0.5 for j in range(length)
                ]
                weights = np.exp(score) / np.exp(score).sum()
                mean[i] += weights / HEADS
                z[i, own] = sum(float(weights[j]) * v[j, own] for j in range(length))
        rollout = (0.5 * mean + 0.5 * np.eye(length)) @ rollout
        x = x + attention.weights.out_proj(z)
        x = x + F.gelu(dense(x))
    return rollout[rows].mean(0)


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_pictures_equal_the_equation(way):
    model = network(Pictures, way)
    found = attention_rollout(model, images())
    assert found.shape == (3, 3, 4, 6)
    for one, values in zip(images(), found, strict=True):
        start = model.start(one[None])[0]
        expected = slowly(model, start, [False] * len(start), [0])
        # Patches row by row, the class token left out; a patch's share is the same at its pixels and colours.
        patches = values.reshape(3, 2, 2, 3, 2).transpose(1, 3, 0, 2, 4).reshape(6, -1)
        np.testing.assert_allclose(patches.sum(1), expected[1:], atol=1e-9)
        np.testing.assert_allclose(patches, np.repeat(patches[:, :1], 12, 1), atol=1e-12)
        assert values.sum() == pytest.approx(1 - expected[0])


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_words_equal_the_equation(way):
    model = network(Words, way)
    ids = tokens()
    found = attention_rollout(model, ids)
    for one, values in zip(ids, found, strict=True):
        start = model.start(one[None])[0]
        expected = slowly(model, start, (one == 0).tolist(), torch.nonzero(one).flatten().tolist())
        np.testing.assert_allclose(values, expected, atol=1e-9)
        assert values.sum() == pytest.approx(1)
        assert not values[one.numpy() == 0].any()


def test_batches_and_the_callers_state_do_not_matter():
    model = network(Words, "fused").train()
    seen = []
    found = attention_rollout(model, tokens(), batch_size=3, on_progress=lambda *step: seen.append(step[:2]))
    assert seen[-1] == (4, 4)
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    np.testing.assert_allclose(found, attention_rollout(model.eval(), tokens().numpy()), atol=1e-12)
    with pytest.raises(CancelledError):
        attention_rollout(model, tokens(), on_progress=lambda *step: False)


def test_what_has_no_attention_of_one_set_of_tokens_is_refused():
    class Pooled(Pictures):
        def encode(self, x, hidden=None):
            x = self.attentions[0](x, hidden)
            return self.attentions[1](x[:, ::2], hidden)

    with pytest.raises(UnsupportedOperationError, match="none ran"):
        attention_rollout(nn.Sequential(nn.Flatten(), nn.Linear(72, 4)).double(), images())
    with pytest.raises(UnsupportedOperationError, match="here weights of shape"):
        attention_rollout(Pooled("fused").double(), images())
    with pytest.raises(DataError, match="at least one"):
        attention_rollout(network(Pictures, "fused"), images()[:0])


def test_a_network_of_transformers_is_followed():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.ViTConfig(image_size=8, patch_size=4, num_labels=3, **shape, attn_implementation="eager")
    model = transformers.ViTForImageClassification(config).double().eval()
    picture = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    found = attention_rollout(model, picture)
    with torch.no_grad():
        first, second = (w.mean(1) for w in model(picture, output_attentions=True).attentions)
    eye = torch.eye(5).double()
    expected = ((second + eye) / 2 @ (first + eye) / 2)[:, 0, 1:]
    patches = found.reshape(2, 3, 2, 4, 2, 4).sum((1, 3, 5)).reshape(2, 4)
    np.testing.assert_allclose(patches, expected.numpy(), atol=1e-9)
