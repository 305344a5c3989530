"""Attacked inputs, as they are drawn: before and after, one input in detail, saved as a suite, downloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from idc_core.figures import adversarial as figures
from idc_core.figures import heatmaps, input_images
from idc_core.guarded import pack_arrays
from studio.adversarial import attack_runs, attacks
from studio.adversarial.attacks import Ints, Run
from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.state.choices import choose_one
from studio.text import cell_name, count, percent, plural, rounded, signed, times
from studio.widgets import layout
from studio.widgets.gallery import WRONG, draw_tiles, make_sheet
from studio.widgets.keep_suite import keep_row
from studio.widgets.relevance_view import draw_groups
from studio.widgets.stepping import draw_steps

_SIDE = 140
"""Width of the large pictures in pixels, at least: six stand in a row."""

_SHOWN = 6
"""Attacked inputs in the gallery: three in a row, in a narrow window two."""

_SHOWS = {"fooled": "fooled", "kept": "not fooled", "new": "in added cells"}
_AUTO = "auto"

_SAVED = {"fooled": "fooled", "new": "in added cells", "all": "all attacked"}


def draw_inputs(view: View, run: Run, explained: str) -> None:
    """Show one attacked input beside its source, and more to choose from."""
    st.markdown(_relevance_sentence(run))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    shown, factor = _choose_shown(run, row)
    attacked, place = _open_selected(view, run, explained, int([*shown, 0][0]))
    with row:
        draw_steps(view.test.ids[run.positions[shown]], int(view.test.ids[attacked.positions[place]]))
    _draw_one(view, attacked, place, factor)
    _draw_gallery(view, run, shown, factor)
    _draw_save(view, run)
    attack_runs.explain(
        view,
        run.plan,
        "Relevance: epsilon rule; red supports the explained class, blue with a dot opposes it. Centre: mean position "
        "of the positive relevance. Rank correlation: Spearman. If the centre moves far or the correlation is low, the "
        "network now uses other pixels.",
    )
    layout.take_away({"attacked-inputs": _table_of(view, run)}, _files(view, run, shown, factor))


def _relevance_sentence(run: Run) -> str:
    """Say how far the relevance moved on average."""
    moved, fooled = run.shift, run.fooled
    if not fooled.any() or not np.isfinite(moved.distance[fooled]).any():
        return ""
    distance, cosine, rank = (
        float(np.nanmean(measure[fooled])) for measure in (moved.distance, moved.cosine, moved.rank)
    )
    return (
        f"On fooled inputs, the centre of the positive relevance moves by {distance:.1f} pixels on average. Heatmaps "
        f"before and after have a cosine of {signed(cosine, '.2f')} and a rank correlation of {signed(rank, '.2f')} "
        "(1: unchanged, 0: unrelated)."
    )


def places(run: Run, show: str) -> Ints:
    """Return which attacked inputs are of a kind, those with the smallest change first."""
    inside = {"fooled": run.fooled, "kept": ~run.fooled, "new": run.gained.row >= 0}[show]
    order = np.argsort(run.result.l2, kind="stable")
    return order[inside[order]]


def _choose_shown(run: Run, row: DeltaGenerator) -> tuple[Ints, int]:
    """Choose, in a row, which inputs the gallery shows, and how far changes are magnified."""
    usual = "fooled" if run.fooled.any() else "kept"
    labels = {name: f"{label} ({len(places(run, name))})" for name, label in _SHOWS.items()}
    show = choose_one(
        row.segmented_control,
        "Inputs",
        labels,
        usual,
        "show",
        required=True,
        help=f"The attacked inputs that are shown, smallest change first. Default {labels[usual]}.",
    )
    chosen = choose_one(
        row.selectbox,
        "Magnify the change",
        {_AUTO: "automatic", **{str(factor): str(factor) for factor in figures.FACTORS}},
        _AUTO,
        "magnify",
        width=150,
        help="Factor by which the change is multiplied for display; default automatic: the largest without clipping.",
    )
    shown = places(run, show)
    factor = int(chosen) if chosen != _AUTO else figures.magnification(_change(run, shown))
    return shown, factor


def _change(run: Run, which: Ints) -> NDArray[np.float32]:
    """Return the changes of some inputs, values after less values before, (k, C, H, W)."""
    return run.result.inputs[which] - run.originals[which]


def draw_small(view: View, run: Run, shown: Ints, key: str, *, sizes: bool = False) -> None:
    """Show inputs before and after, and the change, where asked for with its size; a click selects the test."""
    factor = figures.magnification(_change(run, shown))
    _draw_gallery(view, run, shown, factor, key, sizes=sizes)


def _draw_gallery(
    view: View, run: Run, shown: Ints, factor: int, key: str = "attacked-gallery", *, sizes: bool = False
) -> None:
    """Show inputs before and after, and the change; a click selects the test, whose relevance is shown large."""
    some = shown[:_SHOWN]
    if not len(some):
        st.caption("There are no such inputs.")
        return
    parts = [
        input_images.pictures(run.originals[some], 1),
        input_images.pictures(run.result.inputs[some], 1),
        figures.magnified(_change(run, some), factor, 1),
    ]
    tiles = [
        {
            "test": int(view.test.ids[run.positions[place]]),
            "caption": _caption(view, run, place) + (f", L2 {run.result.l2[place]:.2g}" if sizes else ""),
            "spoken": _caption(view, run, place).replace("→", "classified as").replace(WRONG, "(fooled)"),
            "places": [index + len(some) * part for part in range(len(parts))],
        }
        for index, place in enumerate(some)
    ]
    draw_tiles(tiles, make_sheet(np.concatenate(parts)), key)
    more = f" Shown are {len(some)} of {count(len(shown))}." if len(some) < len(shown) else ""
    st.caption(f"True → predicted class ({WRONG}: fooled). Click to inspect one under Inputs.{more}")
    layout.how_to_read(
        f"From left to right: test, attacked input, change{times(factor)} (grey: none, brighter: raised, darker: "
        "lowered)."
    )


def _caption(view: View, run: Run, place: int) -> str:
    """Write an attacked input's number, true class and prediction."""
    names, result = view.train.class_names, run.result
    ending = f" {WRONG}" if run.fooled[place] else ""
    number = view.test.ids[run.positions[place]]
    return f"{number}: {names[result.targets[place]]} → {names[result.predictions[place]]}{ending}"


