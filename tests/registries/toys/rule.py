"""A relevance rule with a parameter of its own, as a person would write it: one file outside the package."""

import torch

from idc_core.base.parameters import Parameter
from idc_core.lrp.layer_rules import Bias, epsilon_rule, gamma_rule
from idc_core.lrp.rules import relevance_rule


@relevance_rule(
    "toy-mix",
    label="Toy mix",
    help="Between LRP-0 and the gamma rule.",
    citation="none",
    parameters=(Parameter("evenness", "Evenness", "1 is the gamma rule.", 0.5, 0.0, 1.0),),
)
def mixed(kind: str, bias: Bias, evenness: float):
    plain = epsilon_rule(0.0, bias)
    smooth = plain if kind == "normalisation" else gamma_rule(1.0, bias)

    def rule(*operation):
        pairs = zip(plain(*operation), smooth(*operation), strict=True)
        return tuple(torch.lerp(one, other, evenness) for one, other in pairs)

    return rule
