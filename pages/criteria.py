"""Criteria: whether others see the same as IDC, and which tests each would run first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import correlations, subset_correlations
from idc_core.coverage.prioritisation import Finding, Order
from idc_core.figures import criteria as figures
from idc_core.figures.neurons import agreement
from studio.criteria import compared_suites, criterion_scores, prioritised_tests
from studio.criteria.criterion_scores import Measured, Settings
from studio.engine import suite_catalog
from studio.engine.results import View
from studio.shell import address, pins
from studio.shell.frame import current_view
from studio.widgets import layout
from studio.widgets.text import count, lower, plural, signed

view = current_view()
finding = st.empty()


CHOSEN, OTHERS = "criteria", "suites"  # names of the controls, also in the address
OVERS = {"suites": "suites", "growing": "growing subsets", "same": "subsets of one size"}
METHODS = {"spearman": "Spearman", "kendall": "Kendall"}
APFD = " APFD counts every misclassified test as a fault of its own (Rothermel et al. 2001; Feng et al., ISSTA 2020)."


def choose_criteria() -> list[str]:
    """Choose which criteria are measured; IDC always is."""
    said, usual = address.read(CHOSEN).split(","), criterion_scores.usual(view)
    st.session_state[CHOSEN] = [name for name in CRITERIA if name in said] or usual
    chosen = st.pills(
        "Criteria",
        list(CRITERIA),
        selection_mode="multi",
        format_func=str.upper,
        key=CHOSEN,
        on_change=lambda: address.keep(CHOSEN, ",".join(st.session_state[CHOSEN])),
        help="Which criteria are measured; IDC always is. Default all; on large data sets all but LSC, DSC and CC, "
        "which compare every test with many others and take seconds when they are chosen, and without classes all but "
        "DSC.",
    )
    misfits = criterion_scores.misfits(view)
    waiting = [name.upper() for name in criterion_scores.slow(view) if name not in (*chosen, *misfits)]
    if waiting:
        st.caption(
            f"{layout.names(waiting)} {'compare' if len(waiting) > 1 else 'compares'} every test with many other "
            "inputs, which takes some seconds here: choose what you want to see."
        )
    if misfits:
        left = [name.upper() for name in misfits]
        st.caption(f"Not measured: {layout.names(left)}, by distances to other classes. These tests have no classes.")
    return [name for name in CRITERIA if name == "idc" or name in chosen]


def choose_others() -> list[str]:
    """Choose other suites beside the parts of the tests."""
    offered = compared_suites.others(view)
    if not offered:
        return []
    st.session_state[OTHERS] = [name for name in suite_catalog.chosen_names() if name in offered]
    return st.multiselect(
        "Other suites beside these tests",
        list(offered),
        format_func=lambda name: offered[name].label,
        key=OTHERS,
        on_change=lambda: address.keep(OTHERS, ",".join(st.session_state[OTHERS])),
        placeholder="None",
        width=420,
        help="The tests together with what noise, a transform or an attack makes of them (attacks can take minutes), "
        "or with tests of your own; parts of the tests, and other test sets. How they are made is set on the Test "
        "sets page. Default none.",
    )


def choose_settings() -> dict[str, Settings]:
    """Choose the parameters of the criteria."""
    with st.expander("Parameters of the criteria"):
        columns = st.columns(3, gap="medium")
        values = {}
        for index, parameter in enumerate(criterion_scores.PARAMETERS):
            with columns[index % len(columns)]:
                values[parameter.key] = parameter.draw()
        st.caption("IDC takes m and the clusters from the bench. The defaults are those of the papers.")
    return criterion_scores.settings_of(values)


def suite_labels(measured: Measured, one: View) -> dict[str, str]:
    """Return the suites' names for a person."""
    offered = compared_suites.others(view)
    parts = compared_suites.PARTS
    return {name: parts[name].named(one) if name in parts else offered[name].label for name in measured.suites}


def score_table(measured: Measured) -> NDArray[np.float64]:
    """Return the scores of every criterion (row) for every suite (column); NaN where one is not finished."""
    readings = measured.readings.values()
    return np.array([[one.scores.get(suite, np.nan) for suite in measured.suites] for one in readings])


