"""Scores of the criteria as charts and tables: per suite, their rank correlation, and their growth with the tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import Method, correlations, subset_correlations
from idc_core.errors import CancelledError
from idc_core.evidence.finding import Finding
from idc_core.figures import criteria as figures
from idc_core.figures.neurons import agreement
from studio.criteria import compared_suites, criterion_scores
from studio.criteria.criterion_controls import with_others
from studio.criteria.criterion_scores import Agreement, Growth, MeasuredCriteria
from studio.jobs.results import View
from studio.shell import pins
from studio.state.choices import choose_one
from studio.text import count, percent, plural, signed
from studio.widgets import layout

_EQUAL, _SUITES = "same", "suites"
COEFFICIENT = "coefficient"
"""Name of a control, also in the address."""
_OVERS = {_EQUAL: "suites of equal size", _SUITES: "suites of different size", "growing": "growing subsets"}
_METHODS: dict[Method, str] = {"spearman": "Spearman", "kendall": "Kendall"}


def _suite_labels(view: View, measured: MeasuredCriteria) -> dict[str, str]:
    """Return the suites' names for a person."""
    offered, parts = compared_suites.others(view), compared_suites.PARTS
    return {name: parts[name].named(view) if name in parts else offered[name].label for name in measured.suites}


def _score_table(measured: MeasuredCriteria) -> NDArray[np.float64]:
    """Return the scores of every criterion (row) for every suite (column); NaN where one is not finished."""
    results = measured.results.values()
    return np.array([[result.scores.get(suite, np.nan) for suite in measured.suites] for result in results])


def _score_frame(measured: MeasuredCriteria) -> pd.DataFrame:
    """Return the scores as a table for download."""
    table = pd.DataFrame(_score_table(measured), columns=list(measured.suites))
    table.insert(0, "criterion", list(measured.results))
    return table


def _rank_correlations(measured: MeasuredCriteria, method: Method = "spearman") -> NDArray[np.float64]:
    """Return the rank correlation of every two criteria over the suites of different size."""
    scores = _score_table(measured)
    return correlations(scores[:, np.isfinite(scores).all(axis=0)], method)


def correlation_sentence(view: View, measured: MeasuredCriteria) -> str:
    """Say which criterion ranks suites of equal size as IDC does, beside what comes by chance."""
    try:
        agreement = criterion_scores.agree(view, measured)
    except CancelledError:
        return "Stopped before suites of equal size were scored."
    finding = _strongest(agreement)
    if finding is None or agreement.found is None:
        return "Too few criteria are measured, or too few tests, to compare criteria with IDC."
    found = agreement.found
    rest = f"Of {plural(found.tests, 'test')}, correlations beyond {found.by_chance:.2f} stand out."
    return layout.lead(layout.claim(finding), rest)


def _strongest(agreement: Agreement) -> Finding | None:
    """Return which criterion correlates most with IDC over suites of equal size; None where none can be compared."""
    found, names = agreement.found, [name.upper() for name in list(agreement.scores)[1:]]
    if found is None:
        return None
    return found.finding(names, f"{{}} correlates most with IDC over {found.suites} suites of {agreement.size} tests")


def draw_scores(view: View, measured: MeasuredCriteria, names: Sequence[str]) -> None:
    """Show the scores of every suite, and of the same criteria, by `names`, on the pinned setup."""
    scores = with_others(view, measured)
    _draw_suites(view, scores, "scores")
    _draw_table(view, scores)

    def measure(one: View) -> MeasuredCriteria:
        return criterion_scores.measure_criteria(one, names, measured.settings)

    pins.beside(
        view,
        lambda one, _, key: _draw_suites(one, measure(one), f"scores-{key}"),
        lambda here, there: _compare_setups(
            {"Here": (here, measure(here)), "On the pinned setup": (there, measure(there))}
        ),
    )
    layout.explain_criteria()
    layout.computed(
        view,
        f"All criteria look at layer {view.setup.layer}. Training inputs and tests pass through the network once. The "
        "targets that each test covers are kept; scores of parts are counted from them. NLC has no targets and is "
        "computed for each part. The clusters of CC are those of all tests in their order.",
    )