def _draw_one(view: View, run: Run, place: int, factor: int) -> None:
    """Show one attacked input large, with what it changed."""
    result, names = run.result, view.train.class_names
    number, position = view.test.ids[run.positions[place]], run.positions[place]
    before, after = (values[place].sum(axis=0) for values in (run.before, run.after))
    dark = layout.is_dark()
    limits = [float(np.abs(relevance).max()) or 1.0 for relevance in (before, after)]
    moved = heatmaps.shares(after) - heatmaps.shares(before)
    most = float(np.abs(moved).max()) or 1.0
    sure = (float(view.analysis.confidence[position]), float(run.predictions.confidence[place]))
    captions = [
        f"predicted {names[classes[place]]}, {percent(share)}"
        for classes, share in zip((result.before, result.predictions), sure, strict=True)
    ]
    draw_groups(
        [
            [
                (input_images.pictures(run.originals[[place]], _SIDE)[0], f"Test {number}: {captions[0]}"),
                (input_images.pictures(result.inputs[[place]], _SIDE)[0], f"Attacked: {captions[1]}"),
                (figures.magnified(_change(run, np.array([place])), factor, _SIDE)[0], f"Change{times(factor)}"),
            ],
            [
                (
                    heatmaps.heatmap(before, limits[0], _SIDE, dark=dark),
                    f"Relevance before, colour range ±{rounded(limits[0])}",
                ),
                (
                    heatmaps.heatmap(after, limits[1], _SIDE, dark=dark),
                    f"Relevance after, colour range ±{rounded(limits[1])}",
                ),
                (
                    heatmaps.heatmap(moved, most, _SIDE, dark=dark),
                    f"Change of the shares, colour range ±{rounded(most)}",
                ),
            ],
        ],
        key="heatmaps-attacked",
    )
    st.markdown(_one_sentence(view, run, place))


def _one_sentence(view: View, run: Run, place: int) -> str:
    """Say how far one input, its relevance and its cell moved."""
    result, moved = run.result, run.shift
    cells = [cell_name(view.analysis.assignments[run.positions[place]]), cell_name(run.assignments[place])]
    text = (
        f"{plural(int(result.l0[place]), 'pixel')} changed (L2 {result.l2[place]:.3g}, largest change "
        f"{result.linf[place]:.3g}). "
    )
    if np.isfinite(moved.distance[place]):
        text += f"The centre of the positive relevance moved by {moved.distance[place]:.1f} pixels"
        text += "; " if np.isfinite(moved.cosine[place]) else ". "
    if np.isfinite(moved.cosine[place]):
        joint = "the" if text.endswith("; ") else "The"
        text += f"{joint} heatmaps have a cosine of {signed(moved.cosine[place], '.2f')} and a rank correlation of "
        text += f"{signed(moved.rank[place], '.2f')}. "
    if cells[0] == cells[1]:
        return f"{text}The input stays in cell {cells[0]}."
    new = ", which no original test reaches" if run.gained.row[place] >= 0 else ""
    return f"{text}The input moves from cell {cells[0]} to cell {cells[1]}{new}."


