"""Hypotheses: which units behave like a thing that can be named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import CancelledError, IdcError
from pages.common import address, layout, pins
from pages.common.frame import frame, open_bench
from pages.common.results import View
from pages.common.text import count, plural

if TYPE_CHECKING:
    from idc_core.inspection.grid import Grid, Meaning
    from pages.sections.hypotheses.inspections import Measured, Settings

view = open_bench(frame("hypotheses"))
finding = st.empty()

from idc_core.figures import hypotheses as figures  # noqa: E402 - after the frame is painted
from idc_core.inspection import FAMILIES, MEASURES  # noqa: E402
from idc_core.inspection.grid import beside_training, meaning  # noqa: E402
from idc_core.inspection.measures import PAIR_MEASURES  # noqa: E402
from pages.sections.hypotheses import asking, inspections, pairs  # noqa: E402
from pages.sections.hypotheses.inspections import quoted  # noqa: E402

FAMILY, MEASURE, LAYERS = "families", "measures", "inspected"  # names of the controls, also in the address
ROWS, COLUMNS = ("15", "30", "60"), ("20", "40", "80", "all")
SIGNED = ("pearson", "spearman", "difference")


def choose_settings() -> Settings:
    """Choose what is measured."""
    offered, usual = inspections.offered(view), inspections.usual(view)
    chosen = _pills(
        FAMILY, "Families of hypotheses", {name: FAMILIES[name].label for name in offered}, usual,
        "Which things units are compared with; the number is how many hypotheses a family has here.",
        {name: f" ({len(found)})" for name, found in offered.items()},
    )  # fmt: skip
    measures = _pills(
        MEASURE, "Measures", {name: one.label for name, one in MEASURES.items()}, ["pearson"],
        "How a unit, or by a probe all units of a layer together, is compared with a hypothesis.",
    )  # fmt: skip
    if not any(name in PAIR_MEASURES for name in measures):
        measures = ["pearson", *measures]  # the map needs a measure of single units
    with st.expander("More settings: layers, records, words of your own"):
        layers, most, error, words = choose_more()
    return inspections.Settings(
        tuple(chosen or usual), inspections.words_of(words), tuple(measures), tuple(layers), most, error
    )


def _pills(
    key: str, label: str, labels: dict[str, str], usual: list[str], help: str, behind: dict[str, str] | None = None
) -> list[str]:
    """Draw a choice of several names that the address keeps."""
    said = address.read(key).split(",")
    st.session_state[key] = [name for name in labels if name in said] or usual
    shown = {name: text + (behind or {}).get(name, "") for name, text in labels.items()}
    chosen = st.pills(
        label, list(labels), selection_mode="multi", format_func=shown.get, key=key,
        on_change=lambda: address.keep(key, ",".join(st.session_state[key])),
        help=f"{help} Default {', '.join(shown[name] for name in usual)}.",
    )  # fmt: skip
    return [name for name in labels if name in chosen]


def choose_more() -> tuple[list[str], int | None, float | None, str]:
    """Choose layers, how much is read, and a person's own keywords."""
    own = view.bench.layer
    said = address.read(LAYERS).split(",")
    st.session_state[LAYERS] = [name for name in view.model.layers if name in said] or [own]
    layers = st.multiselect(
        "Layers", view.model.layers, key=LAYERS, width=480,
        on_change=lambda: address.keep(LAYERS, ",".join(st.session_state[LAYERS])),
        help=f"The layers whose units are compared; all in one pass. Default the bench's, {own}.",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom"):
        most = st.segmented_control(
            "Records", list(inspections.RECORDS), default="1,024", required=True, key="records", bind="query-params",
            help="How many tests are read at most, drawn at random (seed 0); scores of fewer are shown while more are "
            "read. Default 1,024.",
        )  # fmt: skip
        error = st.selectbox(
            "Stop reading early", list(inspections.ERRORS), key="early", bind="query-params", width=240,
            help="Reading ends where no score can be farther than this from the one on all these records, with 95 % "
            "confidence for all scores at once. Default not before the end.",
        )  # fmt: skip
    words = ""
    if view.test.inputs.ndim == 2:
        words = st.text_input(
            "Keywords of your own", key="words", bind="query-params", width=480,
            placeholder="for example engine, price",
            help="Words, separated by commas; each becomes the hypothesis that a symbol lies within it. Default none.",
        )  # fmt: skip
    return layers or [own], inspections.RECORDS[most], inspections.ERRORS[error], words


def choose_shown(settings: Settings) -> tuple[str, str, float, int, int | None]:
    """Choose what the map shows: measure, layer, false-discovery rate, rows and columns."""
    single = [name for name in settings.measures if name in PAIR_MEASURES]
    measure, layer = single[0], view.bench.layer if view.bench.layer in settings.layers else settings.layers[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(single) > 1:
            measure = st.segmented_control(
                "Shown measure", single, default=measure, required=True, key="shown-measure",
                format_func=lambda name: PAIR_MEASURES[name].label,
                help=f"The measure that the figures below show. Default {PAIR_MEASURES[measure].label}.",
            )  # fmt: skip
        if len(settings.layers) > 1:
            layer = st.selectbox(
                "Shown layer", list(settings.layers), index=settings.layers.index(layer), key="shown-layer", width=160,
                help=f"The layer that the figures below show. Default {layer}.",
            )  # fmt: skip
        rate = st.segmented_control(
            "False discoveries at most", list(inspections.RATES), default="5 %", required=True, key="rate",
            bind="query-params",
            help="Of the associations that are shown as found, at most such a share is there by chance, on average. "
            "Default 5 %.",
        )  # fmt: skip
        rows = st.segmented_control(
            "Hypotheses shown", list(ROWS), default="30", required=True, key="rows-shown", bind="query-params",
            help="How many hypotheses the map shows at most, those of the strongest scores. Default 30.",
        )  # fmt: skip
        columns = st.segmented_control(
            "Units shown", list(COLUMNS), default="40", required=True, key="units-shown", bind="query-params",
            help="How many units the map shows at most, those of the strongest scores; of all only a part can be read "
            "without zooming in (drag over it). Default 40.",
        )  # fmt: skip
    return measure, layer, inspections.RATES[rate], int(rows), None if columns == "all" else int(columns)


def sentence(measured: Measured, grid: Grid, layer: str, label: str, rate: float) -> str:
    """Put the finding into words."""
    hypothesis, unit = grid.strongest()
    some = "" if measured.whole else f"After {count(measured.records)} records: "
    if not grid.strength.any():
        return f"{some}**No unit of {layer} goes with any of these hypotheses.**"
    score = pairs.score_text(grid, hypothesis, unit)
    text = f"{some}**Unit {unit} of {layer} goes with {quoted(grid.names[hypothesis])} most: {label} {score}.**"
    if not grid.tested:
        return f"{text} This measure has no test, so that all scores are shown."
    units = int(grid.passes.any(0).sum())
    return (
        f"{text} {count(int(grid.passes.sum()))} of {count(grid.tested)} associations are told from chance, and "
        f"{count(units)} of {plural(grid.score.shape[1], 'unit')} have at least one. Of all called found, at most "
        f"{100 * rate:g} in 100 are expected to be false."
    )


def draw_map(
    measured: Measured, grid: Grid, shown: tuple[str, str, float, int, int | None], pair: tuple[int, int] | None,
    key: str = "scores",
) -> None:  # fmt: skip
    """Draw hypotheses by units."""
    measure, layer, _, most_rows, most_columns = shown
    label = PAIR_MEASURES[measure].label
    rows, columns = grid.part(most_rows, grid.score.shape[1] if most_columns is None else most_columns)
    visible = pairs.told_from_chance(grid)
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
            grid.score[part], [grid.names[at] for at in rows], columns.tolist(), title, label,
            keys=(rows.tolist(), columns.tolist()), signed=measure in SIGNED, passes=visible[part], selected=selected,
            dark=dark,
        ),
        alt=title,
        read="a square is a hypothesis and a unit; red says that the unit is high where the hypothesis is true, blue "
        "with \u2212 that it is low there, and empty that the two cannot be told from strangers. Rows and columns come "
        "with the strongest first. Click a square to look at it below; the lines frame what is looked at.",
        depends=(measured.key, shown, selected),
        clicked=None if pair is None else lambda points: clicked(measured, grid, layer, points),
    )  # fmt: skip


