"""The finds of a search: a table to choose from, one find with its heatmaps, more of them, and what to take away."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import IdcError
from idc_core.figures import differential as figures
from idc_core.figures.adversarial import magnification, magnified
from idc_core.figures.heatmaps import heatmap, layer_map
from idc_core.figures.input_images import contact_sheet, pictures, png
from idc_core.figures.wording import typeset
from studio.differential.search import SearchResult, heatmaps
from studio.engine.cell_search import truth
from studio.engine.results import View
from studio.shell import address
from studio.shell.selection import picked_row, select, selected
from studio.widgets import layout
from studio.widgets.keep_suite import keep_row, made_of_tests
from studio.widgets.relevance_view import draw_groups, draw_pictures
from studio.widgets.text import plural, times

FIND = "find"
"""Number of the test whose find is shown; in the address."""

SIDE, MORE = 140, 12
"""Width of the large pictures in pixels, at least; triplets shown below them."""

MOST_PICTURES = 200
"""Triplets on a contact sheet at most."""

NONE = "no majority"


def said(view: View, answer: float) -> str:
    """Write what a model answers."""
    return view.train.class_names[int(answer)] if view.is_classifier else f"{answer:+.3f}"


def voted(view: View, result: SearchResult, row: int) -> str:
    """Write what the majority answers to a find."""
    return said(view, result.votes[row]) if result.voted[row] else NONE


def answers(view: View, result: SearchResult, row: int) -> str:
    """Write what every model answers to a find."""
    found = result.disagreements.predictions[row]
    return typeset(", ".join(f"{label} {said(view, one)}" for label, one in zip(result.labels, found, strict=True)))


def table(view: View, result: SearchResult) -> pd.DataFrame:
    """Return one row a find."""
    found, origin, away = result.disagreements, result.origin, result.distances
    columns: dict[str, Any] = {
        "seed": view.test.ids[origin],
        "seed's class" if view.is_classifier else "seed's angle": [truth(view, place) for place in origin],
    }
    for place, label in enumerate(result.labels):
        columns[label] = [said(view, one) for one in found.predictions[:, place]]
    columns |= {
        "majority": [voted(view, result, row) for row in range(len(found))],
        "steps": found.iterations,
        "L1": away.l1,
        "L2": away.l2,
        "L\u221e": away.linf,
    }
    return pd.DataFrame(columns)


def draw_table(view: View, result: SearchResult, shown: pd.DataFrame) -> None:
    """Show all finds; choosing a row shows it, and selects its seed on all pages."""

    def picked() -> None:
        row = picked_row("finds", len(result.origin))
        if row is not None:
            number = int(view.test.ids[result.origin[row]])
            address.keep(FIND, str(number))
            select(input=number)

    right = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        shown.map(lambda value: typeset(value) if isinstance(value, str) else value),
        hide_index=True,
        key="finds",
        on_select=picked,
        selection_mode="single-row",
        height="auto" if len(shown) < 9 else 320,
        column_config=dict.fromkeys(("L1", "L2", "L\u221e"), right),
        alt="Disagreements; choose a row to see its pictures",
    )
    st.caption(
        "Choose a row to see it above. Seed: number of the test. L1 is the sum of the changes of all values, L2 the "
        "length of the change, L\u221e the largest change of a value; values lie in 0 to 1. The majority is the answer "
        "of more than half of the models"
        + ("." if view.is_classifier else ": the mean of the answers that agree with the middle one.")
    )


def chosen_row(view: View, result: SearchResult) -> int:
    """Return which find is shown: the chosen one, that of the selected test, else the one closest to its seed."""
    numbers = view.test.ids[result.origin]
    for wanted in (address.read(FIND), str(selected().input)):
        rows = np.flatnonzero(numbers.astype(str) == wanted)
        if len(rows):
            return int(rows[0])
    moved = np.where(result.disagreements.iterations > 0, result.distances.l1, np.inf)
    return int(moved.argmin())


def draw_one(view: View, result: SearchResult, row: int) -> None:
    """Show a find beside its seed, the difference, and what each model sees in both."""
    found = result.disagreements
    seed, find, place = result.seeds[found.seed_index[row]], found.inputs[row], int(result.origin[row])
    change = (find - seed)[None]
    factor = magnification(change)
    tiles = [*pictures(np.stack([seed, find]), SIDE), *magnified(change, factor, SIDE)]
    after = plural(int(found.iterations[row]), "step")
    draw_pictures(
        [
            (tiles[0], typeset(f"Seed: test {view.test.ids[place]}, {truth(view, place)}")),
            (tiles[1], typeset(f"Find after {after}. Majority: {voted(view, result, row)}")),
            (tiles[2], f"Difference{times(factor)}: lighter is brighter, darker is darker, grey is the same"),
        ],
        "find-pictures",
    )
    try:
        relevance = heatmaps(view, result, row)
    except IdcError as error:
        # After a stop they are not begun, and not every network that can be searched can be explained.
        st.caption(f"There are no heatmaps. {error}")
        return
    before = found.seed_predictions[found.seed_index[row]]
    shown: list[list[tuple[NDArray[np.uint8], str]]] = []
    for number, (label, pair) in enumerate(zip(result.labels, relevance, strict=True)):
        maps = [layer_map(one) for one in pair]
        limit = max(float(np.abs(one).max()) for one in maps) or 1.0
        told = (before[number], found.predictions[row, number])
        shown.append(
            [
                (heatmap(one, limit, SIDE), typeset(f"{label} answers {said(view, answer)} to the {what}"))
                for one, what, answer in zip(maps, ("seed", "find"), told, strict=True)
            ]
        )
    draw_groups(shown, "heatmaps-find")
    st.caption(
        "Heatmaps: relevance of the pixels for what each model answers, red for, blue with dots against; one scale a "
        "model."
    )


def draw_more(view: View, result: SearchResult, first: int) -> None:
    """Show more finds as triplets."""
    rows = [row for row in np.argsort(result.disagreements.iterations, kind="stable") if row != first][:MORE]
    if not rows:
        return
    with st.container(horizontal=True, gap="small", key="find-triplets"):
        for row in rows:
            tile, caption = triplet(view, result, int(row))
            st.image(tile, caption=caption, width=tile.shape[1], output_format="PNG", alt=f"Seed, find, {caption}")
    left = len(result.disagreements) - 1 - len(rows)
    more = f" {left} more are in the table." if left > 0 else ""
    st.caption(f"Seed, find and magnified difference, fewest steps first.{more}")


def triplet(view: View, result: SearchResult, row: int) -> tuple[NDArray[np.uint8], str]:
    """Return the triplet of a find with its caption."""
    found = result.disagreements
    tile, factor = figures.triplet(result.seeds[found.seed_index[row]], found.inputs[row])
    number = view.test.ids[result.origin[row]]
    how = f"difference{times(factor)}" if found.iterations[row] else "unchanged"
    return tile, f"Test {number}: {answers(view, result, row)}; {how}"


def npz(view: View, result: SearchResult) -> bytes:
    """Pack the finds with their seeds, answers, votes and settings."""
    file, found = io.BytesIO(), result.disagreements
    settings = {name: str(value) for name, value in found.settings.items()}
    np.savez_compressed(
        file,
        inputs=found.inputs,
        seeds=result.seeds[found.seed_index],
        seed_ids=view.test.ids[result.origin],
        seed_targets=view.test.targets[result.origin],
        predictions=found.predictions,
        models=np.array(result.labels),
        majority=result.votes,
        iterations=found.iterations,
        settings=np.array(json.dumps(settings)),
    )
    return file.getvalue()


def sheet(view: View, result: SearchResult) -> bytes:
    """Draw the first finds on a contact sheet, each with its seed and the difference."""
    drawn = [triplet(view, result, row) for row in range(min(MOST_PICTURES, len(result.disagreements)))]
    return png(contact_sheet([tile for tile, _ in drawn], [caption for _, caption in drawn]))


def draw_keep(view: View, result: SearchResult) -> None:
    """Offer to keep the finds as a suite, labelled by their votes or as their seeds."""
    from idc_core.suites import Step

    found = result.disagreements
    ways = {"seeds": "as their seeds", "votes": "by majority vote"}
    usual = "votes" if result.voted.any() else "seeds"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = st.segmented_control(
            "Right answers",
            list(ways),
            default=usual,
            required=True,
            format_func=ways.get,
            key=f"labels-{usual}",
            help="A suite needs a right answer for each input. By majority vote: what more than half of the models "
            "answer; finds without a majority are left out. As their seeds: what is right for the test that a find "
            f"was made of, as the constraint should not change it. Default {ways[usual]}.",
        )
        rows = np.flatnonzero(result.voted) if label == "votes" else np.arange(len(found))
        targets = result.votes[rows] if label == "votes" else view.test.targets[result.origin[rows]]
        about = {name: str(value) for name, value in found.settings.items()} | {"labels": ways[str(label)]}
        step = Step(
            "differential",
            f"differential search against {layout.names(result.labels[1:])}",
            about,
            int(found.settings["seed"]),
            view.model.card.fingerprint,
        )
        name = f"Differences, {found.settings['constraint'].card.label.lower()}"
        keep_row(
            name,
            len(rows),
            "keep-finds",
            lambda: made_of_tests(view, found.inputs[rows], targets, result.origin[rows], step),
        )
