"""Networks around one operation, which show its relevance.

Every network here is layers ``a``, ``b``, ``c`` on the input, one operation on their outputs, an identity ``z`` behind
it that shows the operation's relevance, and a dense layer.
"""

import numpy as np
import torch
from torch import nn

from idc_core import relevance
from tests.lrp.networks import SEQUENCES, Written, settle


def shown(operation, inputs=SEQUENCES, width=6, layers="abc", seed=0, **settings):
    """Return the outputs of the layers, the operation's output, and the relevance of all of them."""
    parts = {name: nn.Linear(inputs.shape[-1], width) for name in layers} | {"z": nn.Identity()}

    def run(net, x):
        return net.z(operation(*(getattr(net, name)(x) for name in layers))).flatten(1)

    net = settle(Written(run, **parts), seed)
    with torch.no_grad():
        features = net(inputs).shape[1]
    net = settle(Written(lambda net, x: net.out(run(net, x)), **parts, out=nn.Linear(features, 3)), seed)
    values = [getattr(net, name)(inputs).detach() for name in layers]
    found = relevance(net, inputs, [*layers, "z"], **{"rule": "attnlrp", **settings})
    return values, operation(*values).detach(), [found[name] for name in layers], found["z"]


def close(found, expected):
    scale = max(1e-12, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)
