"""The result of a search: its finding, the steps it took, other setups, and the case of a single model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from idc_core.errors import IdcError
from idc_core.figures.differential import disagreements_by_step
from studio.differential import search
from studio.differential.search import SearchResult, SearchSettings
from studio.jobs.results import View
from studio.shell import pins
from studio.shell.pages import PAGES, unmet
from studio.state.selection import Selection, selected
from studio.text import cell_name, literal, parse_cell, percent, plural
from studio.widgets import cell_search, layout


def sentence(result: SearchResult) -> str:
    """Put the finding into words."""
    finds, names = result.disagreements, layout.names(result.labels)
    between = f"Between {literal(names)}{_soon(finds.iterations[finds.made])}."
    already = len(finds) - finds.found
    rest = f" They disagree on {plural(already, 'more seed')} without any change." if already else ""
    if not finds.found:
        between += " This does not prove that they always agree. Try another constraint, more seeds or larger steps."
        return layout.lead(_found(result), between) + rest
    return f"{layout.lead(_found(result), between)}{rest} {_votes_sentence(result)}"


def _found(result: SearchResult) -> layout.Headline:
    """Say how many seeds lead to a disagreement."""
    finds = result.disagreements
    steps = plural(finds.settings["iterations"], "step")
    return layout.counted(f"Disagreements within {steps}", finds.found, finds.agreed, "seed")


def _soon(iterations: NDArray[np.int64]) -> str:
    """Say the median number of steps; of a few disagreements, the largest, and nothing of none."""
    if not len(iterations):
        return ""
    if len(iterations) < 4:
        return f", after at most {plural(int(iterations.max()), 'step')}"
    return f", half of them within {plural(int(np.median(iterations)), 'step')}"


def _votes_sentence(result: SearchResult) -> str:
    """Say how often each model is outvoted by the others."""
    from idc_core.generation import outvoted

    if len(result.labels) < 3:
        return "At least one of the two models is wrong on each; two models have no majority."
    made = result.disagreements.made
    against = outvoted(result.disagreements.predictions[made], result.bound)
    counts = [f"{label} on {number}" for label, number in zip(result.labels, against, strict=True)]
    without = int((~result.voted[made]).sum())
    text = f"Outvoted by the others: {layout.names(counts)}"
    return f"{text}; {without} have no majority." if without else f"{text}."


def draw_steps(view: View, result: SearchResult, settings: SearchSettings) -> None:
    """Show how many steps the search took."""
    _draw_steps(view, result, "steps")
    pins.beside(view, partial(_draw_side, view, settings), partial(_compare_setups, view, settings))
    explain(view, result)


def _draw_steps(view: View, result: SearchResult, key: str) -> None:
    """Draw the share of the seeds that lead to a disagreement by the number of steps."""
    finds = result.disagreements
    if not finds.agreed:
        st.caption("The models agree on no seed: nothing was searched.")
        return
    steps, taken = finds.settings["iterations"], np.sort(finds.iterations[finds.made])
    title = _found(result)
    layout.chart(
        view,
        key,
        lambda dark, log: disagreements_by_step(taken, finds.agreed, steps, title, logarithmic=log, dark=dark),
        alt=title,
        read="Of the seeds on which the models agree. If the curve is level at its end, more steps add little.",
        depends=result.key,
        table=pd.DataFrame({"steps": taken, "disagreements": np.arange(1, len(taken) + 1)}),
        scale="linear",
    )


def _draw_side(view: View, settings: SearchSettings, side: View, chosen: Selection, key: str) -> None:
    """Draw the steps of one of two setups."""
    result = _other(view, settings, side)
    if result is None:
        st.caption("No search is finished for this setup.")
    else:
        _draw_steps(side, result, f"steps-{key}")


def _compare_setups(view: View, settings: SearchSettings, here: View, there: View) -> str:
    """Say on which setup more seeds lead to a disagreement."""
    results = [_other(view, settings, side) for side in (here, there)]
    shares = [
        f"{percent(result.disagreements.share)} of {plural(result.disagreements.agreed, 'seed')}"
        for result in results
        if result
    ]
    if len(shares) < 2:
        return "One of the two is not finished."
    return f"Seeds that lead to a disagreement: {shares[0]} here, {shares[1]} on the pinned setup."


def _other(view: View, settings: SearchSettings, side: View) -> SearchResult | None:
    """Return the search of one of two setups, each with its own models and tests, all else as chosen here."""
    if unmet("differential", side.setup):
        return None
    same = side.setup.model == view.setup.model
    names = settings.models if same else tuple(search.usual(side))
    how = settings.how if settings.how == "random" or (same and settings.how != "cell") else "random"
    try:
        fitting = replace(settings, models=names, how=how, cell=None)
        return search.run(side, fitting, start=search.is_quick(side, fitting))
    except IdcError as error:
        st.error(literal(error))
        return None


def uncovered_cell(view: View) -> tuple[int, ...] | None:
    """Return the selected cell if no test reaches it, else an uncovered cell beside the fullest one."""
    from idc_core.generation.seeds import uncovered_beside

    picked = parse_cell(selected().cell, view.sizes)
    covered = {tuple(cell) for cell in view.table.cells.tolist()}
    return picked if picked is not None and picked not in covered else uncovered_beside(view.table)


def draw_one_model(view: View, name: str, finding: DeltaGenerator) -> None:
    """Search for inputs in an uncovered cell: what can be done with one model."""
    cell = uncovered_cell(view)
    label = search.offered(view)[name]
    if cell is None:
        finding.markdown("**One model cannot disagree, and the tests reach every cell.** Choose a second model.")
        return
    finding.markdown(
        f"{layout.label(label)} alone cannot disagree. Choose a second model, or search for inputs in an uncovered "
        f"cell, such as {cell_name(cell)}."
    )
    with st.container(horizontal=True):
        cell_search.offer(view, cell)
        if st.button("Choose a cell", key="to-coverage", help="Open the grid of cells to select another one."):
            st.switch_page(PAGES["coverage"].file)
    cell_search.draw(view, cell)


def explain(view: View, result: SearchResult) -> None:
    """Say how disagreements were found."""
    finds = result.disagreements
    rate = f", {finds.found / finds.seconds:.0f} disagreements per second" if finds.seconds > 0 else ""
    layout.computed(
        view,
        "All seeds advance together. Each step follows the gradient of the objective: the models that keep the seed's "
        "class, the model that is to lose it (random per seed), and the pull to uncovered targets. Every picture has 8 "
        "bits, so that a disagreement survives saving. Pei et al., DeepXplore, SOSP 2017, Algorithm 1. The objective "
        "Margin asks of models that keep the class no more than a safe margin.",
        f"{_diversity(view, result)}This search took {finds.seconds:.2g} s{rate}; that depends on the computer.",
    )


def _diversity(view: View, result: SearchResult) -> str:
    """Say how far disagreements are from their seeds."""
    finds = result.disagreements
    if not finds.found:
        return ""
    diversity = float(result.distances.l1[finds.made].mean())
    per_value = 255 * diversity / view.test.inputs[0].size
    return (
        f"Diversity, the mean L1 distance of a disagreement to its seed, is {diversity:.4g} "
        f"({per_value:.3g} grey levels per value). "
    )