def related(measured: Measured, over: str, method: str) -> NDArray[np.float64]:
    """Return the rank correlation of every two criteria."""
    if over == "suites":
        scores = score_table(measured)
        return correlations(scores[:, np.isfinite(scores).all(axis=0)], method)
    growth = np.stack([one.growth for one in measured.readings.values()])
    return subset_correlations(growth, method, same_size=over == "same")


def extremes(measured: Measured, found: NDArray[np.float64]) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Return the criterion that agrees most with IDC, and the one that agrees least, with their correlations."""
    pairs = [
        (name.upper(), float(value))
        for name, value in zip(measured.readings, found[0], strict=True)
        if name != "idc" and np.isfinite(value)
    ]
    return (max(pairs, key=lambda pair: pair[1]), min(pairs, key=lambda pair: pair[1])) if pairs else None


def agreement_sentence(measured: Measured) -> str:
    """Say which criteria order the suites as IDC does, and what is left of it at one size."""
    found = extremes(measured, related(measured, "suites", "spearman"))
    if found is None or "idc" not in measured.readings:
        return "Too little is measured to compare criteria with IDC."
    (most, high), (least, low) = found
    text = f"**Over {plural(len(measured.suites), 'suite')}, {most} agrees most with IDC "
    text += f"(rank correlation {signed(high, '.2f')})"
    text += f" and {least} least ({signed(low, '.2f')}).**" if least != most else ".**"
    alike = extremes(measured, related(measured, "same", "spearman"))
    if alike is not None:
        text += (
            f" Among random subsets of one size, where size plays no part, the closest is {alike[0][0]} with "
            f"{signed(alike[0][1], '.2f')}."
        )
    return text


def mistakes_sentence(found: Finding | None, orders: dict[str, Order]) -> str:
    """Say which order meets the misclassified tests first."""
    if found is None:
        return ""
    best = max(found.apfd, key=lambda key: found.apfd[key])
    text = f" Of all orders to run the tests in, {lower(criterion_scores.order_label(orders[best]))} meets "
    text += f"misclassified ones soonest: APFD {found.apfd[best]:.3f}, where 1 is best and random orders have "
    text += f"{found.random.mean():.3f}"
    own = [key for key in found.apfd if orders[key].by == "additional"]
    cover = max(own, key=lambda key: found.apfd[key], default=best)
    if cover != best:
        text += f"; the best order by coverage ({orders[cover].name.upper()}) has {found.apfd[cover]:.3f}"
    return f"{text}."


def scores_title(measured: Measured, one: View) -> str:
    """Say whether criteria agree on two suites of about the same size, else what half of the tests keeps."""
    first, last, half = ("first", "last", "half")
    words = ("first classes", "last classes") if one.is_classifier else ("smaller answers", "larger answers")
    readings = measured.readings
    if {first, last} <= measured.suites.keys():
        higher = [name.upper() for name, one in readings.items() if one.scores[last] > one.scores[first]]
        others = [name.upper() for name, one in readings.items() if one.scores[last] < one.scores[first]]
        if higher and others:
            return (
                f"They do not agree: {layout.names(higher)} {'score' if len(higher) > 1 else 'scores'} the "
                f"{words[1]} higher than the {words[0]}, {layout.names(others)} the other way round"
            )
        if higher or others:
            least, most = words if higher else reversed(words)
            return f"No criterion scores the {least} higher than the {most}"
    kept = {name: one.scores[half] / one.scores["all"] for name, one in readings.items() if one.scores["all"] > 0}
    if not kept:
        return "These tests reach nothing by any criterion"
    most, least = max(kept, key=lambda name: kept[name]), min(kept, key=lambda name: kept[name])
    return (
        f"A random half of the tests keeps {100 * kept[most]:.0f} % of {most.upper()}, and {100 * kept[least]:.0f} % "
        f"of {least.upper()}"
    )


def draw_scores(measured: Measured, one: View, key: str) -> None:
    """Draw a panel a criterion with a bar a suite."""
    scores, labels = score_table(measured), suite_labels(measured, one)
    texts = [
        [criterion_scores.written(reading, score) for score in row]
        for reading, row in zip(measured.readings.values(), scores, strict=True)
    ]
    titles = [
        f"{name.upper()}, {criterion_scores.UNITS[name]}" if name in criterion_scores.UNITS else name.upper()
        for name in measured.readings
    ]
    title = scores_title(measured, one)
    layout.chart(
        one,
        key,
        lambda dark: figures.suite_scores(
            scores,
            titles,
            [f"{labels[name]} ({count(size)})" for name, size in measured.suites.items()],
            texts,
            title,
            dark=dark,
        ),
        alt=title,
        read="a panel is a criterion, a bar a suite with its number of tests; every panel has its own scale. Scores "
        "are shares of what the criterion counts, or numbers with the unit behind its name. More tests reach more, so "
        "compare suites of about the same size.",
        depends=measured.key,
    )


def draw_table(measured: Measured) -> None:
    """Show all scores in a table."""
    labels = suite_labels(measured, view)
    shown = [
        {
            "criterion": name.upper(),
            **{
                labels[suite]: criterion_scores.written(reading, reading.scores.get(suite, np.nan))
                for suite in measured.suites
            },
        }
        for name, reading in measured.readings.items()
    ]
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        pd.DataFrame(shown),
        hide_index=True,
        height="content",
        column_config=dict.fromkeys(labels.values(), right),
        alt="Scores of every criterion for every suite",
    )
    if any(name in criterion_scores.UNITS for name in measured.readings):
        st.caption("Numbers without % are in the unit that stands above the criterion's panel.")


def draw_correlations(measured: Measured) -> pd.DataFrame:
    """Draw how far every two criteria agree. Returns the table."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        over = st.segmented_control(
            "Compared over",
            list(OVERS),
            default="suites",
            required=True,
            format_func=OVERS.get,
            key="over",
            bind="query-params",
            help="What is put in order: the suites; random subsets that grow up to all tests; or random subsets of one "
            "size at a time, so that size plays no part. Default suites.",
        )
        method = st.segmented_control(
            "Coefficient",
            list(METHODS),
            default="spearman",
            required=True,
            format_func=METHODS.get,
            key="coefficient",
            bind="query-params",
            help="Spearman compares ranks; Kendall counts pairs in the same and in opposite order. Default Spearman.",
        )
    found, labels = related(measured, over, method), [name.upper() for name in measured.readings]
    extreme = extremes(measured, found)
    title = (
        f"Compared over {OVERS[over]}, {extreme[0][0]} agrees most with IDC ({extreme[0][1]:.2f}), {extreme[1][0]} "
        f"least ({extreme[1][1]:.2f})"
        if extreme
        else f"Compared over {OVERS[over]}, there is nothing to put in order"
    )
    layout.chart(
        view,
        "correlation",
        lambda dark: agreement(found, labels, title, "criterion", dark=dark),
        alt=title,
        read="1 says that two criteria put what is compared in the same order, 0 that their orders have nothing to do "
        "with each other, \u22121 that they are opposite; a square is empty where a criterion gives the same score "
        "throughout. Larger suites and subsets score higher by most criteria, so those agree for that reason "
        "alone; subsets of one size show what remains.",
        depends=(measured.key, over, method),
    )
    return pd.DataFrame(found, index=labels, columns=labels).reset_index(names="criterion")


