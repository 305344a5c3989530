"""Networks of transformers called with ids and mask: each text as if its padding were not there, float64."""

import numpy as np
import pytest
import torch
import transformers

import idc_core as idc

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
LENGTHS = (7, 4, 2)
IDS = torch.randint(5, 60, (3, 7), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(7) < torch.tensor(LENGTHS)[:, None]).long()
CODED = transformers.BatchEncoding({"input_ids": IDS * MASK, "attention_mask": MASK})
BLOCKS = {"bert": "bert.encoder.layer.1", "tagger": "bert.encoder.layer.1", "gpt2": "transformer.h.1"}
EXPLAINED = {"bert": None, "tagger": "mean-tokens", "gpt2": "last-token"}


def network(kind):
    torch.manual_seed(0)
    if kind == "gpt2":
        marks = {"bos_token_id": None, "eos_token_id": None}
        config = transformers.GPT2Config(vocab_size=60, n_embd=16, n_layer=2, n_head=2, **marks)
        return transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager").double().eval()
    config = transformers.BertConfig(vocab_size=60, num_labels=3, **SMALL)
    kinds = {"bert": transformers.BertForSequenceClassification, "tagger": transformers.BertForTokenClassification}
    return kinds[kind](config).double().eval()


@pytest.mark.parametrize("kind", EXPLAINED)
def test_a_masked_batch_equals_each_text_alone(kind):
    net, layers, explain = network(kind), ["input", BLOCKS[kind]], EXPLAINED[kind]
    found = idc.relevance(net, CODED, layers, "attnlrp", target=1, explain=explain)
    for row, length in enumerate(LENGTHS):
        alone = idc.relevance(net, IDS[row : row + 1, :length], layers, "attnlrp", target=1, explain=explain)
        for layer in layers:
            scale = np.abs(alone[layer]).max()
            np.testing.assert_allclose(found[layer][row, :length], alone[layer][0], rtol=1e-9, atol=1e-9 * scale)
        assert not found["input"][row, length:].any()
