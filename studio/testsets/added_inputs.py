"""Inputs of a suite that add cells: a gallery, one input beside its source, downloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError
from idc_core.figures import input_images
from idc_core.figures.adversarial import magnification, magnified
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.jobs.wording import amount, quantity
from studio.state import address
from studio.state.selection import select, selected
from studio.testsets import seeds
from studio.testsets.comparison_charts import CELLS, SHOWN, headline
from studio.testsets.suite_comparison import ComparedSuites, compare
from studio.text import cell_name, literal, lower, percent, plural, times
from studio.widgets import gallery, layout
from studio.widgets.downloads import MOST_PICTURES
from studio.widgets.keep_suite import Keepable, keep_row, keep_several
from studio.widgets.picture import draw_picture

if TYPE_CHECKING:
    from idc_core.suites import Suite

_PICK = "pick"
"""Name in the address: the input that is looked at."""
_MOST_SHOWN = 30
_LARGE = 224
"""Width of the large pictures in pixels, at least."""


def draw(view: View, names: list[str]) -> None:
    """Show the inputs that add cells, and one of them beside its source."""
    found = compare(view, names)
    if not found.additions:
        st.markdown(headline(found))
        return
    number, m = _choose_suite(found)
    _draw_added(found, number, m)
    _draw_save(found, number, m)
    layout.computed(
        view,
        "Inputs are made block by block when they are needed; random numbers depend only on the seed and the test's "
        "number.",
        found.provenance,
    )
    layout.take_away({}, _downloads(found, number, m))


def _choose_suite(found: ComparedSuites) -> tuple[int, int]:
    """Choose the suite whose inputs are shown, and the number of neurons: the suite's place, and m."""
    places = {found.options[place].name: place for place in found.additions}
    names, ms = list(places), list(found.comparison.ms)
    suite, number = address.read(SHOWN), address.read(CELLS)
    m = int(number) if number in map(str, ms) else found.first_m()
    most = max(names, key=lambda name: found.added(m)[places[name]])
    st.session_state[SHOWN], st.session_state[CELLS] = suite if suite in names else most, m
    labels = {option.name: option.label for option in found.options}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Suite",
            names,
            format_func=lambda name: labels.get(name, name),
            key=SHOWN,
            width=380,
            on_change=lambda: address.keep(SHOWN, st.session_state[SHOWN]),
            help=f"The suite whose inputs are shown. Default: the one that adds most cells, {literal(labels[most])}.",
        )
        st.segmented_control(
            "Important neurons (m)",
            ms,
            key=CELLS,
            required=True,
            on_change=lambda: address.keep(CELLS, str(st.session_state[CELLS])),
            help="Number of important neurons that define the cells. Default: the first for which a suite adds cells, "
            f"{found.first_m()}.",
        )
    return places[st.session_state[SHOWN]], int(st.session_state[CELLS])


def _draw_added(found: ComparedSuites, number: int, m: int) -> None:
    """Show the inputs that add cells, and one of them beside the test that it was made of."""
    view, suite, cells = found.view, found.suites[number], found.results[number].cells[m]
    label = literal(lower(found.options[number].label))
    if not len(cells.added):
        st.caption(f"At m = {m}, {label} adds no cells. Choose another suite or another m.")
        return
    order = np.argsort(cells.first, kind="stable")[:_MOST_SHOWN]
    positions = cells.first[order]
    try:
        inputs = _make_inputs(view, suite, positions)
    except CancelledError:
        st.caption("Stopped before these inputs were made.")
        return
    adding = len(cells.adding)
    some = f", {len(positions)} of {len(cells.added):,}" if len(positions) < len(cells.added) else ""
    lie = "lies" if adding == 1 else "lie"
    where = f"{plural(len(cells.added), 'cell')} that no original test reaches"
    finding = layout.claim(seeds.findings(found, {}, m)[number])
    st.markdown(layout.lead(finding, f"{plural(adding, 'input')} of {label} {lie} in {where}."))
    place = _picked(view, suite, positions)
    tiles = [gallery.Tile(int(row), _caption(found, number, int(row))) for row in positions]
    gallery.choices(
        view,
        "adding",
        "Inputs that add cells",
        tiles,
        inputs,
        int(positions[place]),
        lambda position: _choose(view, suite, position),
    )
    made_of_these = (_source_places(view, suite, positions) >= 0).any()
    then = "see what changed and to select its source" if made_of_these else "look at it"
    st.caption(f"The first input of each cell{some}. {_legend(found, number)}. Click one to {then}.")
    _draw_change(found, number, m, int(positions[place]), inputs[place : place + 1])