def _place(keys: Any, key: int) -> int | None:
    found = np.flatnonzero(keys == key)
    return int(found[0]) if len(found) else None


def clicked(measured: Measured, grid: Grid, layer: str, points: list[dict[str, Any]]) -> None:
    """Look at the pair that was clicked; other squares tell nothing."""
    for point in points:
        if (told := point.get("customdata")) is not None:
            hypothesis, unit = (int(one) for one in told)
            pairs.pick(measured, grid, layer, hypothesis, unit)
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
    st.dataframe(wide, hide_index=True, height=320)
    st.caption(
        "F1 (of yes and no, or the mean over classes) or R2 on records that the probe did not learn from; compare it "
        "with always the commonest answer, and answers at random, where these are chosen."
    )
    return table


def draw_meaning(measured: Measured, grid: Grid, layer: str, label: str) -> None:
    """Say and draw whether important neurons go with hypotheses more than others."""
    if layer != view.bench.layer:
        return
    st.header("Do important neurons mean something?", anchor=False)
    analysis = view.analysis
    changes = measured.found.units[view.model.card.name, layer][:, 1] > 0
    told = meaning(grid, analysis.importance, analysis.important, changes)
    text = meaning_sentence(told, len(analysis.important))
    st.markdown(text)
    title = f"Important neurons: {told.important:.2f} on average; the others {told.others:.2f}"
    layout.chart(
        view,
        "meaning",
        lambda dark: figures.importance_against(
            analysis.importance, told.best, analysis.important, [grid.names[at] for at in told.which], title, label,
            dark=dark,
        ),
        alt=title,
        read="a mark is a unit; farther right the network's answers owe more to it, higher up it goes more with the "
        "hypothesis that suits it best. Diamonds are the bench's important neurons. Click a mark to look at its unit.",
        depends=(measured.key, layer, label),
        clicked=lambda points: pairs.pick(
            measured, grid, layer, int(told.which[int(np.ravel(points[0]["customdata"])[0])]),
            int(np.ravel(points[0]["customdata"])[0]),
        ),
    )  # fmt: skip


