"""IDC and relevance of transformers of many architectures: no code for any of them."""

import numpy as np
import pytest
import torch

from idc_core import IDC, relevance
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from tests.lrp.architectures import OF_ONE_KIND, PICTURES, TEXTS, blocks_of, built, inputs_of

ORDINARY = ("bert", "llama", "t5", "vit")
"""The others are slow tests, or rare ones."""
ARCHITECTURES = [
    pytest.param(name, marks=() if name in ORDINARY else pytest.mark.rare if name in OF_ONE_KIND else pytest.mark.slow)
    for name in (*TEXTS, *PICTURES)
]


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_first_middle_and_last_block(name):
    network, inputs = built(name), inputs_of(name)
    layers = blocks_of(network)
    with torch.no_grad():
        scores = network(inputs).logits.numpy()
    for rule in ("epsilon", "attnlrp", "value-path"):
        for values in relevance(network, inputs, layers, rule=rule).values():
            assert np.isfinite(values).all()
            assert np.abs(values).max() > 0
    found = collect(network, inputs, layers)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-3, atol=1e-4)
    for layer in layers:
        shape = found.shapes[layer]
        assert found.activations[layer].shape == (6, shape[-1] if len(shape) == 2 else shape[0])
        criterion = IDC(network, layer, m=3, rule="attnlrp").fit(torch.cat([inputs, inputs, inputs]))
        assert 0 < criterion.update(inputs).covered <= criterion.total


OTHER_MODULES = {
    "bart": "model.decoder.layers.2.encoder_attn",
    "flaubert": "transformer.attentions.2",
    "mbart": "model.decoder.layers.2.self_attn",
    "segformer": "segformer.stages.2.blocks.1",
    "swin": "swin.encoder.layers.1.blocks.1",
    "swinv2": "swinv2.encoder.layers.1.blocks.1",
    "t5": "transformer.decoder.block.2.layer.1",
    "umt5": "transformer.decoder.block.2.layer.0",
    "xlm": "transformer.attentions.2",
}
"""Modules with one attention, where the last block has none or several."""

WITHOUT = ("convbert", "convnext", "diffllama", "fnet")
"""No attention, or two kinds of it side by side in one module."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_heads_of_the_last_attention(name):
    network, inputs = built(name), inputs_of(name)
    layer = f"{OTHER_MODULES.get(name, blocks_of(network)[-1])}@heads"
    if name in WITHOUT:
        with pytest.raises(UnsupportedOperationError, match="attention"):
            collect(network, inputs, [layer])
        return
    found = collect(network, inputs, [layer], RelevanceSettings.of("attnlrp"))
    assert found.activations[layer].shape == (6, 2 if name in ("segformer", "swin", "swinv2") else 4)
    assert (found.activations[layer] > 0).all()
    assert np.abs(found.relevance[layer]).max() > 0