def draw_agreement(view: View, measured: MeasuredCriteria, place: DeltaGenerator) -> None:
    """Show how alike criteria rank suites or subsets; the coefficient is chosen in the settings, at `place`."""
    over = _choose_over()
    with place:
        method = _choose_coefficient()
    try:
        if over == _EQUAL:
            _draw_equal(view, measured, criterion_scores.agree(view, measured), method)
        else:
            growth = None if over == _SUITES else criterion_scores.grow(view, measured)
            scored = with_others(view, measured) if growth is None else measured
            _draw_correlations(view, scored, growth, over, method)
    except CancelledError:
        st.caption("Stopped before the random suites were scored.")
        return
    layout.computed(
        view,
        "Scores are counted from the targets that each test covers. Suites of equal size: random halves of the tests "
        "(seed 0). The suites share their tests: what comes by chance, and the intervals (95 %), are "
        "counted over 199 random orders of the tests, in which IDC is that of other tests; p: the largest of all "
        "criteria's correlations is as far from 0 by chance.",
    )


def draw_growth(view: View, measured: MeasuredCriteria) -> None:
    """Show how each criterion grows with the tests."""
    try:
        _draw_growth(view, measured, criterion_scores.grow(view, measured))
    except CancelledError:
        st.caption("Stopped before the random subsets were scored.")
    layout.computed(view, "Subsets are counted from the targets that each test covers. NLC is computed for each.")


def _draw_suites(view: View, measured: MeasuredCriteria, key: str) -> None:
    """Draw a panel per criterion with a bar per suite."""
    scores, labels = _score_table(measured), _suite_labels(view, measured)
    texts = [[_written(name, score) for score in row] for name, row in zip(measured.results, scores, strict=True)]
    units = {name: CRITERIA[name].card.unit for name in measured.results}
    titles = [f"{name.upper()}, {unit}" if unit else name.upper() for name, unit in units.items()]
    title = layout.topic("Scores by each criterion")
    layout.chart(
        view,
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
        read="Each bar is a suite. Scores are shares of the criterion's targets, or in the title's unit. Each panel "
        "has its own scale. Larger suites score higher by most criteria: compare suites of equal size.",
        depends=measured.key,
        table=_score_frame(measured),
    )


def _draw_table(view: View, measured: MeasuredCriteria) -> None:
    """Show all scores in a table, folded away."""
    labels = _suite_labels(view, measured)
    shown = [
        {"criterion": name.upper()}
        | {labels[suite]: _written(name, result.scores.get(suite, np.nan)) for suite in measured.suites}
        for name, result in measured.results.items()
    ]
    right = st.column_config.TextColumn(alignment="right")
    units = [f"{name.upper()} in {CRITERIA[name].card.unit}" for name in measured.results if CRITERIA[name].card.unit]
    with st.expander("Table"):
        st.dataframe(
            pd.DataFrame(shown),
            hide_index=True,
            height="content",
            column_config=dict.fromkeys(labels.values(), right),
            alt="Scores of every criterion for every suite",
        )
        if units:
            st.caption(f"Units of scores without %: {layout.names(units)}.")


def _choose_over() -> str:
    """Choose over what criteria are correlated."""
    return choose_one(
        st.segmented_control,
        "Compared over",
        _OVERS,
        _EQUAL,
        "over",
        required=True,
        help="What the criteria rank: random halves of the tests, so that size has no effect; the suites of the other "
        "tab; or random subsets that grow up to all tests. Default suites of equal size.",
    )


def _choose_coefficient() -> Method:
    """Choose by which coefficient criteria are correlated."""
    return choose_one(
        st.segmented_control,
        "Coefficient",
        _METHODS,
        "spearman",
        COEFFICIENT,
        required=True,
        help="Spearman correlates ranks; Kendall counts pairs in the same and in opposite order. Default Spearman.",
    )


