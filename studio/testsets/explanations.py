"""How the results of the Test sets page were computed, one tab at a time."""

from __future__ import annotations

from studio.testsets.suite_comparison import ComparedSuites
from studio.widgets import layout


def explain_comparison(found: ComparedSuites) -> None:
    """Say what is learnt once, and how the inputs of every suite are made."""
    view = found.view
    noise = (
        "Noise on random pixels (U_O+S) and on the most relevant pixels (U_O+DI) follows RQ2 of the paper: the same "
        "values on 2 % of the pixels. "
    )
    layout.computed(
        view,
        f"Neurons and clusters are learnt once from the training inputs, for {max(found.comparison.ms)} neurons of "
        f"layer {view.setup.layer}. A smaller m uses the first of them.",
        f"{noise if view.test.inputs.ndim == 4 else ''}A suite adds a cell if it reaches it and no original test does. "
        "Suites made of the tests include the original tests; added inputs are the others.",
        _provenance(found),
    )


def explain_overlap(found: ComparedSuites) -> None:
    """Say how shared and added cells are counted."""
    layout.computed(
        found.view,
        f"Cells are those of the setup, m = {found.m}. A suite made of the tests includes them, so that it shares "
        "their cells. “Largest gain first” takes at every step the suite that adds most cells to those before it.",
    )


def explain_inputs(found: ComparedSuites) -> None:
    """Say when inputs are made, and of what."""
    layout.computed(
        found.view,
        "Inputs are made block by block when they are needed; random numbers depend only on the seed and the test's "
        "number.",
        _provenance(found),
    )


def _provenance(found: ComparedSuites) -> str:
    """List how every suite was made."""
    return "\n".join(
        f"* {option.label}: "
        + "; ".join(step.label + (f", seed {step.seed}" if step.seed is not None else "") for step in suite.provenance)
        + f"; fingerprint `{suite.fingerprint}`"
        for option, suite in zip(found.options, found.suites, strict=True)
    )
