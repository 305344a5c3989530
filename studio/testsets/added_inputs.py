"""Which inputs of a suite reach cells that the tests do not: a gallery, one of them beside its source, to take away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import CancelledError
from idc_core.figures import input_images
from idc_core.figures.adversarial import magnification, magnified
from studio.engine.results import View
from studio.shell import address
from studio.shell.selection import select, selected
from studio.testsets import suite_comparison
from studio.testsets.suite_comparison import ComparedSuites
from studio.widgets import gallery
from studio.widgets.downloads import MOST_PICTURES
from studio.widgets.keep_suite import keep_row
from studio.widgets.text import cell_name, lower, percent, plural, signed, times

if TYPE_CHECKING:
    from idc_core.analysis.predictions import Predictions
    from idc_core.suites import Suite

SHOWN, CELLS, PICK = "shown", "cells-m", "pick"  # names in the address
MOST_SHOWN = 30
LARGE = 224
"""Width of the large pictures in pixels, at least."""


def choose(found: ComparedSuites) -> tuple[int, int]:
    """Choose of which suite the inputs are shown, and for which number of neurons: the suite's place, and m."""
    places = {found.options[place].name: place for place in found.rivals}
    names = list(places)
    ms = list(found.comparison.ms)
    said, number = address.read(SHOWN), address.read(CELLS)
    m = int(number) if number in map(str, ms) else found.first_m()
    most = max(names, key=lambda name: found.added(m)[places[name]])
    name = said if said in names else most
    st.session_state[SHOWN], st.session_state[CELLS] = name, m
    labels = {one.name: one.label for one in found.options}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Inputs of",
            names,
            format_func=lambda name: labels.get(name, name),
            key=SHOWN,
            width=380,
            on_change=lambda: address.keep(SHOWN, st.session_state[SHOWN]),
            help=f"The suite whose inputs are shown. Default the one that adds most cells: {labels[most]}.",
        )
        st.segmented_control(
            "Cells of m",
            ms,
            key=CELLS,
            required=True,
            on_change=lambda: address.keep(CELLS, str(st.session_state[CELLS])),
            help="How many important neurons make the cells. Default the first for which a suite adds cells: "
            f"{found.first_m()}.",
        )
    return places[st.session_state[SHOWN]], int(st.session_state[CELLS])


def draw(found: ComparedSuites, number: int, m: int) -> None:
    """Show the inputs that add cells, and one of them beside the test that it was made of."""
    view, suite, cells = found.view, found.suites[number], found.results[number].cells[m]
    label = lower(found.options[number].label)
    if not len(cells.added):
        st.caption(f"At m = {m}, {label} reaches no cell that the original tests do not. Choose another suite, or m.")
        return
    order = np.argsort(cells.first, kind="stable")[:MOST_SHOWN]
    positions = cells.first[order]
    try:
        inputs = suite_comparison.take(view, suite, positions)
    except CancelledError:
        st.caption("Stopped before these inputs were made.")
        return
    adding = len(cells.adding)
    text = f"{plural(adding, 'input')} of {label} {'lies' if adding == 1 else 'lie'} in "
    st.caption(
        f"{text}{plural(len(cells.added), 'cell')} that no original test reaches. The first one of each is shown"
        + (f", {len(positions)} of {len(cells.added):,}" if len(positions) < len(cells.added) else "")
        + f". {legend(found, number)}. Click one to see what changed; its source is selected on all pages."
    )
    place = _picked(view, suite, positions)
    tiles = [gallery.Tile(int(one), caption(found, number, int(one))) for one in positions]
    gallery.choices(
        view,
        "adding",
        "Inputs that add cells",
        tiles,
        inputs,
        int(positions[place]),
        lambda position: _choose(suite, position),
    )
    _beside(found, number, m, int(positions[place]), inputs[place : place + 1])


def _picked(view: View, suite: Suite, positions: NDArray[np.int64]) -> int:
    """Return which of the shown inputs is looked at: the one that was clicked, or that of the selected test."""
    said = address.read(PICK)
    if said.isascii() and said.isdigit() and (found := np.flatnonzero(positions == int(said[:12]))).size:
        return int(found[0])
    here = np.flatnonzero(suite.origin[positions] == (-1 if selected().input is None else selected().input))
    return int(here[0]) if len(here) and selected().input is not None else 0


def _choose(suite: Suite, position: int) -> None:
    """Look at an input, and select the test that it was made of."""
    address.keep(PICK, str(position))
    if suite.origin[position] >= 0:
        select(input=int(suite.origin[position]))


def caption(found: ComparedSuites, number: int, position: int) -> str:
    """Write an input's source, its right answer and the network's."""
    suite, predictions = found.suites[number], found.results[number].predictions
    source = f"{suite.origin[position]}: " if suite.origin[position] >= 0 else ""
    if not found.view.is_classifier:
        return f"{source}{signed(suite.targets[position])} → {signed(predictions.confidence[position])} rad"
    true = suite.class_names[suite.targets[position]]
    wrong = found.judged(number) and not predictions.correct[position]
    return f"{source}{true} → {found.view.train.class_names[predictions.classes[position]]}" + (
        f" {gallery.WRONG}" if wrong else ""
    )


