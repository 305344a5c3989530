"""Hypotheses: which units behave like a thing that can be named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.figures import hypotheses as figures
from idc_core.inspection import FAMILIES, MEASURES
from idc_core.inspection.grid import Grid
from idc_core.inspection.measures import PAIR_MEASURES
from studio.engine.results import View
from studio.hypotheses import epochs, hypothesis_pair, important_neurons, inspections, sql_questions, verification
from studio.hypotheses.inspections import Measured, Settings, quoted
from studio.shell import address, pins
from studio.shell.frame import current_view
from studio.widgets import layout
from studio.widgets.text import count, plural

view = current_view()
finding = st.empty()


FAMILY, MEASURE, LAYERS = "families", "measures", "inspected"  # names of the controls, also in the address
ROWS, COLUMNS = ("15", "30", "60"), ("20", "40", "80", "all")
MOST_UNSCORED = 6
SIGNED = ("pearson", "spearman", "difference")


def choose_settings() -> Settings:
    """Choose what is measured."""
    offered, usual = inspections.offered(view), inspections.usual(view)
    chosen = _pills(
        FAMILY,
        "Families of hypotheses",
        {name: FAMILIES[name].label for name in offered},
        usual,
        "Which things units are compared with; the number is how many hypotheses a family has here.",
        {name: f" ({len(found)})" for name, found in offered.items()},
    )
    measures = _pills(
        MEASURE,
        "Measures",
        {name: one.label for name, one in MEASURES.items()},
        ["pearson"],
        "How a unit, or by a probe all units of a layer together, is compared with a hypothesis.",
    )
    if not any(name in PAIR_MEASURES for name in measures):
        measures = ["pearson", *measures]  # the map needs a measure of single units
    with st.expander("More settings: layers, records, hypotheses of your own"):
        layers, most, error = choose_more()
        words, masks = choose_own()
    return inspections.Settings(tuple(chosen or usual), words, tuple(measures), tuple(layers), most, error, masks)


def _pills(
    key: str, label: str, labels: dict[str, str], usual: list[str], help: str, behind: dict[str, str] | None = None
) -> list[str]:
    """Draw a choice of several names that the address keeps."""
    said = address.read(key).split(",")
    st.session_state[key] = [name for name in labels if name in said] or usual
    shown = {name: text + (behind or {}).get(name, "") for name, text in labels.items()}
    chosen = st.pills(
        label,
        list(labels),
        selection_mode="multi",
        format_func=shown.get,
        key=key,
        on_change=lambda: address.keep(key, ",".join(st.session_state[key])),
        help=f"{help} Default {', '.join(shown[name] for name in usual)}.",
    )
    return [name for name in labels if name in chosen]


def choose_more() -> tuple[list[str], int | None, float | None]:
    """Choose layers, and how much is read."""
    own = view.bench.layer
    said = address.read(LAYERS).split(",")
    st.session_state[LAYERS] = [name for name in view.model.layers if name in said] or [own]
    layers = st.multiselect(
        "Layers",
        view.model.layers,
        key=LAYERS,
        width=480,
        on_change=lambda: address.keep(LAYERS, ",".join(st.session_state[LAYERS])),
        help=f"The layers whose units are compared; all in one pass. Default the bench's, {own}.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        most = st.segmented_control(
            "Records",
            list(inspections.RECORDS),
            default="1,024",
            required=True,
            key="records",
            bind="query-params",
            help="How many tests are read at most, drawn at random (seed 0); scores of fewer are shown while more are "
            "read. Default 1,024.",
        )
        error = st.selectbox(
            "Stop reading early",
            list(inspections.ERRORS),
            key="early",
            bind="query-params",
            width=240,
            help="Reading ends where no score can be farther than this from the one on all these records, with 95 % "
            "confidence for all scores at once. Default not before the end.",
        )
    return layers or [own], inspections.RECORDS[most], inspections.ERRORS[error]


def choose_own() -> tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]:
    """Choose a person's own hypotheses: keywords where the tests are texts, masks where they are pictures."""
    if view.test.inputs.ndim == 2:
        words = st.text_input(
            "Keywords of your own",
            key="words",
            bind="query-params",
            width=480,
            placeholder="for example engine, price",
            help="Words, separated by commas; each becomes the hypothesis that a symbol lies within it. Default none.",
        )
        return inspections.words_of(words), ()
    if view.test.inputs.ndim != 4:
        return (), ()
    height, width = view.test.inputs.shape[2:]
    files = st.file_uploader(
        "Masks of your own (npy, png)",
        type=["npy", "png"],
        accept_multiple_files=True,
        key="masks",
        max_upload_size=4,
        width=480,
        help=f"Pictures or NumPy arrays of {height} by {width} pixels; each becomes the hypothesis that a pixel lies "
        "in its light part. Default none.",
    )
    return (), tuple((file.name, file.getvalue()) for file in files)