def _picked(view: View, suite: Suite, positions: NDArray[np.int64]) -> int:
    """Return the place of the input to look at: the one that was clicked, or that of the selected test."""
    position = address.position(address.read(_PICK))
    if position is not None and (places := np.flatnonzero(positions == position)).size:
        return int(places[0])
    sources = _source_places(view, suite, positions)
    here = np.flatnonzero((sources >= 0) & (view.test.ids[sources] == selected().input))
    return int(here[0]) if len(here) else 0


def _choose(view: View, suite: Suite, position: int) -> None:
    """Look at an input, and select the test that it was made of, where it is one of these."""
    address.keep(_PICK, str(position))
    source = int(_source_places(view, suite, np.array([position]))[0])
    if source >= 0:
        select(input=int(view.test.ids[source]))


def _caption(found: ComparedSuites, number: int, position: int) -> str:
    """Write an input's source, its true class and its prediction."""
    suite, predictions = found.suites[number], found.results[number].predictions
    second = f" and {suite.partner[position]}" * bool(suite.partner[position] >= 0)
    source = f"{suite.origin[position]}{second}: " if suite.origin[position] >= 0 else ""
    if not found.view.is_classifier:
        true, predicted = float(suite.targets[position]), float(predictions.confidence[position])
        test = found.view.test
        return f"{source}{amount(test, true, unit=False)} → {amount(test, predicted)}"
    true = suite.class_names[suite.targets[position]]
    wrong = f" {gallery.WRONG}" if found.judged(number) and not predictions.correct[position] else ""
    return f"{source}{true} → {found.view.train.class_names[predictions.classes[position]]}{wrong}"


def _legend(found: ComparedSuites, number: int) -> str:
    """Say how the captions are read."""
    if not found.view.is_classifier:
        what = quantity(found.view.test)
        ends = f" (positive: {what.positive.removeprefix('to the ')})" if what.signed else ""
        return f"Source: true {what.name} → prediction{ends}"
    text = "Source: true → predicted class"
    return f"{text} ({gallery.WRONG}: misclassified)" if found.judged(number) else text


def _draw_change(found: ComparedSuites, number: int, m: int, position: int, one: NDArray[Any]) -> None:
    """Show an input beside its source, with the difference, and say which cell it reaches."""
    view, suite = found.view, found.suites[number]
    st.header("What changed", anchor=False)
    source = int(_source_places(view, suite, np.array([position]))[0])
    st.markdown(_change_sentence(found, number, m, position, source))
    if one.ndim != 4:
        st.text(gallery.written(view, one[0]) or "(no known words)")
        return
    shown = [(input_images.pictures(one, _LARGE)[0], f"In this suite: {_prediction(found, number, position)}")]
    if source >= 0:
        before = view.test.inputs[source : source + 1]
        sure = f", confidence {percent(float(view.analysis.confidence[source]))}" if view.is_classifier else ""
        original = f"Original, {gallery.caption(view, source)}{sure}"
        shown.insert(0, (input_images.pictures(before, _LARGE)[0], original))
        change = one - before
        factor, changed = magnification(change), int((one != before).any(axis=1).sum())
        text = f"Difference{times(factor)} (grey: none): {plural(changed, 'pixel')} changed, at most by "
        text += f"{np.abs(change).max():.2g}"
        shown.append((magnified(change, factor, _LARGE)[0], text))
    with st.container(horizontal=True, key="what-changed"):
        for tile, text in shown:
            draw_picture(tile, text)
    if source < 0:
        st.caption("This input was not made of one of these tests, so there is no original beside it.")


def _prediction(found: ComparedSuites, number: int, position: int) -> str:
    predictions = found.results[number].predictions
    if not found.view.is_classifier:
        return amount(found.view.test, float(predictions.confidence[position]))
    name = found.view.train.class_names[predictions.classes[position]]
    return f"predicted {name}, confidence {percent(float(predictions.confidence[position]))}"


