"""Time LXT and the engine in turns on a network of BERT-base's size; for the environment of the peers.

LXT has models of its own, made from those of an earlier transformers, and replaces the forward pass of `LayerNorm` for
every network of the process: here only while it works. Packages are entered without their own code, which imports
models of torchvision: of that the package index has a build for CUDA alone.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.measure import medians
from benchmarks.networks import bert_base
from benchmarks.passes import traced
from benchmarks.peers import enter
from idc_core import relevance
from idc_core.lrp.rules import RelevanceSettings

WORDS = "bert.embeddings.word_embeddings"
TOKENS, BATCH = 128, 8


@contextmanager
def replaced() -> Iterator[None]:
    """Let layer norms be LXT's for a while."""
    from lxt.efficient.patches import layer_norm_forward

    before = nn.LayerNorm.forward
    nn.LayerNorm.forward = layer_norm_forward
    try:
        yield
    finally:
        nn.LayerNorm.forward = before


def by_lxt(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the relevance of the words' embeddings: themselves times the gradient that LXT changes."""
    given = model.get_submodule(WORDS)(ids).detach().requires_grad_()
    with replaced():
        scores = model(inputs_embeds=given).logits
        scores.amax(1).sum().backward()
    return given.detach() * given.grad


def main(inputs: int, repeats: int) -> None:
    """Time both, once they agree, and print the result as JSON."""
    for package in ("lxt", "lxt.efficient", "lxt.efficient.models"):
        enter(package)
    from lxt.efficient.models import bert

    torch.manual_seed(0)
    ours = bert_base().eval()
    theirs = bert.BertForSequenceClassification(ours.config).eval().requires_grad_(False)
    theirs.load_state_dict(ours.state_dict())
    ids = torch.randint(5, 30_000, (inputs, TOKENS))
    settings = RelevanceSettings("attnlrp")
    expected, found = by_lxt(theirs, ids[:2]), relevance(ours, ids[:2], [WORDS], rule=settings)[WORDS]
    apart = float((torch.as_tensor(found) - expected).abs().max() / expected.abs().max())
    if apart > 1e-4:
        sys.exit(f"LXT and the engine differ by {apart:.1e} of the largest value.")
    layers = [layer for layer, module in ours.named_modules() if isinstance(module, nn.Linear)]

    def lxt() -> None:
        for batch in ids.split(BATCH):
            by_lxt(theirs, batch)

    words, every, library = medians(
        partial(traced, ours, ids, [WORDS], settings),
        partial(traced, ours, ids, layers, settings),
        lxt,
        repeats=repeats,
    )
    label = f"BERT-base, {inputs} x {TOKENS} tokens, AttnLRP"
    note = f"equal to {apart:.0e} of the largest value"
    print(
        json.dumps(
            [
                {
                    "what": f"{label}: relevance of the words' embeddings",
                    "ours": words,
                    "theirs": library,
                    "note": note,
                },
                {"what": f"{label}: relevance of all {len(layers)} layers", "ours": every, "theirs": library},
            ]
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
