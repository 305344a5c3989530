"""AttnLRP against what its authors' library, LXT 2.1, measured on small transformers with random weights."""

import numpy as np
import pytest
import torch

from idc_core import relevance

EMBEDDINGS = {"bert": "bert.embeddings.word_embeddings", "gpt2": "transformer.wte", "llama": "model.embed_tokens"}


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_equal_to_lxt(name, attention, reference_folder):
    from transformers import AutoModelForSequenceClassification

    folder = reference_folder / "lxt" / name
    measured = np.load(folder / "expected.npz", allow_pickle=False)
    network = AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float64, attn_implementation=attention
    )
    ids, layer = torch.from_numpy(measured["ids"]), EMBEDDINGS[name]
    found = relevance(network, ids, [layer], rule="attnlrp", target=measured["target"])[layer]
    np.testing.assert_allclose(found, measured["relevance"], rtol=0, atol=1e-6 * np.abs(measured["relevance"]).max())