def _draw_equal(view: View, measured: MeasuredCriteria, agreed: Agreement, method: Method) -> None:
    """Draw the rank correlation of every two criteria over suites of equal size, and list those with IDC."""
    finding = _strongest(agreed)
    title = layout.topic("Too few different scores to correlate") if finding is None else layout.claim(finding)
    matrix = correlations(np.stack([*agreed.scores.values()]), method)
    _draw_matrix(view, measured, matrix, title, (_EQUAL, method))
    found = agreed.found
    if found is None:
        return
    rows = [
        {
            "criterion": name.upper(),
            "correlation with IDC": signed(rho, ".2f"),
            "95 % interval": f"{signed(low, '.2f')} to {signed(high, '.2f')}",
            "p among all": f"{p:.3f}",
        }
        for name, rho, low, high, p in zip([*agreed.scores][1:], found.rho, found.low, found.high, found.p, strict=True)
        if np.isfinite(rho)
    ]
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True, alt="Spearman's correlation of every criterion with IDC")


def _draw_correlations(
    view: View, measured: MeasuredCriteria, growth: Growth | None, over: str, method: Method
) -> None:
    """Draw the rank correlation of every two criteria, over the suites or, where there is one, over the growth."""
    if growth is None:
        matrix = _rank_correlations(measured, method)
    else:
        matrix = subset_correlations(np.stack([*growth.scores.values()]), method)
    title = layout.topic("Rank correlation of the criteria over {}", _OVERS[over])
    _draw_matrix(view, measured, matrix, title, (over, method))


def _draw_matrix(
    view: View,
    measured: MeasuredCriteria,
    matrix: NDArray[np.float64],
    title: layout.Headline,
    depends: tuple[str, str],
) -> None:
    """Draw the rank correlation of every two criteria."""
    labels = [name.upper() for name in measured.results]
    layout.chart(
        view,
        "correlation",
        lambda dark: agreement(matrix, labels, title, "criterion", dark=dark),
        alt=title,
        read="Same ranking: 1, unrelated: 0, opposite: \u22121, one score throughout: empty. Most criteria score "
        "larger suites higher, so they correlate by size alone; suites of equal size remove this effect.",
        depends=(measured.key, *depends),
        table=pd.DataFrame(matrix, index=labels, columns=labels).reset_index(names="criterion"),
    )


def _draw_growth(view: View, measured: MeasuredCriteria, grown: Growth) -> None:
    """Draw the growth of every criterion with the number of tests."""
    growth, sizes = np.stack([*grown.scores.values()]), grown.subsets.sizes
    names = [name.upper() for name in grown.scores]
    title = layout.topic("Score by each criterion of the first tests, in random orders")
    shares = [not CRITERIA[name].card.unit for name in grown.scores]
    layout.chart(
        view,
        "criteria-growth",
        lambda dark, log: figures.growth_panels(sizes, growth, names, shares, title, logarithmic=log, dark=dark),
        alt=title,
        read=f"y: score. Line: mean over {len(grown.subsets.orders)} random orders (seed 0); band: their range. Where "
        "it is level, more such tests add nothing.",
        depends=measured.key,
        table=_growth_frame(names, growth, sizes),
        scale="linear",
    )


def _growth_frame(names: list[str], growth: NDArray[np.float64], sizes: NDArray[np.int64]) -> pd.DataFrame:
    """Return the growth as a table."""
    return pd.DataFrame(
        {
            "criterion": np.repeat(names, len(sizes)),
            "tests": np.tile(sizes, len(names)),
            "mean": growth.mean(axis=1).ravel(),
            "low": growth.min(axis=1).ravel(),
            "high": growth.max(axis=1).ravel(),
        }
    )


def _compare_setups(measured: dict[str, tuple[View, MeasuredCriteria]]) -> str:
    """Say which criterion agrees with IDC on either of two setups; scores of different layers are not compared."""
    said = [f"{where}: {correlation_sentence(*one).replace('**', '')}" for where, one in measured.items()]
    return " ".join(said)


def _written(name: str, score: float) -> str:
    """Write a score in its criterion's unit."""
    if np.isnan(score):
        return ""
    if not CRITERIA[name].card.unit:
        return percent(score)
    return f"{score:,.0f}" if score == round(score) else f"{score:.3g}"
