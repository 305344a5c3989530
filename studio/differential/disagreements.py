"""The disagreements of a search: a table, one with its heatmaps, more of them, and downloads."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.elements.lib.column_types import ColumnConfig

from idc_core.errors import IdcError
from idc_core.figures import differential as figures
from idc_core.figures.adversarial import magnification, magnified
from idc_core.figures.heatmaps import heatmap, layer_map
from idc_core.figures.input_images import contact_sheet, pictures, png
from idc_core.figures.wording import typeset
from studio.differential.search import SearchResult, heatmaps
from studio.differential.summary import explain
from studio.jobs.results import View
from studio.jobs.wording import quantity
from studio.state import address
from studio.state.selection import select, selected
from studio.text import literal, plural, times
from studio.widgets import gallery, layout
from studio.widgets.cell_search import truth
from studio.widgets.keep_suite import keep_row, made_of_tests
from studio.widgets.relevance_view import draw_groups, draw_pictures

_SHOWN = "find"
"""Number of the test whose disagreement is shown; in the address."""

_SIDE, _MOST_SHOWN = 112, 6
"""Width of the large pictures in pixels, at least: those of three models in a row; disagreements in the gallery."""

_MOST_PICTURES = 200
"""Triplets on a contact sheet at most."""

_NONE = "no majority"


def _predicted(view: View, value: float) -> str:
    """Write the prediction of a model."""
    return view.train.class_names[int(value)] if view.is_classifier else f"{value:+.3f}"


def _voted(view: View, result: SearchResult, row: int) -> str:
    """Write the majority vote on a disagreement."""
    return _predicted(view, result.votes[row]) if result.voted[row] else _NONE


def _predictions(view: View, result: SearchResult, row: int) -> str:
    """Write the prediction of every model."""
    predictions = result.disagreements.predictions[row]
    return typeset(
        ", ".join(
            f"{label} {_predicted(view, prediction)}"
            for label, prediction in zip(result.labels, predictions, strict=True)
        )
    )


def draw(view: View, result: SearchResult) -> None:
    """Show one disagreement, and all of them."""
    if not len(result.disagreements):
        st.caption("There is no disagreement to show.")
        return
    row, table = _chosen_row(view, result), _table(view, result)
    _draw_one(view, result, row)
    _draw_table(view, result, table)
    _draw_more(view, result, row)
    _draw_keep(view, result)
    explain(view, result)
    layout.take_away({"disagreements": table}, _files(view, result))


def _table(view: View, result: SearchResult) -> pd.DataFrame:
    """Return one row per disagreement."""
    disagreements, origin, away = result.disagreements, result.origin, result.distances
    columns: dict[str, object] = {
        "seed": view.test.ids[origin],
        "seed's class" if view.is_classifier else f"seed's {quantity(view.test).name.split()[-1]}": [
            truth(view, place) for place in origin
        ],
    }
    for place, label in enumerate(result.labels):
        columns[label] = [_predicted(view, prediction) for prediction in disagreements.predictions[:, place]]
    columns |= {
        "majority": [_voted(view, result, row) for row in range(len(disagreements))],
        "steps": disagreements.iterations,
        "L1": away.l1,
        "L2": away.l2,
        "L\u221e": away.linf,
    }
    return pd.DataFrame(columns)


def _draw_table(view: View, result: SearchResult, shown: pd.DataFrame) -> None:
    """Show all disagreements; choosing a row shows it, and selects its seed on all pages."""
    vote = "The prediction of more than half of the models" + (
        "." if view.is_classifier else ", the mean of those that agree with the middle one."
    )
    lengths = {
        "L1": "Sum of the changes of all values, which lie in 0 to 1.",
        "L2": "Euclidean length of the change.",
        "L\u221e": "Largest change of a value.",
    }
    columns: dict[str, ColumnConfig] = {
        "seed": st.column_config.NumberColumn(help="Number of the test."),
        "majority": st.column_config.TextColumn(help=vote),
    }
    columns |= {name: st.column_config.NumberColumn(format="%.2f", help=text) for name, text in lengths.items()}
    st.caption("Choose a row to show it above.")
    layout.pick_table(
        shown.map(lambda value: typeset(value) if isinstance(value, str) else value),
        "finds",
        lambda row: _show(int(view.test.ids[result.origin[row]])),
        "Disagreements; choose a row to see its pictures",
        "auto" if len(shown) < 5 else 180,
        columns,
    )


def _chosen_row(view: View, result: SearchResult) -> int:
    """Return the disagreement to show: the chosen one, that of the selected test, else the closest to its seed."""
    numbers = view.test.ids[result.origin]
    for number in (address.read(_SHOWN), str(selected().input)):
        rows = np.flatnonzero(numbers.astype(str) == number)
        if len(rows):
            return int(rows[0])
    moved = np.where(result.disagreements.iterations > 0, result.distances.l1, np.inf)
    return int(moved.argmin())


def _draw_one(view: View, result: SearchResult, row: int) -> None:
    """Show a disagreement, its seed, the difference, and each model's heatmaps of both."""
    finds = result.disagreements
    seed, picture, place = (result.seeds[finds.seed_index[row]], finds.inputs[row], int(result.origin[row]))
    change = (picture - seed)[None]
    factor = magnification(change)
    tiles = [*pictures(np.stack([seed, picture]), _SIDE), *magnified(change, factor, _SIDE)]
    after = plural(int(finds.iterations[row]), "step")
    draw_pictures(
        [
            (tiles[0], typeset(f"Seed: test {view.test.ids[place]}, {truth(view, place)}")),
            (tiles[1], typeset(f"After {after}. Majority: {_voted(view, result, row)}")),
            (tiles[2], f"Difference{times(factor)}; grey: no change"),
        ],
        "find-pictures",
    )
    try:
        relevance = heatmaps(view, result, row)
    except IdcError as error:
        # After a stop they are not begun, and not every network that can be searched can be explained.
        st.caption(f"No heatmaps. {literal(error)}")
        return
    before = finds.seed_predictions[finds.seed_index[row]]
    shown: list[list[tuple[NDArray[np.uint8], str]]] = []
    dark = layout.is_dark()
    for number, (label, pair) in enumerate(zip(result.labels, relevance, strict=True)):
        maps = [layer_map(one) for one in pair]
        limit = max(float(np.abs(one).max()) for one in maps) or 1.0
        values = (before[number], finds.predictions[row, number])
        shown.append(
            [
                (
                    heatmap(one, limit, _SIDE, dark=dark),
                    typeset(f"{label} predicts {_predicted(view, value)} for the {what}"),
                )
                for one, what, value in zip(maps, ("seed", "disagreement"), values, strict=True)
            ]
        )
    draw_groups(shown, "heatmaps-find")
    st.caption(
        "Heatmaps: relevance of each pixel for the model's prediction; red: for, blue with dots: against. Scale: per "
        "model."
    )


