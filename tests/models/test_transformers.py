"""The blocks of the transformers, and what the two networks made of them promise."""

import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.models.encoder import Attention, Block
from idc_core.models.texttransformer import TextTransformer
from idc_core.models.vit import ViT


@pytest.fixture(params=[ViT, TextTransformer])
def network(request):
    torch.manual_seed(0)
    return request.param().eval()


@pytest.fixture
def text():
    torch.manual_seed(0)
    return TextTransformer().eval()


def messages(count=3, length=200):
    return torch.randint(2, 10_002, (count, length), generator=torch.Generator().manual_seed(1))


def inputs_of(network):
    return messages() if isinstance(network, TextTransformer) else torch.rand(3, 3, 32, 32)


@pytest.mark.parametrize("padded", [False, True])
def test_attention_is_that_of_torch(padded):
    torch.manual_seed(0)
    own, other = Attention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
    parts = (own.queries, own.keys, own.values)
    with torch.no_grad():
        other.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        other.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        other.out_proj.load_state_dict(own.output.state_dict())
    tokens = torch.randn(2, 5, 12)
    padding = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 1, 1, 1]]).bool() if padded else torch.zeros(2, 5).bool()
    expected, _ = other(tokens, tokens, tokens, key_padding_mask=padding)
    assert torch.allclose(own(tokens, ~padding[:, None, None]), expected, atol=1e-6)


def test_a_block_is_the_sum_of_its_halves():
    torch.manual_seed(0)
    block = Block(12, 3, 20).eval()
    tokens = torch.randn(2, 5, 12)
    half = tokens + block.attention(block.norm1(tokens))
    assert torch.allclose(block(tokens), half + block.mlp(block.norm2(half)))


def test_padding_changes_nothing(text):
    short = messages(length=40)
    padded = torch.zeros(3, 200, dtype=torch.int64)
    padded[:, :40] = short
    assert torch.allclose(text(padded), text(short), atol=1e-6)
    with torch.no_grad():
        before = text(padded)
        text.positions[40:] += 1.0
    assert torch.allclose(text(padded), before, atol=1e-6)


def test_an_empty_message_has_scores(text):
    empty = torch.zeros(1, 200, dtype=torch.int64)
    both = torch.cat((empty, messages(1)))
    assert torch.isfinite(text(empty)).all()
    assert torch.allclose(text(both)[:1], text(empty), atol=1e-6)
    text(both).sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in text.parameters())


def test_the_vision_transformer_reads_its_class_token():
    torch.manual_seed(0)
    network = ViT().eval()
    seen = {}
    for name in ("patches", "block1", "block4", "norm"):
        network.get_submodule(name).register_forward_hook(lambda _, __, out, name=name: seen.update({name: out}))
    network(torch.rand(2, 3, 32, 32))
    assert [tuple(seen[name].shape[1:]) for name in ("patches", "block1", "block4")] == [(96, 4, 4), (17, 96), (17, 96)]
    assert torch.equal(seen["norm"], network.norm(seen["block4"][:, 0]))


def test_relevance_reaches_every_layer(network):
    parts = ["input", *network.layers, "block1.attention.heads", "block2.mlp.hidden"]
    found = idc.relevance(network, inputs_of(network), parts, rule="attnlrp")
    for name in parts:
        values = torch.from_numpy(found[name])
        assert torch.isfinite(values).all(), name
        assert values.abs().sum() > 0, name
