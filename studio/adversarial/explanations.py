"""How the results of the Adversarial page were computed, one tab at a time."""

from __future__ import annotations

from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites.attacked import BLOCK
from studio.adversarial.attacks import Plan
from studio.jobs.results import View
from studio.widgets import layout


def explain_attack(view: View, plan: Plan, *sentences: str) -> None:
    """Say who described the attack, what runs it, and what of it is random."""
    entry = ATTACKS[plan.attack]
    layout.computed(
        view,
        f"{entry.label}: {entry.help} {entry.citation}. Gradient attacks run through foolbox; JSMA is our own "
        "implementation. Random starts and random goals depend only on the seed and the input's number. Finished "
        f"blocks of {BLOCK} inputs are kept on disk: stopping loses at most one, and no attack runs twice.",
        *sentences,
    )


def explain_inputs(view: View, plan: Plan) -> None:
    """Say how relevance before and after is compared."""
    explain_attack(
        view,
        plan,
        "Relevance: epsilon rule. Centre: mean position of the positive relevance. Rank correlation: Spearman.",
    )


def explain_sizes(view: View, plan: Plan) -> None:
    """Say how changes are measured."""
    explain_attack(
        view,
        plan,
        "Sizes are shares of the value range; a pixel counts as changed if a value moved by more than 0.00001.",
    )


def explain_cells(view: View, plan: Plan) -> None:
    """Say when a cell is added."""
    explain_attack(
        view, plan, "An added cell is a combination of clusters of the important neurons that no chosen test reaches."
    )