def legend(found: ComparedSuites, number: int) -> str:
    """Say how the captions are to be read."""
    if not found.view.is_classifier:
        return "Number of the source: true steering angle → the network's, positive to the left"
    text = "Number of the source: true class → the network's answer"
    return f"{text}; {gallery.WRONG} marks wrong answers" if found.judged(number) else text


def _beside(found: ComparedSuites, number: int, m: int, position: int, one: NDArray[Any]) -> None:
    """Show an input beside its source, with the difference, and say which cell it reaches."""
    view, suite = found.view, found.suites[number]
    predictions = found.results[number].predictions
    st.subheader("What changed", anchor=False)
    source = int(suite_comparison.source_places(view, suite, np.array([position]))[0])
    st.markdown(_told(found, number, m, position, source))
    if one.ndim != 4:
        st.text(gallery.written(view, one[0]) or "(no known words)")
        return
    shown = [(one, f"In this suite: {_answer(found, predictions, position)}")]
    if source >= 0:
        before = view.test.inputs[source : source + 1]
        shown.insert(0, (before, f"Original, {gallery.caption(view, source)}{_confidence(view, source)}"))
    with st.container(horizontal=True, key="what-changed"):
        for pixels, said in shown:
            tile = input_images.pictures(pixels, LARGE)[0]
            st.image(tile, caption=said, width=tile.shape[1], output_format="PNG", alt=said)
        if source >= 0:
            change = one - before
            factor, changed = magnification(change), int((one != before).any(axis=1).sum())
            tile = magnified(change, factor, LARGE)[0]
            said = f"Difference{times(factor)}: {plural(changed, 'pixel')} changed, "
            said += f"by {np.abs(change).max():.2g} at most"
            st.image(tile, caption=said, width=tile.shape[1], output_format="PNG", alt=said)
    if source >= 0:
        st.caption("In the difference, grey is unchanged, lighter became brighter, darker became darker.")
    else:
        st.caption("This input was not made of one of these tests, so there is no original beside it.")


def _answer(found: ComparedSuites, predictions: Predictions, position: int) -> str:
    if not found.view.is_classifier:
        return f"{signed(predictions.confidence[position])} rad"
    name = found.view.train.class_names[predictions.classes[position]]
    return f"answered {name} with confidence {percent(float(predictions.confidence[position]))}"


def _confidence(view: View, place: int) -> str:
    return f", confidence {percent(float(view.analysis.confidence[place]))}" if view.is_classifier else ""


def _told(found: ComparedSuites, number: int, m: int, position: int, source: int) -> str:
    """Say in words which cell an input reaches, and what became of the answer."""
    cells = found.results[number].cells[m]
    reached = cell_name(found.comparison.cell(cells.codes[position], m))
    many = int((cells.codes == cells.codes[position]).sum())
    text = f"**It reaches cell {reached}, which no original test does"
    text += "**, and it is the only one there." if many == 1 else f"**, with {plural(many - 1, 'other input')}."
    if source < 0:
        return text
    first = found.results[0].cells[m]
    base = np.flatnonzero(found.view.chosen == source)
    if len(base):
        text += f" Its source lies in cell {cell_name(found.comparison.cell(first.codes[base[0]], m))}."
    before = found.view.analysis.predictions[source]
    after = found.results[number].predictions.classes[position]
    if found.view.is_classifier and found.judged(number):
        names = found.view.train.class_names
        changed = "stays" if before == after else f"changes from {names[before]} to"
        text += f" The answer {changed} {names[after]}."
    return text


def take_away(found: ComparedSuites, number: int, m: int) -> dict[str, tuple[str, str, Any]]:
    """Return what can be taken away of a suite: all of it, and the inputs that add cells, as files."""
    from idc_core.suites import pack_suite, select_tests

    option, suite, cells = found.options[number], found.suites[number], found.results[number].cells[m]
    name = option.label
    binary = "application/octet-stream"
    files: dict[str, tuple[str, str, Any]] = {
        f"All {len(suite):,} inputs: {lower(name)} (npz)": ("idc-suite.npz", binary, lambda: pack_suite(name, suite))
    }
    if not len(cells.first):
        return files
    few = select_tests(suite, cells.first)
    what = f"The {plural(len(few), 'input')} that add{'s' if len(few) == 1 else ''} cells, one a cell"
    files[f"{what} (npz)"] = ("idc-adding.npz", binary, lambda: pack_suite(f"{name}, adding cells", few))
    if len(suite.shape) == 3:

        def sheet() -> bytes:
            shown = cells.first[:MOST_PICTURES]
            captions = [caption(found, number, int(one)) for one in shown]
            return input_images.png(input_images.contact_sheet(input_images.pictures(suite.take(shown)), captions))

        files[f"{what} (PNG)"] = ("idc-adding.png", "image/png", sheet)
    return files


def draw_keep(found: ComparedSuites, number: int, m: int) -> None:
    """Let a person keep the inputs that add cells, as a suite of their own."""
    from idc_core.suites import select_tests

    cells = found.results[number].cells[m]
    if not len(cells.first):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        keep_row(
            f"{found.options[number].label}, adding cells",
            len(cells.first),
            "keep-adding",
            lambda: select_tests(found.suites[number], cells.first),
        )