def _draw_more(view: View, result: SearchResult, shown: int) -> None:
    """Show the first disagreements as small pictures; a click shows one large, and selects its seed on all pages."""
    disagreements = result.disagreements
    rows = np.argsort(disagreements.iterations, kind="stable")[:_MOST_SHOWN]
    numbers = view.test.ids[result.origin]
    tiles = [gallery.Tile(int(numbers[row]), f"{numbers[row]}: {_predictions(view, result, row)}") for row in rows]
    seeds = result.seeds[disagreements.seed_index[rows]]
    factor = gallery.changed("finds-gallery", tiles, seeds, disagreements.inputs[rows], int(numbers[shown]), _show)
    left = len(disagreements) - len(rows)
    more = f" {left} more are in the table." if left > 0 else ""
    st.caption(f"Seed, disagreement and difference{times(factor)}; fewest steps first. Click one to show it.{more}")


def _show(number: int) -> None:
    """Show a test's disagreement, and select the test on all pages."""
    address.keep(_SHOWN, str(number))
    select(input=number)


def _triplet(view: View, result: SearchResult, row: int) -> tuple[NDArray[np.uint8], str]:
    """Return the triplet of a disagreement with its caption."""
    disagreements = result.disagreements
    tile, factor = figures.triplet(result.seeds[disagreements.seed_index[row]], disagreements.inputs[row])
    number = view.test.ids[result.origin[row]]
    how = f"difference{times(factor)}" if disagreements.iterations[row] else "unchanged"
    return tile, f"Test {number}: {_predictions(view, result, row)}; {how}"


def _npz(view: View, result: SearchResult) -> bytes:
    """Pack the disagreements with their seeds, predictions, votes and settings."""
    file, disagreements = io.BytesIO(), result.disagreements
    settings = {name: str(value) for name, value in disagreements.settings.items()}
    np.savez_compressed(
        file,
        inputs=disagreements.inputs,
        seeds=result.seeds[disagreements.seed_index],
        seed_ids=view.test.ids[result.origin],
        seed_targets=view.test.targets[result.origin],
        predictions=disagreements.predictions,
        models=np.array(result.labels),
        majority=result.votes,
        iterations=disagreements.iterations,
        settings=np.array(json.dumps(settings)),
    )
    return file.getvalue()


def _files(view: View, result: SearchResult) -> dict[str, tuple[str, str, Callable[[], bytes]]]:
    """Offer the disagreements with their seeds, and a contact sheet."""
    if not len(result.disagreements):
        return {}
    return {
        "Disagreements and seeds (npz)": ("finds.npz", "application/octet-stream", lambda: _npz(view, result)),
        "Contact sheet (PNG)": ("finds.png", "image/png", lambda: _sheet(view, result)),
    }


def _sheet(view: View, result: SearchResult) -> bytes:
    """Draw the first disagreements on a contact sheet, each with its seed and the difference."""
    drawn = [_triplet(view, result, row) for row in range(min(_MOST_PICTURES, len(result.disagreements)))]
    return png(contact_sheet([tile for tile, _ in drawn], [caption for _, caption in drawn]))


def _draw_keep(view: View, result: SearchResult) -> None:
    """Offer to keep the disagreements as a suite, labelled by their votes or as their seeds."""
    from idc_core.suites import ProvenanceStep

    disagreements = result.disagreements
    ways = {"seeds": "seed's class" if view.is_classifier else "seed's value", "votes": "majority vote"}
    usual = "votes" if result.voted.any() else "seeds"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = layout.one_of(
            "Labels",
            ways,
            usual,
            f"labels-{usual}",
            "The true class of each input in the test set. Majority vote: the prediction of more than half of the "
            "models; disagreements without a majority are left out. Seed's class: that of the test it was made from.",
        )
        rows = np.flatnonzero(result.voted) if label == "votes" else np.arange(len(disagreements))
        targets = result.votes[rows] if label == "votes" else view.test.targets[result.origin[rows]]
        about = {name: str(value) for name, value in disagreements.settings.items()} | {"labels": ways[str(label)]}
        step = ProvenanceStep(
            "differential",
            f"differential search against {layout.names(result.labels[1:])}",
            about,
            int(disagreements.settings["seed"]),
            view.card.fingerprint,
        )
        name = f"Differences, {disagreements.settings['constraint'].card.label.lower()}"
        keep_row(
            name,
            len(rows),
            "keep-finds",
            lambda: made_of_tests(view, disagreements.inputs[rows], targets, result.origin[rows], step),
        )