def meaning_sentence(told: Meaning, m: int) -> str:
    """Compare important neurons with the others in words."""
    if not np.isfinite(told.important + told.others):
        return "All units of the layer that change are important ones, or none is: there is nothing to compare."
    more = told.chance <= 0.05
    return (
        f"**The {m} important neurons go {'more' if more else 'no more than chance'} with something that can be named: "
        f"their strongest associations are {told.important:.2f} on average, those of the other units "
        f"{told.others:.2f}.** Of random sets of {m} units, {100 * told.chance:.2g} % reach as much. Over all units, "
        f"the rank correlation of importance and strongest association is {told.correlation:.2f}."
        + (f" Left out {'are' if told.still > 1 else 'is'} {plural(told.still, 'unit')} that never change"
           f"{'' if told.still > 1 else 's'}." if told.still else "")
    )


def draw_training(measured: Measured, grid: Grid, measure: str, layer: str, label: str) -> None:
    """Compare with the same network before its training."""
    st.header("Did training bring it about?", anchor=False)
    st.caption(
        "The studio keeps no weights between the epochs of a training; what can be compared is the same network "
        "with the weights it would begin with (seed 0), and as it is."
    )
    wanted = st.toggle(
        "Compare with the network before its training", key="untrained", bind="query-params",
        help="Inspects the same network with fresh weights on the same records; default off.",
    )  # fmt: skip
    if not wanted:
        return
    if not measured.whole:
        st.caption("This waits until all records are read: start again first.")
        return
    try:
        fresh = inspections.before_training(measured, measure, layer)
    except CancelledError:
        st.caption("Stopped before it was finished.")
        return
    strengths = beside_training(grid, fresh)
    rows = np.argsort(-(strengths[:, 0] - strengths[:, 1]), kind="stable")
    rows = rows if len(rows) <= 24 else np.concatenate([rows[:16], rows[-8:]])
    first = int(rows[0])
    better = int((strengths[:, 0] > strengths[:, 1]).sum())
    title = (
        f"{better} of {len(strengths)} hypotheses have a stronger unit after training; "
        f"{quoted(grid.names[first])} gained most ({strengths[first, 1]:.2f} to {strengths[first, 0]:.2f})"
    )
    layout.chart(
        view,
        "before-training",
        lambda dark: figures.before_and_after(
            strengths[rows], [grid.names[at] for at in rows], title, label, dark=dark
        ),
        alt=title,
        read="a line is a hypothesis, from its strongest unit before training (open) to after (filled). What random "
        "weights show already was not learnt. Shown are those that gained most and least.",
        depends=(measured.key, measure, layer),
    )


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
        visible = pairs.told_from_chance(grid)
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
    st.info("Stopped before any records were read. Start again, or choose fewer hypotheses.")
    st.stop()
measure, layer, rate = shown[:3]
label = PAIR_MEASURES[measure].label
grid = measured.grid(measure, layer, rate)
finding.markdown(sentence(measured, grid, layer, label, rate))
pair = pairs.choose(measured, grid, layer)
draw_map(measured, grid, shown, pair)
read = f"{count(int(grid.records.min()))} to " if grid.records.min() < grid.records.max() else ""
st.caption(
    f"Read: {read}{plural(int(grid.records.max()), 'record')} of {plural(len(view.chosen), 'test')}"
    f"{'' if measured.whole else ' (stopped)'}; the widest score is sure to ± {grid.widest:.2f}."
)

st.header("One hypothesis, one unit", anchor=False)
pairs.draw_choice(measured, grid, layer, pair)
pairs.draw_ranks(measured, grid, layer, pair, label)
one = next(one for one in inspections.chosen_hypotheses(view, settings) if one.name == grid.names[pair[0]])
try:
    pairs.draw_records(measured, layer, pair[1], one)
except CancelledError:
    st.caption("Stopped before single records were looked at.")
pairs.draw_links(measured, layer, pair[1])

draw_whole(measured)
draw_meaning(measured, grid, layer, label)
draw_training(measured, grid, measure, layer, label)
asking.draw(measured)
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
    "the tests depend on one another; hypotheses that hold, or fail, in fewer than 20 records are not tested.",
    "Source of hypotheses and measures: T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019.",
)
layout.take_away({"hypotheses-scores": measured.found.frame()})
