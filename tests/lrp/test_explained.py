"""What is explained of networks with many rows of scores per input: equal to loops over pixels and tokens, float64."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.errors import ModelError, SettingError, UnsupportedOperationError
from idc_core.lrp.explained import digest_of, explaining, said_of
from idc_core.lrp.scores import scores_of
from idc_core.tracing.trace import collect
from tests.lrp.networks import IMAGES, SEQUENCES, TOKENS, Written, settle

LAYERS = ["input", "a"]


@pytest.fixture(scope="module")
def segmenting():
    def forward(net, x):
        return {"aux": {"loss": 0.0}, "out": net.out(torch.relu(net.a(x)))}

    return settle(Written(forward, a=nn.Conv2d(2, 4, 3, padding=1), out=nn.Conv2d(4, 3, 1)))


@pytest.fixture(scope="module")
def reading():
    def forward(net, x):
        return (net.out(torch.tanh(net.a(x)[0])),)

    return settle(Written(forward, a=nn.LSTM(6, 5, batch_first=True), out=nn.Linear(5, 3)))


class Masked(nn.Module):
    """Scores per token of a mask that it only hands on."""

    def __init__(self):
        super().__init__()
        self.a, self.out = nn.Embedding(10, 6), nn.Linear(6, 3)

    def forward(self, input_ids, attention_mask=None):
        return self.out(torch.relu(self.a(input_ids)))


def slowly(network, inputs, picks, rule="z", **settings):
    """Return the mean relevance of scores that are picked one by one, class 1."""
    found = [idc.relevance(network, inputs, LAYERS, rule, explain=pick, target=1, **settings) for pick in picks]
    return {layer: np.mean([one[layer] for one in found], 0) for layer in LAYERS}


def same(found, expected):
    for layer in LAYERS:
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-9, atol=1e-9, err_msg=layer)


# The mean shares its relevance among the pixels as they add to it, so that it is the mean of the pixels' relevance.
@pytest.mark.parametrize("settings", [{"rule": "z"}, {"rule": "z", "bias": "redistribute"}])
def test_the_mean_over_pixels(segmenting, settings):
    found = idc.relevance(segmenting, IMAGES, LAYERS, explain="mean-pixels", target=1, **settings)
    places = [(i, j) for i in range(7) for j in range(7)]
    picks = [lambda output, i=i, j=j: output["out"][:, :, i, j] for i, j in places]
    expected = slowly(segmenting, IMAGES, picks, **settings)
    same(found, expected)
    with torch.no_grad():
        score = segmenting(IMAGES)["out"].mean((2, 3))[:, 1]
    if "bias" in settings:
        np.testing.assert_allclose(found["input"].sum((1, 2, 3)), score, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "tokens"), [("mean-tokens", range(5)), ("first-token", [0]), ("last-token", [4]), ("token-2", [2])]
)
def test_tokens(reading, name, tokens):
    found = idc.relevance(reading, SEQUENCES, LAYERS, "z", explain=name, target=1)
    same(found, slowly(reading, SEQUENCES, [lambda output, t=t: output[0][:, t] for t in tokens]))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ["mean-tokens", "first-token", "last-token"])
def test_padding_is_left_out_where_a_mask_is_given(name, side):
    network, lengths = settle(Masked()), [5, 3, 1, 4]
    mask = torch.tensor([[1] * length + [0] * (5 - length) for length in lengths])
    mask = mask.flip(1) if side == "left" else mask
    found = idc.relevance(network, {"input_ids": TOKENS, "attention_mask": mask}, LAYERS, "z", explain=name, target=1)
    for row in range(4):
        read = [token for token in range(5) if mask[row, token]]
        chosen = {"mean-tokens": read, "first-token": read[:1], "last-token": read[-1:]}[name]
        picks = [lambda output, t=t: output[:, t] for t in chosen]
        expected = slowly(network, TOKENS[row : row + 1], picks)
        same({layer: found[layer][row : row + 1] for layer in LAYERS}, expected)


# A detector's best box per class, as a person may name it.
def test_a_function(reading):
    found = idc.relevance(reading, SEQUENCES, LAYERS, "z", explain=lambda output: output[0].amax(1), target=1)
    with torch.no_grad():
        best = reading(SEQUENCES)[0][:, :, 1].argmax(1).tolist()
    for row, token in enumerate(best):
        expected = slowly(reading, SEQUENCES[row : row + 1], [lambda output, t=token: output[0][:, t]])
        same({layer: found[layer][row : row + 1] for layer in LAYERS}, expected)


def test_everything_else_takes_it_by_a_hook_that_goes_again(segmenting):
    images = IMAGES.repeat(10, 1, 1, 1)
    with explaining(segmenting, "mean-pixels"):
        criterion = idc.IDC(segmenting, "a", 2).fit(images)
        scores = collect(segmenting, IMAGES, []).scores
    assert criterion.important.shape == (2,)
    with torch.no_grad():
        np.testing.assert_allclose(scores, segmenting(IMAGES)["out"].mean((2, 3)), rtol=1e-6)
    assert not segmenting._forward_hooks
    with pytest.raises(ModelError):
        idc.relevance(segmenting, IMAGES[:, :1], ["a"], explain="mean-pixels")
    assert not segmenting._forward_hooks
    assert not segmenting._forward_hooks_with_kwargs


@pytest.mark.parametrize(
    ("explain", "kind", "said"),
    [
        (None, ModelError, r"shape \(1, 3, 7, 7\); expected scores of shape \(n, classes\). Say which .*mean-pixels"),
        ("mean-tokens", ModelError, r"takes scores of shape \(n, tokens, classes\); .*shape \(1, 3, 7, 7\)"),
        ("pixels", SettingError, "explain must be 'mean-pixels', .*'token-N' or a function.*, not 'pixels'"),
        (3, SettingError, "explain must be .*, not 3"),
        (lambda output: output["output"], ModelError, "'<lambda>', given as explain, failed on .* a dict: KeyError"),
        (lambda output: output["out"], ModelError, r"shape \(1, 3, 7, 7\); expected scores"),
        (lambda output: output["out"].flatten(1).cumprod(1), UnsupportedOperationError, "cumprod"),
    ],
)
def test_mistakes(segmenting, explain, kind, said):
    with pytest.raises(kind, match=said):
        idc.relevance(segmenting, IMAGES, ["a"], explain=explain)


def test_a_token_that_is_not_there(reading):
    with pytest.raises(ModelError, match="'token-7': the network returns scores of 5 tokens"):
        idc.relevance(reading, SEQUENCES, ["a"], explain="token-7")


def test_names_and_digests():
    def best(output):
        return output.amax(1)

    def worst(output):
        return output.amin(1)

    assert said_of("token-3") == "the scores of token 3, counted from 0"
    assert said_of(best) == "what the function 'best' makes of its output"
    digests = {digest_of(one) for one in ("mean-pixels", "mean-tokens", best, worst)}
    assert len(digests) == 4
    assert digest_of(best) in digests


Pair = namedtuple("Pair", "loss logits")


@dataclasses.dataclass
class Record:
    loss: torch.Tensor | None
    found: object


@dataclasses.dataclass(slots=True)
class Slots:
    loss: float
    logits: torch.Tensor


ONE, TWO = torch.ones(2, 3), torch.zeros(2, 3)


@pytest.mark.parametrize(
    "output",
    [
        ONE,
        {"loss": TWO, "logits": ONE},
        Pair(TWO, ONE),
        Slots(0.0, ONE),
        Record(None, {"out": ONE, "aux": TWO}),
        {"found": {"aux": TWO, "scores": (ONE, TWO)}},
        ((ONE, TWO), TWO),
        [None, "text", (ONE,)],
    ],
)
def test_scores_are_found_however_deep_they_lie(output):
    assert scores_of(output) is ONE


def test_what_holds_no_tensor_stays_as_it_is():
    loop = {}
    loop["out"] = loop
    assert scores_of(loop) is loop
    assert scores_of("text") == "text"
