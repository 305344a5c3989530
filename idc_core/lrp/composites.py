"""The composites that the field uses for convolutional networks, by name.

References
----------
.. [1] G. Montavon, A. Binder, S. Lapuschkin, W. Samek, K.-R. Müller, "Layer-wise relevance propagation: an
   overview", in Explainable AI, Springer LNCS 11700, 2019.
.. [2] C. J. Anders, D. Neumann, W. Samek, K.-R. Müller, S. Lapuschkin, "Software for dataset-wide XAI: from local
   explanations to global insights with Zennit, CoRelAy, and ViRelAy", 2021.
.. [3] J. Zhang, Z. Lin, J. Brandt, X. Shen, S. Sclaroff, "Top-down neural attention by excitation backprop", ECCV 2016.
"""

from collections.abc import Mapping

from idc_core.base.ranges import EPSILON
from idc_core.lrp.affine import Place, Rule
from idc_core.lrp.layer_rules import (
    GAMMA,
    HIGH,
    LOW,
    Bias,
    alpha_beta_rule,
    box_rule,
    epsilon_rule,
    flat_rule,
    gamma_rule,
    pass_rule,
)
from idc_core.lrp.rule_registry import relevance_rule


def _by_kind(place: Place, bias: Bias, rules: Mapping[str, Rule], first: Rule | None = None) -> Rule:
    """Return what the composites of the field share: sums and averages by contributions, normalisations passed."""
    if place.first and first is not None:
        return first
    return pass_rule if place == "normalisation" else rules.get(place, epsilon_rule(0.0, bias))


@relevance_rule(
    "epsilon-plus",
    label="EpsilonPlus",
    help="z+ for convolutions, epsilon for dense layers.",
    citation="Montavon et al. 2019",
    parameters=(EPSILON,),
    kinds_only=True,
)
def _epsilon_plus(place: Place, bias: Bias, epsilon: float) -> Rule:
    return _by_kind(place, bias, {"convolution": alpha_beta_rule(1.0, bias), "dense": epsilon_rule(epsilon, bias)})


@relevance_rule(
    "epsilon-plus-flat",
    label="EpsilonPlusFlat",
    help="Flat for the first layer, z+ for convolutions, epsilon for dense layers.",
    citation="Lapuschkin et al. 2019",
    parameters=(EPSILON,),
)
def _epsilon_plus_flat(place: Place, bias: Bias, epsilon: float) -> Rule:
    return flat_rule(bias) if place.first else _epsilon_plus(place, bias, epsilon)


@relevance_rule(
    "epsilon-gamma-box",
    label="EpsilonGammaBox",
    help="z^B for a first convolution, gamma for the others, epsilon for dense layers.",
    citation="Montavon et al. 2019",
    parameters=(LOW, HIGH, EPSILON, GAMMA),
)
def _epsilon_gamma_box(place: Place, bias: Bias, low: float, high: float, epsilon: float, gamma: float) -> Rule:
    rules = {"convolution": gamma_rule(gamma, bias), "dense": epsilon_rule(epsilon, bias)}
    return _by_kind(place, bias, rules, box_rule(low, high, bias) if place == "convolution" else None)


@relevance_rule(
    "epsilon-alpha2-beta1",
    label="EpsilonAlpha2Beta1",
    help="Alpha-beta with alpha 2 for convolutions, epsilon for dense layers.",
    citation="Bach et al. 2015",
    parameters=(EPSILON,),
    kinds_only=True,
)
def _epsilon_alpha2_beta1(place: Place, bias: Bias, epsilon: float) -> Rule:
    return _by_kind(place, bias, {"convolution": alpha_beta_rule(2.0, bias), "dense": epsilon_rule(epsilon, bias)})


@relevance_rule(
    "epsilon-alpha2-beta1-flat",
    label="EpsilonAlpha2Beta1Flat",
    help="Flat for the first layer, alpha-beta with alpha 2 for convolutions, epsilon for dense layers.",
    citation="Lapuschkin et al. 2019",
    parameters=(EPSILON,),
)
def _epsilon_alpha2_beta1_flat(place: Place, bias: Bias, epsilon: float) -> Rule:
    return flat_rule(bias) if place.first else _epsilon_alpha2_beta1(place, bias, epsilon)


@relevance_rule(
    "excitation-backprop",
    label="Excitation backprop",
    help="Supporting contributions alone, in every layer with weights.",
    citation="Zhang et al. 2016",
    kinds_only=True,
)
def _excitation_backprop(place: Place, bias: Bias) -> Rule:
    return _by_kind(place, bias, {"convolution": alpha_beta_rule(1.0, bias), "dense": alpha_beta_rule(1.0, bias)})