def draw_growth(measured: Measured) -> pd.DataFrame:
    """Draw the growth of every criterion. Returns the table."""
    growth = np.stack([one.growth for one in measured.readings.values()])
    names = [name.upper() for name in measured.readings]
    last = growth[:, :, -1].mean(axis=1)
    middle = growth[:, :, (len(measured.sizes) - 1) // 2].mean(axis=1)
    size = measured.sizes[(len(measured.sizes) - 1) // 2]
    reached = np.divide(middle, last, out=np.full(len(last), np.nan), where=last > 0)
    title = "No criterion reaches anything"
    if np.isfinite(reached).any():
        slow, quick = int(np.nanargmin(reached)), int(np.nanargmax(reached))
        title = (
            f"With {plural(int(size), 'random test')} of {count(int(measured.sizes[-1]))}, {names[quick]} is at "
            f"{100 * reached[quick]:.0f}\u00a0% of what all tests give, {names[slow]} at "
            f"{100 * reached[slow]:.0f}\u00a0%"
        )
    layout.chart(
        view,
        "criteria-growth",
        lambda dark: figures.growth_panels(
            measured.sizes,
            growth,
            names,
            [criterion_scores.is_share(one) for one in measured.readings.values()],
            title,
            dark=dark,
        ),
        alt=title,
        read="a panel is a criterion; the line is the mean over 20 random orders of the tests (seed 0) and the band "
        "goes from the least to the most. A line that is level says that further tests of this kind add "
        "nothing; one that rises in proportion counts the tests.",
        depends=measured.key,
    )
    return pd.DataFrame(
        {
            "criterion": np.repeat(names, len(measured.sizes)),
            "tests": np.tile(measured.sizes, len(names)),
            "mean": growth.mean(axis=1).ravel(),
            "low": growth.min(axis=1).ravel(),
            "high": growth.max(axis=1).ravel(),
        }
    )


def draw_side(shown: View, chosen: Any, key: str) -> None:
    """Draw the scores of one of two benches."""
    draw_scores(criterion_scores.measure(shown, names, settings, []), shown, f"scores-{key}")


def compare(here: View, there: View) -> str:
    """Say on which bench more criteria are higher for all tests."""
    mine, theirs = (criterion_scores.measure(one, names, settings, []).readings for one in (here, there))
    both = [name for name in mine if name in theirs]
    higher = [name.upper() for name in both if mine[name].scores["all"] > theirs[name].scores["all"]]
    text = f"Of {len(both)} criteria {len(higher)} are higher here than on the pinned bench"
    return f"{text}: {layout.names(higher)}." if higher else f"{text}."


names = choose_criteria()
wanted = choose_others()
layout.explain_criteria()
settings = choose_settings()
offered = compared_suites.others(view)
measured = criterion_scores.measure(view, names, settings, [offered[name] for name in wanted])
for problem in measured.problems:
    st.warning(problem)
if not measured.readings:
    st.stop()
orders = {order.key: order for order in measured.orders}
found = criterion_scores.mistakes(view, measured)
finding.markdown(agreement_sentence(measured) + mistakes_sentence(found, orders))
draw_scores(measured, view, "scores")
draw_table(measured)

st.header("Do they put suites in the same order?", anchor=False)
correlation_table = draw_correlations(measured)

st.header("How each grows with the tests", anchor=False)
growth_table = draw_growth(measured)

st.header("Which tests would each run first?", anchor=False)
order = prioritised_tests.choose_order(orders)
tables = {
    "criteria-scores": pd.DataFrame(),
    "criteria-correlations": correlation_table,
    "criteria-growth": growth_table,
}
if found is None:
    st.caption(
        "No order can be judged by the mistakes it meets: "
        + (
            "right and wrong have no meaning here."
            if view.correct is None
            else "the network is right on all these tests."
        )
    )
else:
    tables["criteria-mistakes"] = prioritised_tests.draw_mistakes(view, found, orders, order, measured.key)
prioritised_tests.draw_first(view, order)

pins.beside(view, draw_side, compare)

layout.computed(
    view,
    f"All criteria look at layer {view.bench.layer}. Training inputs and tests pass through the network once; what "
    "each test covers by a criterion is kept, and parts, subsets and orders are counted from it. NLC has no "
    "targets and is computed anew for each part and subset; clusters of CC are those that all tests make in their "
    "order.",
    "An order by new coverage always takes the test that adds the most to what those before it cover; "
    "surprise criteria also take the most surprising first, and DeepGini, entropy and margin the least certain answer."
    + ("" if found is None else APFD),
    "\n".join(f"* {name.upper()}: {CRITERIA[name].card.label}. {CRITERIA[name].card.citation}" for name in names),
)
tables["criteria-scores"] = (
    pd.DataFrame(score_table(measured), columns=list(measured.suites))
    .assign(criterion=list(measured.readings))
    .set_index("criterion")
    .reset_index()
)
layout.take_away(tables)