def _table_of(view: View, run: Run) -> pd.DataFrame:
    """Return one row per attacked input."""
    result, names, moved = run.result, np.array(view.train.class_names), run.shift
    return pd.DataFrame(
        {
            "test": view.test.ids[run.positions],
            "true_class": names[result.targets],
            "prediction_before": names[result.before],
            "confidence_before": view.analysis.confidence[run.positions],
            "prediction_after": names[result.predictions],
            "confidence_after": run.predictions.confidence,
            "fooled": run.fooled,
            "l0": result.l0,
            "l2": result.l2,
            "linf": result.linf,
            "cell_before": [cell_name(cell) for cell in view.analysis.assignments[run.positions]],
            "cell_after": [cell_name(cell) for cell in run.assignments],
            "new_cell": run.gained.row >= 0,
            "relevance_cosine": moved.cosine,
            "relevance_rank_correlation": moved.rank,
            "relevance_centre_moved": moved.distance,
        }
    )


def _files(view: View, run: Run, shown: Ints, factor: int) -> dict[str, tuple[str, str, Callable[[], bytes]]]:
    """Offer the attacked inputs, and a contact sheet of those that are shown."""
    return {
        "Attacked inputs (npz)": ("attacked.npz", "application/octet-stream", lambda: _archive(view, run)),
        "Contact sheet (PNG)": ("attacked.png", "image/png", lambda: _sheet(view, run, shown, factor)),
    }


def _archive(view: View, run: Run) -> bytes:
    """Pack attacked inputs, their tests and predictions; `custom_suite` can read them again."""
    arrays = {name: getattr(run.result, name) for name in ("inputs", "targets", "before", "predictions", "success")}
    return pack_arrays(
        {
            **arrays,
            "ids": view.test.ids[run.positions],
            "originals": run.originals,
            "relevance_before": run.before,
            "relevance_after": run.after,
            "settings": np.array(json.dumps({"attack": run.result.name, **_settings(run)}, default=str)),
        }
    )


def _settings(run: Run) -> dict[str, object]:
    """Return what the attack was made with, for a file."""
    goal = {} if run.result.goal is None or not run.result.done else {"goal": int(run.result.goal[0])}
    return {**run.result.settings, **goal}


def _sheet(view: View, run: Run, shown: Sequence[int] | Ints, factor: int) -> bytes:
    """Draw the gallery's inputs on a contact sheet, five pictures each."""
    some = np.asarray(shown, np.int64)[: 10 * _SHOWN]
    rows = zip(
        input_images.pictures(run.originals[some]),
        input_images.pictures(run.result.inputs[some]),
        figures.magnified(_change(run, some), factor, input_images.SMALLEST_SIDE),
        input_images.heatmaps(run.before[some]),
        input_images.heatmaps(run.after[some]),
        strict=True,
    )
    tiles = [input_images.side_by_side(np.stack(row), len(row)) for row in rows]
    return input_images.png(input_images.contact_sheet(tiles, [_caption(view, run, place) for place in some]))


def _draw_save(view: View, run: Run) -> None:
    """Offer to save the attacked inputs as a suite, for all pages that compare suites."""
    from idc_core.suites import attacked_suite

    with st.expander("Save the attacked inputs as a suite"), st.container(horizontal=True, vertical_alignment="bottom"):
        which = st.segmented_control(
            "Inputs",
            list(_SAVED),
            default="fooled",
            required=True,
            format_func=lambda name: _SAVED[name],
            key="keep-which",
            help=f"The attacked inputs in the suite; default {_SAVED['fooled']}.",
        )
        inside = {"fooled": run.fooled, "new": run.gained.row >= 0, "all": np.ones(run.result.done, bool)}
        places = np.flatnonzero(inside[which or "fooled"])
        keep_row(
            f"{run.plan.label} on {tests_name(view.test)}, seed {run.plan.seed}",
            len(places),
            "keep-attacked",
            lambda: attacked_suite(run.result, view.test, view.test.ids[run.positions], view.model, places),
        )


def _open_selected(view: View, run: Run, explained: str, usual: int) -> tuple[Run, int]:
    """Return the input to look at: the selected test, attacked on its own where it is not among the others."""
    if view.position is None:
        return run, usual
    places = np.flatnonzero(run.positions == view.position)
    if len(places):
        return run, int(places[0])
    number, plan, alone = view.test.ids[view.position], run.plan, None
    if plan.goal != view.test.targets[view.position]:
        only = np.array([view.position])
        alone = attacks.open_run(view, plan, explained, only=only, paused=not attack_runs.may_run(view, plan))
    if alone is None:
        st.caption(f"The selected test {number} is not among the attacked ones.")
        return run, usual
    st.caption(f"The selected test {number} was attacked separately; it is not counted.")
    return alone, 0
