"""A network that a person holds is never changed, whatever is done with it, and is the same each time it is opened."""

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.analysis.network_check import check_network
from idc_core.coverage import CRITERIA
from idc_core.errors import ModelError
from idc_core.models import MODELS
from idc_core.models.behaviour import copied
from idc_core.opening.live import enter_live

CLASSES = ("ant", "bee", "cat")
ORDER = ("cat", "ant", "bee")
INPUTS = np.random.default_rng(0).random((60, 1, 4, 4)).astype(np.float32)
TARGETS = INPUTS.reshape(60, -1)[:, :3].argmax(1)


class Held(nn.Module):
    """In double precision and in training, with a frozen layer, hooks, what passes leave, and a function of its own."""

    def __init__(self):
        super().__init__()
        self.hidden, self.norm, self.scores = nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.act, self.passes, self.last = torch.relu, 0, None
        self.own = lambda x: self.scores(x)

    def forward(self, x):
        self.passes += 1
        self.last = self.act(self.norm(self.hidden(x.to(self.hidden.weight.dtype).flatten(1))))
        return self.own(self.last)


@pytest.fixture
def net():
    """A person's network, which has been used."""
    torch.manual_seed(0)
    made = Held().double().train()
    made(torch.tensor(INPUTS))
    made.hidden.weight.requires_grad_(False)
    made.norm.register_forward_hook(lambda module, given, output: None)
    made.scores.weight.grad = torch.ones_like(made.scores.weight)
    idc.dataset("insects", class_names=CLASSES)(lambda split: (INPUTS, TARGETS))
    idc.network("held", data="insects", class_names=ORDER)(lambda: made)
    return made


def state(net):
    """Everything that can be seen of a network, but for what a pass of its own leaves behind."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_with_kwargs")
    return {
        "training": [module.training for module in net.modules()],
        "hooks": [[list(getattr(module, name).items()) for name in hooks] for module in net.modules()],
        "values": [(id(one), one.detach().numpy().tobytes()) for one in net.state_dict(keep_vars=True).values()],
        "gradients": [(one.requires_grad, None if one.grad is None else one.grad.tolist()) for one in net.parameters()],
        "attributes": [sorted(vars(module)) for module in net.modules()],
        "scores": copied(net).eval()(torch.tensor(INPUTS[:5])).tolist(),
    }  # fmt: skip


DOORS = {
    "load_model": lambda net: [idc.load_model("held") for _ in range(3)],
    "launch": lambda net: enter_live(net, (INPUTS, TARGETS), (INPUTS, TARGETS), class_names=CLASSES),
    "check-network": lambda net: check_network("held"),
    "analyze": lambda net: idc.analyze(
        idc.load_model("held"), *(idc.load_dataset("insects", split) for split in ("train", "test")), "hidden", 3
    ),
    "IDC": lambda net: idc.IDC(net.float(), "hidden", 3).fit(INPUTS).update(INPUTS),
    "nc": lambda net: CRITERIA["nc"](net.float(), "hidden").fit(INPUTS).update(INPUTS),
    "relevance": lambda net: idc.relevance(net.float(), INPUTS[:8], ["hidden"]),
    "attack": lambda net: idc.attack(net.float(), INPUTS[:8], TARGETS[:8], "fgsm"),
    "search": lambda net: idc.differential_search([net.float(), copied(net)], INPUTS[:4], iterations=2),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_held_network_is_as_it_was(net, door):
    if door not in ("load_model", "launch", "check-network", "analyze"):
        net.float()
    before = state(net)
    DOORS[door](net)
    assert state(net) == before


def test_it_is_the_same_each_time_it_is_opened(net):
    trained = copied(net).eval().float()
    scores = trained(torch.tensor(INPUTS))[:, [1, 2, 0]]
    loads = [idc.load_model("held") for _ in range(4)]
    for one in loads:
        torch.testing.assert_close(one(torch.tensor(INPUTS)), scores)
    assert len({one.card.fingerprint for one in loads}) == 1
    assert MODELS["held"].layers == ("hidden", "scores")


def test_a_copy_runs_its_own_layers_where_functions_hold_those_of_the_network(net):
    copy = copied(net)
    with torch.no_grad():
        copy.scores.weight.zero_()
    assert copy.eval()(torch.tensor(INPUTS)).unique(dim=0).shape[0] == 1
    assert net.scores.weight.abs().sum() > 0


def test_what_cannot_be_copied_is_taken_where_it_is_made_anew_and_else_told(net):
    def made():
        another = Held()
        another.left = (torch.ones(1, requires_grad=True) * 2,)
        return another

    one = made()
    idc.network("held", data="insects")(lambda: one)
    with pytest.raises(ModelError, match=r"cannot be copied .*, and is one object each time: make it anew"):
        idc.load_model("held")
    idc.network("held", data="insects")(made)
    assert idc.load_model("held").card.layers == ("hidden", "scores")
