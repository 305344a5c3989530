"""Differential: pictures on which networks for one task disagree, so that at least one of them is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from studio.engine.results import View
from studio.shell import pins
from studio.shell.frame import frame, open_bench
from studio.shell.pages import PAGES
from studio.widgets import layout
from studio.widgets.text import count, percent, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from studio.differential.search import SearchResult, SearchSettings

view = open_bench(frame("differential"))
finding = st.empty()

from idc_core.coverage import CRITERIA  # noqa: E402 - after the frame is painted
from idc_core.coverage.registry import PAIRWISE  # noqa: E402
from idc_core.figures import differential as figures  # noqa: E402
from idc_core.figures.criteria import suite_scores  # noqa: E402
from studio.differential import disagreements as shown  # noqa: E402
from studio.differential import retraining, search, search_controls  # noqa: E402
from studio.engine import cell_search  # noqa: E402
from studio.shell import address  # noqa: E402

MEASURED = "measured"  # name of the control, also in the address


def sentence(result: SearchResult) -> str:
    """Put the finding into words."""
    found, names = result.disagreements, layout.names(result.labels)
    steps = found.settings["iterations"]
    if not len(found):
        return (
            f"**No difference found: {names} agree on every picture that the search has seen, from "
            f"{plural(found.seeds, 'seed')} within {plural(steps, 'step')}.** That is no proof that they always agree: "
            "another constraint, more seeds or larger steps may find one."
        )
    text = (
        f"**From {count(len(found))} of {plural(found.seeds, 'seed')} ({percent(found.share)}) the search came to a "
        f"picture on which {names} disagree{soon(found.iterations)}.** "
    )
    already = int((found.iterations == 0).sum())
    if already:
        text += f"On {already} of them they disagree without any change. "
    return text + votes_sentence(result)


def soon(iterations: NDArray[np.int64]) -> str:
    """Say how many steps half of the finds took; of a few, the most."""
    half = int(np.median(iterations))
    if len(iterations) < 4:
        return f", after at most {plural(int(iterations.max()), 'step')}"
    return f", from half of these within {plural(half, 'step')}"


def votes_sentence(result: SearchResult) -> str:
    """Say which model the others outvote."""
    from idc_core.generation import outvoted

    if len(result.labels) < 3:
        where = "on each of them" if len(result.disagreements) > 1 else "on it"
        return f"At least one of the two is wrong {where}; two models have no majority."
    against = outvoted(result.disagreements.predictions, result.bound)
    told = [f"{label} on {number}" for label, number in zip(result.labels, against, strict=True)]
    without = int((~result.voted).sum())
    text = f"Outvoted by the others: {layout.names(told)}"
    return f"{text}; {without} have no majority." if without else f"{text}."


def draw_steps(result: SearchResult, one: View, key: str) -> None:
    """Draw how many seeds have a find after so many steps."""
    found = result.disagreements
    title = (
        f"{count(len(found))} of {plural(found.seeds, 'seed')} have a find within "
        f"{plural(found.settings['iterations'], 'step')}"
    )
    if len(found):
        title += f"; half of the finds took at most {plural(int(np.median(found.iterations)), 'step')}"
    layout.chart(
        one,
        key,
        lambda dark: figures.found_by_step(
            found.iterations, found.seeds, found.settings["iterations"], title, dark=dark
        ),
        alt=title,
        read="the height is the share of the seeds that have led to a disagreement after so many steps. A curve that "
        "is level at its end says that more steps of this kind would hardly find more; at 0 steps stand seeds on which "
        "the models disagree as they are.",
        depends=result.key,
    )


def choose_measured() -> list[str]:
    """Choose the criteria that coverage is measured by; IDC always is."""
    fast = [name for name in CRITERIA if name not in PAIRWISE]
    said = address.read(MEASURED).split(",")
    st.session_state[MEASURED] = [name for name in CRITERIA if name in said] or fast
    st.pills(
        "Criteria",
        list(CRITERIA),
        selection_mode="multi",
        format_func=str.upper,
        key=MEASURED,
        on_change=lambda: address.keep(MEASURED, ",".join(st.session_state[MEASURED])),
        help="Which criteria are measured; IDC always is. LSC, DSC and CC compare every test with many others and take "
        f"seconds when they are chosen. Default {layout.names([name.upper() for name in fast])}.",
    )
    layout.explain_criteria()
    return [name for name in CRITERIA if name == "idc" or name in st.session_state[MEASURED]]


def draw_gain(result: SearchResult, found: search.CoverageGain) -> pd.DataFrame:
    """Draw the coverage of the tests before and after the finds are added. Returns the table."""
    names = list(found.scores)
    scores = np.array([found.scores[name] for name in names])
    tests, found = len(view.chosen), len(result.disagreements)
    higher = [name.upper() for name in names if found.scores[name][1] > found.scores[name][0]]
    cells = f"{plural(found.new_cells, 'new cell')} reached"
    title = f"{plural(found, 'find')} beside {plural(tests, 'test')}: {cells}; " + (
        f"{layout.names(higher)} {'rise' if len(higher) > 1 else 'rises'}" if higher else "no criterion rises"
    )

    def written(name: str, score: float) -> str:
        return percent(score) if found.shares[name] else f"{score:,.3g}"

    suites = [f"Tests ({count(tests)})", f"With finds ({count(tests + found)})"]
    texts = [[written(name, score) for score in found.scores[name]] for name in names]

    layout.chart(
        view,
        "search-coverage",
        lambda dark: suite_scores(scores, [name.upper() for name in names], suites, texts, title, dark=dark),
        alt=title,
        read="a panel is a criterion with a scale of its own: above what the tests alone cover in the bench's layer, "
        "below what the tests and the finds cover together. Disagreements are few, so gains are small.",
        depends=(result.key, tuple(names)),
    )
    return pd.DataFrame({"criterion": [name.upper() for name in names], "before": scores[:, 0], "after": scores[:, 1]})


def draw_side(side: View, chosen: Any, key: str) -> None:
    """Draw the steps of one of two benches."""
    result = _other(side)
    if result is None:
        st.caption("No search is finished for this bench.")
    else:
        draw_steps(result, side, f"steps-{key}")


def compare(here: View, there: View) -> str:
    """Say on which bench more seeds have a find."""
    results = _other(here), _other(there)
    if results[0] is None or results[1] is None:
        return "One of the two is not finished."
    mine, theirs = results[0].disagreements, results[1].disagreements
    return (
        f"Here {percent(mine.share)} of {plural(mine.seeds, 'seed')} have a find, on the pinned bench "
        f"{percent(theirs.share)} of {plural(theirs.seeds, 'seed')}."
    )


def _other(side: View) -> SearchResult | None:
    """Return the search of one of two benches, each with its own models and tests, all else as chosen here."""
    from dataclasses import replace

    if side.test.inputs.ndim != 4:
        return None
    same = side.bench.model == view.bench.model
    names = settings.models if same else tuple(search.usual(side))
    how = settings.how if settings.how == "random" or (same and settings.how != "cell") else "random"
    try:
        return search.run(side, replace(settings, models=names, how=how, cell=None))
    except IdcError as error:
        st.error(str(error))
        return None


def one_model(names: tuple[str, ...]) -> None:
    """Search for inputs in a cell that no test reaches: what can be done with one model."""
    from idc_core.generation.seeds import uncovered_beside
    from studio.shell.selection import selected
    from studio.widgets.text import parse_cell

    wanted = parse_cell(selected().cell, view.sizes)
    covered = {tuple(cell) for cell in view.table.cells.tolist()}
    cell = wanted if wanted is not None and wanted not in covered else uncovered_beside(view.table)
    label = search.offered(view)[names[0]]
    if cell is None:
        finding.markdown("**One model has nobody to disagree with, and the tests reach every cell.** Choose a second.")
        return
    finding.markdown(
        f"**{label} alone has nobody to disagree with.** The search makes inputs for a cell that no test reaches; "
        "select another cell on the Coverage page, or choose a second model."
    )
    st.header(f"Inputs made for cell {cell_search.cell_name(cell)}", anchor=False)
    cell_search.draw_made(view, cell)
    if st.button("Choose a cell", key="to-coverage", help="Open the grid of combinations to select another cell."):
        st.switch_page(PAGES["coverage"].file)


def draw(result: SearchResult) -> dict[str, pd.DataFrame]:
    """Draw everything behind a search with disagreements. Returns the tables."""
    row = shown.chosen_row(view, result)
    shown.draw_one(view, result, row)
    st.header("All finds", anchor=False)
    table = shown.table(view, result)
    shown.draw_table(view, result, table)
    shown.draw_more(view, result, row)
    st.subheader("Keep them as tests", anchor=False)
    shown.draw_keep(view, result)
    st.header("How soon", anchor=False)
    draw_steps(result, view, "steps")
    st.header("What they add to the tests", anchor=False)
    found = search.gain(view, result.disagreements.inputs, choose_measured(), result.key)
    for problem in found.problems:
        st.warning(problem)
    made = {"finds": table} | ({"finds-coverage": draw_gain(result, found)} if found.scores else {})
    st.header("Does training with them help?", anchor=False)
    return made | retraining.draw_retraining(view, result, settings)


def explain(settings: SearchSettings, result: SearchResult) -> None:
    """Say how it was computed."""
    found = result.disagreements
    rate = f"{len(found) / found.seconds:.0f} finds a second" if found.seconds > 0 else ""
    diversity = (
        f"Diversity, the mean L1 distance of a find to its seed, is {result.distances.diversity:.4g} "
        f"({255 * result.distances.diversity / view.test.inputs[0].size:.3g} grey levels a value). " * (len(found) > 0)
    )
    layout.computed(
        view,
        "All seeds climb together: each step follows the gradient of what the models that keep the seed's class and "
        "the one that is to lose it (drawn at random for each seed) say, plus the pull to what is uncovered. Every "
        "picture that is looked at has 8 bits in its range, so that what is found survives saving. Pei et al., "
        "DeepXplore, SOSP 2017, Algorithm 1; the objective asks of models that keep the class no more than a safe "
        "margin.",
        f"{diversity}This search took {found.seconds:.2g} s on this computer: {rate}; that depends on the machine and "
        "on what else it did.",
    )


if view.test.inputs.ndim != 4:
    finding.markdown(
        "**A search changes pictures little by little, and these tests are texts.** Choose a network for pictures in "
        "the sidebar."
    )
    st.stop()
settings = search_controls.choose(view)
if len(settings.models) < 2:
    one_model(settings.models)
    st.stop()
try:
    result = search.run(view, settings)
except IdcError as error:
    st.error(str(error))
    st.stop()
if result is None:
    finding.markdown("Stopped before anything was found.")
    st.stop()
finding.markdown(sentence(result))
if result.disagreements.stopped:
    st.caption("Stopped: these are the finds so far; the other seeds may still have one.")
tables: dict[str, pd.DataFrame] = {}
if len(result.disagreements):
    tables = draw(result)
else:
    draw_steps(result, view, "steps")

pins.beside(view, draw_side, compare)

explain(settings, result)
layout.take_away(
    tables,
    {
        "Disagreements and seeds (npz)": ("idc-finds.npz", "application/octet-stream", lambda: shown.npz(view, result)),
        "Contact sheet (PNG)": ("idc-finds.png", "image/png", lambda: shown.sheet(view, result)),
    }
    if len(result.disagreements)
    else {},
)