def choose_shown(settings: Settings) -> tuple[str, str, float, int, int | None]:
    """Choose what the map shows: measure, layer, false-discovery rate, rows and columns."""
    single = [name for name in settings.measures if name in PAIR_MEASURES]
    measure, layer = single[0], view.bench.layer if view.bench.layer in settings.layers else settings.layers[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(single) > 1:
            measure = st.segmented_control(
                "Shown measure",
                single,
                default=measure,
                required=True,
                key="shown-measure",
                format_func=lambda name: PAIR_MEASURES[name].label,
                help=f"The measure that the figures below show. Default {PAIR_MEASURES[measure].label}.",
            )
        if len(settings.layers) > 1:
            layer = st.selectbox(
                "Shown layer",
                list(settings.layers),
                index=settings.layers.index(layer),
                key="shown-layer",
                width=160,
                help=f"The layer that the figures below show. Default {layer}.",
            )
        rate = st.segmented_control(
            "False discoveries at most",
            list(inspections.RATES),
            default="5 %",
            required=True,
            key="rate",
            bind="query-params",
            help="Of the associations that are shown as found, at most such a share is there by chance, on average. "
            "Default 5 %.",
        )
        rows = st.segmented_control(
            "Hypotheses shown",
            list(ROWS),
            default="30",
            required=True,
            key="rows-shown",
            bind="query-params",
            help="How many hypotheses the map shows at most, those of the strongest scores. Default 30.",
        )
        columns = st.segmented_control(
            "Units shown",
            list(COLUMNS),
            default="40",
            required=True,
            key="units-shown",
            bind="query-params",
            help="How many units the map shows at most, those of the strongest scores; of all only a part can be read "
            "without zooming in (drag over it). Default 40.",
        )
    return measure, layer, inspections.RATES[rate], int(rows), None if columns == "all" else int(columns)


def sentence(measured: Measured, grid: Grid, layer: str, label: str, rate: float) -> str:
    """Put the finding into words."""
    hypothesis, unit = grid.strongest()
    some = "" if measured.whole else f"After {count(measured.records)} records: "
    if not grid.strength.any():
        return f"{some}**No unit of {layer} goes with any of these hypotheses.**"
    score = hypothesis_pair.score_text(grid, hypothesis, unit)
    text = f"{some}**Unit {unit} of {layer} goes with {quoted(grid.names[hypothesis])} most: {label} {score}.**"
    if not grid.tested:
        return f"{text} Nothing could be tested on these records, so that all scores are shown."
    units = int(grid.passes.any(0).sum())
    return (
        f"{text} {count(int(grid.passes.sum()))} of {count(grid.tested)} associations are told from chance, and "
        f"{count(units)} of {plural(grid.score.shape[1], 'unit')} have at least one. Of all called found, at most "
        f"{100 * rate:g} in 100 are expected to be false."
    )


def draw_map(
    measured: Measured,
    grid: Grid,
    shown: tuple[str, str, float, int, int | None],
    pair: tuple[int, int] | None,
    key: str = "scores",
    first: int = 0,
) -> None:
    """Draw hypotheses by units, the strongest `first` ones left out."""
    measure, layer, _, most_rows, most_columns = shown
    label = PAIR_MEASURES[measure].label
    rows, columns = grid.part(most_rows, grid.score.shape[1])
    columns = columns[first:][:most_columns]
    visible = hypothesis_pair.told_from_chance(grid)
    hypothesis, unit = grid.strongest()
    met = int(visible.any(1).sum())
    rows = rows[visible[rows].any(1)] if met else rows
    title = (
        f"{met} of {len(grid.names)} hypotheses meet a unit of {layer}; the strongest is "
        f"{quoted(grid.names[hypothesis])} at unit {unit} ({grid.score[hypothesis, unit]:.2f})"
    )
    selected: tuple[int | None, int | None] = (None, None)
    if pair is not None:
        selected = _place(rows, pair[0]), _place(columns, pair[1])
    part = np.ix_(rows, columns)
    layout.chart(
        measured.view,
        key,
        lambda dark: figures.score_map(
            grid.score[part],
            [grid.names[at] for at in rows],
            columns.tolist(),
            title,
            label,
            keys=(rows.tolist(), columns.tolist()),
            signed=measure in SIGNED,
            passes=visible[part],
            selected=selected,
            dark=dark,
        ),
        alt=title,
        read="a square is a hypothesis and a unit; red says that the unit is high where the hypothesis is true, blue "
        "with \u2212 that it is low there, and empty that the two cannot be told from chance. Rows and columns come "
        f"with the strongest first. {_how_to_choose(len(rows) * len(columns))} The lines frame what is looked at.",
        depends=(measured.key, shown, first, selected),
        clicked=None if pair is None else lambda points: clicked(measured, grid, layer, points),
    )


def _how_to_choose(squares: int) -> str:
    if squares <= figures.MOST_MARKS:
        return "Click a square to look at it below."
    return "So many are too thin to be clicked: show 80 units or fewer, a part at a time, or name a unit below."


def _place(keys: Any, key: int) -> int | None:
    found = np.flatnonzero(keys == key)
    return int(found[0]) if len(found) else None


def clicked(measured: Measured, grid: Grid, layer: str, points: list[dict[str, Any]]) -> None:
    """Look at the pair that was clicked; other squares tell nothing."""
    for point in points:
        if (told := point.get("customdata")) is not None:
            hypothesis, unit = (int(one) for one in told)
            hypothesis_pair.pick(measured, grid, layer, hypothesis, unit)
            return


def draw_whole(measured: Measured) -> pd.DataFrame | None:
    """Show what probes tell from all units of a layer together; None where none was chosen."""
    table = measured.found.frame()
    table = table[(table["unit"] == -1) & (table["group"] != "")]
    if not len(table):
        return None
    st.header("What the layer knows as a whole", anchor=False)
    best = table[~table["measure"].isin(("majority", "chance"))].sort_values("score", ascending=False)
    if len(best):
        first = best.iloc[0]
        st.markdown(
            f"A {MEASURES[first['measure']].label.lower()} on all units of {first['layer']} tells "
            f"{quoted(first['hypothesis'])} best: {first['score']:.2f} on records held out."
        )
    wide = table.pivot_table(index=["layer", "hypothesis"], columns="measure", values="score").round(3).reset_index()
    st.dataframe(wide, hide_index=True, height=320, alt="Scores of probes on whole layers, a line a hypothesis")
    st.caption(
        "F1 (of yes and no, or the mean over classes) or R2 on records that the probe did not learn from; compare it "
        "with always the commonest answer, and answers at random, where these are chosen."
    )
    return table


def say_unscored(measured: Measured) -> None:
    """Name hypotheses that have no score, and why."""
    table = measured.found.frame()
    table = table[table["remark"] != ""].drop_duplicates("hypothesis")
    for remark, some in table.groupby("remark", sort=False)["hypothesis"]:
        first = [quoted(name) for name in some.head(MOST_UNSCORED)]
        more = f" and {plural(len(some) - len(first), 'other')}" if len(some) > len(first) else ""
        st.caption(f"Without a score ({remark}): {', '.join(first)}{more}.")


def draw_side(one: View, chosen: Any, key: str) -> None:
    """Draw the map of one of two benches."""
    found = inspections.measure(one, inspections.fitting(one, settings))
    if found is not None:
        own = (shown[0], one.bench.layer, shown[2], 15, 20)
        draw_map(found, found.grid(own[0], own[1], own[2]), own, None, f"scores-{key}")


def compare(here: View, there: View) -> str:
    """Say how many units mean something on two benches."""
    told = []
    for one in (here, there):
        found = inspections.measure(one, inspections.fitting(one, settings))
        if found is None:
            return "One of the two is not finished."
        grid = found.grid(shown[0], one.bench.layer, shown[2])
        visible = hypothesis_pair.told_from_chance(grid)
        units = f"{int(visible.any(0).sum())} of {plural(visible.shape[1], 'unit')}"
        told.append(f"{units} (best {grid.strength.max():.2f})")
    return f"Units that go with at least one hypothesis: here {told[0]}, on the pinned bench {told[1]}."


settings = choose_settings()
shown = choose_shown(settings)
sofar = st.empty()


def tell(part: Measured) -> None:
    """Show the scores so far while more records are read."""
    found = part.grid(*shown[:3])
    finding.markdown(sentence(part, found, shown[1], PAIR_MEASURES[shown[0]].label, shown[2]))
    with sofar.container():
        draw_map(part, found, shown, None, f"scores-{part.records}")
        st.caption(f"After {count(part.records)} records the widest score is sure to ± {found.widest:.2f}.")


try:
    measured = inspections.measure(view, settings, tell)
except IdcError as error:
    st.error(str(error))
    st.stop()
sofar.empty()
if measured is None:
    st.info(
        "Stopped before there were any scores. Started again, reading goes on from there; fewer hypotheses are faster."
    )
    st.stop()
measure, layer, rate = shown[:3]
label = PAIR_MEASURES[measure].label
grid = measured.grid(measure, layer, rate)
finding.markdown(sentence(measured, grid, layer, label, rate))
pair = hypothesis_pair.choose(measured, grid, layer)
draw_map(measured, grid, shown, pair, first=hypothesis_pair.choose_part(grid, shown[4], pair[1]))
read = f"{count(int(grid.records.min()))} to " if grid.records.min() < grid.records.max() else ""
st.caption(
    f"Read: {read}{plural(int(grid.records.max()), 'record')} of {plural(len(view.chosen), 'test')}"
    f"{'' if measured.whole else ' (stopped; started again, reading goes on from here)'}; the widest score is sure to "
    f"± {grid.widest:.2f}."
)
say_unscored(measured)

st.header("One hypothesis, one unit", anchor=False)
hypothesis_pair.draw_choice(measured, grid, layer, pair)
hypothesis_pair.draw_ranks(measured, grid, layer, pair, label)
one = next(one for one in inspections.chosen_hypotheses(view, settings) if one.name == grid.names[pair[0]])
try:
    hypothesis_pair.draw_records(measured, layer, pair[1], one)
except CancelledError:
    st.caption("Stopped before single records were looked at.")
hypothesis_pair.draw_links(measured, layer, pair[1])
swaps = verification.draw(measured, grid, layer, one)

draw_whole(measured)
important_neurons.draw_meaning(measured, grid, layer, label)
by_epoch = epochs.draw(measured, grid, measure, layer, label, pair)
sql_questions.draw(measured)
pins.beside(view, draw_side, compare)

layout.computed(
    view,
    f"Every unit of a layer is compared with {len(grid.names)} hypotheses by {label}: "
    f"{PAIR_MEASURES[measure].help} Where a layer has units at every symbol or pixel, this is done place by place, "
    "padding left out; what a hypothesis says of pixels is brought to a coarser layer by what each place covers.",
    "Ranges come from leaving out one group of records after the other (the jackknife), because the symbols of one "
    "record depend on one another: in 95 of 100 such samples the range would hold the score of more such records. "
    f"With {count(grid.tested)} tests some would look like a finding by chance alone. So an association counts as "
    f"found only where its p value passes Benjamini and Yekutieli's procedure at {100 * rate:g} %, which holds however "
    "the tests depend on one another; hypotheses that hold, or fail, in fewer than 20 records are not tested. Mutual "
    "information is tested for each of its bins, and the smallest p value counted as often as there are bins; a probe "
    "by how far what it says of records held out goes with what is true there.",
    "Source of hypotheses and measures: T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019.",
)
# Without what has no meaning here, as groups of units where none were asked for.
scores = measured.found.frame().replace("", np.nan).dropna(axis=1, how="all")
layout.take_away({"hypotheses-scores": scores, **swaps, **by_epoch})
