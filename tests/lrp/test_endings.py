"""A softmax, log-softmax or sigmoid at the end, also written out: relevance starts at the scores before it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import idc_core as idc
from idc_core.lrp.endings import Endings, ending_of, scores_before
from idc_core.tracing.trace import collect

INPUTS = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))


def _softmax(x):
    e = torch.exp(x - x.max(1, keepdim=True).values)
    return e / e.sum(1, keepdim=True)


def _softmax_of_jax(x):
    high = torch.amax(x, 1).detach()
    e = (x - high[:, None]).exp()
    return torch.mul(e, torch.reciprocal(e.sum(-1)).unsqueeze(1))


def _log_softmax(x):
    high = x.amax(1, keepdim=True)
    return x - (high + torch.log(torch.exp(x - high).sum(1, keepdim=True)))


WRITTEN = {
    "softmax": ("softmax", lambda x: F.softmax(x, 1)),
    "softmax written out": ("softmax", _softmax),
    "softmax without the maximum": ("softmax", lambda x: x.exp() / x.exp().sum(1, keepdim=True)),
    "softmax of JAX": ("softmax", _softmax_of_jax),
    "softmax by the logarithm": ("softmax", lambda x: torch.exp(x - torch.logsumexp(x, 1, keepdim=True))),
    "special softmax": ("softmax", lambda x: torch.special.softmax(x, 1)),
    "log-softmax": ("log-softmax", lambda x: F.log_softmax(x, -1)),
    "special log-softmax": ("log-softmax", lambda x: torch.special.log_softmax(x, 1)),
    "expit": ("sigmoid", torch.special.expit),
    "log-softmax written out": ("log-softmax", _log_softmax),
    "log-softmax of shifted scores": (
        "log-softmax",
        lambda x: (lambda y: y - y.exp().sum(1, keepdim=True).log())(x - x.max(1, keepdim=True)[0]),
    ),
    "log of softmax": ("log-softmax", lambda x: torch.log(_softmax(x))),
    "sigmoid": ("sigmoid", torch.sigmoid),
    "sigmoid written out": ("sigmoid", lambda x: 1 / (1 + torch.exp(-x))),
    "sigmoid as reciprocal": ("sigmoid", lambda x: torch.reciprocal((x * -1).exp() + 1)),
    "sigmoid of exponentials": ("sigmoid", lambda x: x.exp() / (1 + x.exp())),
    "sigmoid by tanh": ("sigmoid", lambda x: 0.5 * (torch.tanh(0.5 * x) + 1)),
    "sigmoid by tanh, halves apart": ("sigmoid", lambda x: 0.5 * torch.tanh(x / 2) + 0.5),
}

OTHERS = {
    "scores": lambda x: x,
    "centred scores": lambda x: x - x.mean(1, keepdim=True),
    "scores less their maximum": lambda x: x - x.max(1, keepdim=True).values,
    "other exponentials": lambda x: x.exp() / (2 * x).exp().sum(1, keepdim=True),
    "shares": lambda x: x.abs() / x.abs().sum(1, keepdim=True),
    "over the batch": lambda x: x.exp() / x.exp().sum(0, keepdim=True),
    "sum of all": lambda x: x.exp() / x.exp().sum(),
    "over the inputs, turned": lambda x: F.softmax(x.T, 1).T,
    "some of the classes": lambda x: F.softmax(x, 1)[:, 1:],
    "scores by one probability": lambda x: torch.stack([F.softmax(row, 0)[0] * row for row in x]),
    "not one": lambda x: 2 / (1 + torch.exp(-x)),
}


class Ending(nn.Module):
    def __init__(self, end):
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.scores, self.end = nn.Linear(5, 7), nn.Linear(7, 3), end

    def forward(self, x):
        return self.end(self.scores(torch.relu(self.hidden(x))))


@pytest.mark.parametrize("what", WRITTEN)
def test_relevance_starts_before_the_ending(what):
    kind, end = WRITTEN[what]
    plain, ended = Ending(lambda x: x).eval(), Ending(end).eval()
    with torch.no_grad(), Endings():
        output = ended(INPUTS)
    assert ending_of(output)[0] == kind
    torch.testing.assert_close(scores_before(output), plain(INPUTS).detach())
    layers = ["input", "hidden", "scores"]
    expected, found = (idc.relevance(one, INPUTS, layers) for one in (plain, ended))
    for layer in layers:
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-5, atol=1e-7, err_msg=layer)
    np.testing.assert_allclose(collect(ended, INPUTS, []).scores, collect(plain, INPUTS, []).scores, rtol=1e-6)
    activations = [collect(one, INPUTS, ["scores"]).activations["scores"] for one in (plain, ended)]
    np.testing.assert_allclose(activations[1], activations[0], rtol=1e-6)


BEHIND = {
    "clamp": lambda y: y.clamp(-1e3, 1 - 1e-7),
    "clamp in place": lambda y: y.clamp_(min=-1e3),
    "clip": lambda y: torch.clip(y, -1e3),
    "nan_to_num": torch.nan_to_num,
    "round": lambda y: y.round(decimals=6),
    "index_select": lambda y: y.index_select(1, torch.arange(3)),
    "narrow": lambda y: y.narrow(1, 0, 3),
    "view": lambda y: y.view(y.size(0), -1),
    "squeeze": lambda y: y.unsqueeze(1).squeeze(1),
    "transposed twice": lambda y: y.T.t(),
    "moved": lambda y: y[:, :, None].permute(0, 2, 1).movedim(2, 1).squeeze(2),
    "flatten": lambda y: y.unflatten(1, (3, 1)).flatten(1),
    "several": lambda y: y.double().clamp(-1e3, 1).unsqueeze(2).nan_to_num().select(2, 0).float(),
}
FORMS = {
    "maps of one pixel": (lambda x: x[:, :, None, None], 1, lambda y: y.flatten(1)),
    "maps of one pixel, squeezed": (lambda x: x[:, :, None, None], 1, lambda y: y.squeeze(3).squeeze(2)),
    "one token": (lambda x: x[:, None], -1, lambda y: y[:, 0]),
    "classes first": (lambda x: x.T, 0, lambda y: y.T),
    "a batch of one, inputs last": (lambda x: x.T[None], 1, lambda y: y.permute(2, 1, 0).squeeze(2)),
}
_ENDS = {"softmax": F.softmax, "log-softmax": F.log_softmax, "sigmoid": lambda x, _: torch.sigmoid(x)}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", _ENDS)
@pytest.mark.parametrize("what", [*BEHIND, *FORMS, "exponential", "logarithm", "logarithm of a bound"])
def test_moves_and_bounds_may_be_behind_an_ending(what, kind):
    before, axis, after = FORMS.get(what, (lambda x: x, 1, BEHIND.get(what, lambda y: y)))
    if what == "a batch of one, inputs last":  # a sigmoid is noted of scores, and of maps of one place
        kind = "softmax"
    if what == "exponential":
        kind, after = "log-softmax", torch.exp
    if what.startswith("logarithm"):
        kind, after = "softmax", lambda y: (y + 1e-9 if what == "logarithm" else y.clamp(min=1e-9)).log()
    plain, ended = Ending(lambda x: x).eval(), Ending(lambda x: after(_ENDS[kind](before(x), axis))).eval()
    with torch.no_grad(), Endings():
        output = ended(INPUTS)
    torch.testing.assert_close(scores_before(output), plain(INPUTS).detach())
    expected, found = (idc.relevance(one, INPUTS, ["input", "hidden"]) for one in (plain, ended))
    for layer, values in expected.items():
        np.testing.assert_allclose(found[layer], values, rtol=1e-5, atol=1e-7, err_msg=layer)


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
def test_a_log_softmax_inside_is_the_same_as_written_out(bias):
    def written(x):
        return x - x.logsumexp(1, keepdim=True)

    networks = [Ending(lambda x, inner=inner: inner(x) @ INPUTS[:3, :3]) for inner in (written, nn.LogSoftmax(1))]
    expected, found = (idc.relevance(one.eval(), INPUTS, ["input", "scores"], bias=bias) for one in networks)
    for layer, values in expected.items():
        np.testing.assert_allclose(found[layer], values, rtol=1e-4, atol=1e-6, err_msg=layer)


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_ending_is_explained_as_it_is(what):
    with torch.no_grad(), Endings():
        output = Ending(OTHERS[what])(INPUTS)
    assert ending_of(output) is None
    assert scores_before(output) is output


def test_one_probability_stays_what_the_network_returns():
    class One(Ending):
        def forward(self, x):
            return torch.sigmoid(self.scores(self.hidden(x))[:, :1])

    network = One(None).eval()
    np.testing.assert_allclose(collect(network, INPUTS, []).scores, network(INPUTS).detach(), rtol=1e-6)


def test_attacks_and_captum_start_before_what_is_written_out():
    from idc_core.attribution.methods import attribute

    plain, ended = Ending(lambda x: x).eval(), Ending(_softmax).eval()
    for method in ("integrated-gradients", "gradient-x-input"):
        expected, found = (attribute(one, INPUTS, method, target=1) for one in (plain, ended))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