def _change_sentence(found: ComparedSuites, number: int, m: int, position: int, source: int) -> str:
    """Say which cell an input reaches, and whether its prediction changed."""
    cells = found.results[number].cells[m]
    reached = cell_name(found.comparison.cell(cells.codes[position], m))
    others = int((cells.codes == cells.codes[position]).sum()) - 1
    text = f"It reaches cell {reached}, which no original test reaches. "
    if others:
        text += f"{plural(others, 'other input')} of this suite {'is' if others == 1 else 'are'} in this cell. "
    if source < 0:
        return text.strip()
    first = found.results[0].cells[m]
    base = np.flatnonzero(found.view.chosen == source)
    if len(base):
        text += f"Its source is in cell {cell_name(found.comparison.cell(first.codes[base[0]], m))}."
    if found.view.is_classifier and found.judged(number):
        names = found.view.train.class_names
        before = found.view.analysis.predictions[source]
        after = found.results[number].predictions.classes[position]
        changed = "stays" if before == after else f"changes from {literal(names[before])} to"
        text += f" The prediction {changed} {literal(names[after])}."
    return text


def _downloads(found: ComparedSuites, number: int, m: int) -> dict[str, tuple[str, str, Callable[[], bytes]]]:
    """Return files of a suite: all of it, and the inputs that add cells."""
    from idc_core.suites import pack_suite, select_tests

    suite, cells, name = found.suites[number], found.results[number].cells[m], found.options[number].label
    binary = "application/octet-stream"
    files: dict[str, tuple[str, str, Callable[[], bytes]]] = {
        f"All {len(suite):,} inputs: {lower(name)} (npz)": ("suite.npz", binary, lambda: pack_suite(name, suite))
    }
    if not len(cells.first):
        return files
    few = select_tests(suite, cells.first)
    what = f"{plural(len(few), 'input')} that add{'s' if len(few) == 1 else ''} cells, one per cell"
    files[f"{what} (npz)"] = ("adding.npz", binary, lambda: pack_suite(f"{name}, adding cells", few))
    if len(suite.shape) == 3:

        def sheet() -> bytes:
            shown = cells.first[:MOST_PICTURES]
            captions = [_caption(found, number, int(position)) for position in shown]
            return input_images.png(
                input_images.contact_sheet(list(input_images.pictures(suite.take(shown))), captions)
            )

        files[f"{what} (PNG)"] = ("adding.png", "image/png", sheet)
    return files


def _draw_save(found: ComparedSuites, number: int, m: int) -> None:
    """Offer to save the inputs that add cells, of this suite or of all, as suites."""
    every = {place: _adding(found, place, m) for place in found.additions if len(found.results[place].cells[m].first)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if number in every:
            keep_row(every[number].name, every[number].count, "keep-adding", every[number].make)
        if len(every) > 1:
            which = "both" if len(every) == 2 else f"all {len(every)}"
            keep_several(f"Keep those of {which} suites", list(every.values()), "keep-all-adding")


def _adding(found: ComparedSuites, number: int, m: int) -> Keepable:
    """Return the inputs of a suite that add cells, to be kept."""
    from idc_core.suites import select_tests

    first = found.results[number].cells[m].first
    name = f"{found.options[number].label}, adding cells"
    return Keepable(name, len(first), lambda: select_tests(found.suites[number], first))


def _make_inputs(view: View, suite: Suite, positions: NDArray[np.int64]) -> NDArray[np.generic]:
    """Make some inputs of a suite."""

    def work(report: Progress) -> NDArray[np.generic]:
        return suite.take(positions, report)

    key = (suite.fingerprint, tuple(positions.tolist()))
    return Waiting(1).get(JobKind("made"), key, f"making inputs of {lower(suite.label)}", work)


def _source_places(view: View, suite: Suite, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return at which position among the setup's tests the source of each input is; -1 where it is none of them."""
    own = any(step.settings.get("fingerprint") == view.test.fingerprint for step in suite.provenance)
    places = np.full(len(positions), -1, np.int64)
    if not own:
        return places
    order = np.argsort(view.test.ids, kind="stable")
    ids, origin = view.test.ids[order], suite.origin[positions]
    near = np.minimum(np.searchsorted(ids, origin), len(ids) - 1)
    there = (ids[near] == origin) & (origin >= 0)
    places[there] = order[near[there]]
    return places
