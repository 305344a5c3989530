"""The rules of layer-wise relevance propagation.

A rule says how the relevance R_j of an output z_j = sum_i x_i w_ij + b_j is shared among the inputs x_i. Each is a
few lines on `Affine`; the registry `RULES` carries what menus, the command line and the docs show.

References
----------
.. [1] S. Bach, A. Binder, G. Montavon, F. Klauschen, K.-R. Müller, W. Samek, "On pixel-wise explanations for
   non-linear classifier decisions by layer-wise relevance propagation", PLoS ONE 10(7), 2015.
.. [2] G. Montavon, A. Binder, S. Lapuschkin, W. Samek, K.-R. Müller, "Layer-wise relevance propagation: an
   overview", in Explainable AI, Springer LNCS 11700, 2019.
.. [3] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-driven deep learning system testing", ICSE 2020.
.. [4] A. Andéol, Y. Kawakami, Y. Wada, T. Kanamori, K.-R. Müller, G. Montavon, "Learning domain invariant
   representations by joint Wasserstein distance minimization", Neural Networks 167, 2023 (gamma for any sign).
.. [5] R. Achtibat, S. M. V. Hatefi, M. Dreyer, A. Jain, T. Wiegand, S. Lapuschkin, W. Samek, "AttnLRP:
   Attention-aware layer-wise relevance propagation for transformers", ICML 2024.
.. [6] A. Ali, T. Schnake, O. Eberle, G. Montavon, K.-R. Müller, L. Wolf, "XAI for transformers: better explanations
   through conservative propagation", ICML 2022.

Notes
-----
Rules differ at operations that are affine in the input. What transformers have beside those is the same for every rule
and as in [5]: products of two activations divide their relevance equally between the factors, a softmax is expanded to
first order, element-wise functions hand their relevance on. `value-path` alone takes softmax weights as constants [6].
"""

from idc_core.base.parameters import Parameter
from idc_core.base.ranges import EPSILON
from idc_core.lrp.affine import Place, Rule
from idc_core.lrp.layer_rules import ALPHA, GAMMA, Bias, alpha_beta_rule, epsilon_rule, gamma_rule, pass_rule
from idc_core.lrp.rule_registry import relevance_rule

FAINT = 1e-30
"""Keeps z / z defined where activations are as small as those of attention over many positions."""

_STABILISER = Parameter(
    "epsilon",
    "Epsilon",
    "Damps sums that nearly cancel; 0 is the published rule, gradient times input in its limit.",
    0.0,
    offered=(0.0, 1e-9, 1e-6, 1e-3, 0.01, 0.1),
)


def _normalised(place: Place, bias: Bias) -> Rule:
    """Return what rules that treat signs apart do at a normalisation that no linear operation takes in."""
    return pass_rule if place.fixed else epsilon_rule(0.0, bias)


@relevance_rule(
    "z",
    label="LRP-0 (z)",
    help="Each input's share is exactly its contribution; noisy where a sum nearly cancels.",
    citation="Bach et al. 2015, eq. 56",
    kinds_only=True,
)
def _z(place: Place, bias: Bias) -> Rule:
    return epsilon_rule(0.0, bias)


@relevance_rule(
    "epsilon",
    label="LRP-epsilon",
    help="The paper's rule: contributions, damped by epsilon where a sum nearly cancels.",
    citation="Gerasimou et al. 2020, eq. 1; Bach et al. 2015, eq. 58",
    parameters=(EPSILON,),
    kinds_only=True,
)
def _epsilon(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias)


@relevance_rule(
    "gamma",
    label="LRP-gamma",
    help="Favours contributions that support the output; smoother heatmaps.",
    citation="Montavon et al. 2019",
    parameters=(GAMMA,),
    kinds_only=True,
)
def _gamma(place: Place, bias: Bias, gamma: float) -> Rule:
    return _normalised(place, bias) if place == "normalisation" else gamma_rule(gamma, bias)


@relevance_rule(
    "alpha-beta",
    label="LRP-alpha-beta",
    help="Treats supporting and opposing contributions apart, weighted alpha and alpha - 1.",
    citation="Bach et al. 2015, eq. 60",
    parameters=(ALPHA,),
    kinds_only=True,
)
def _alpha_beta(place: Place, bias: Bias, alpha: float) -> Rule:
    return _normalised(place, bias) if place == "normalisation" else alpha_beta_rule(alpha, bias)


@relevance_rule(
    "composite",
    label="LRP composite",
    help="Gamma for convolutions, epsilon for everything else: the usual choice for convolutional networks.",
    citation="Montavon et al. 2019",
    parameters=(EPSILON, GAMMA),
    kinds_only=True,
)
def _composite(place: Place, bias: Bias, epsilon: float, gamma: float) -> Rule:
    if place == "convolution":
        return gamma_rule(gamma, bias)
    return pass_rule if place.fixed else epsilon_rule(epsilon, bias)


@relevance_rule(
    "attnlrp",
    label="AttnLRP",
    help="The usual rule for transformers: contributions, with attention followed through queries, keys and values.",
    citation="Achtibat et al. 2024",
    parameters=(_STABILISER,),
    gradient_at_zero=True,
    kinds_only=True,
)
def _attnlrp(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias, FAINT)


@relevance_rule(
    "value-path",
    label="LRP value path",
    help="For transformers: attention weights are held constant, and relevance passes through the values only.",
    citation="Ali et al. 2022",
    parameters=(_STABILISER,),
    holds_weights=True,
    gradient_at_zero=True,
    kinds_only=True,
)
def _value_path(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias, FAINT)
