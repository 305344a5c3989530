"""What a higher score is good for: what tests find that each criterion selects, over the shipped networks."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from idc_core.figures import criteria as figures
from idc_core.store.cache import Record
from idc_core.worth import telling
from idc_core.worth.pooling import Mean, added, correlated, selected, yardsticks_of
from idc_core.worth.published import published
from studio.jobs.results import View
from studio.state.choices import choose_one
from studio.text import literal
from studio.widgets import layout

YARDSTICK = "yardstick"
"""Name of a control, also in the address."""


def draw(view: View) -> None:
    """Show what selections by each ranking find beside random ones, and what its score says of a suite."""
    records = _records()
    names = yardsticks_of(records)
    st.header("What a higher score is good for", anchor=False)
    yardstick = choose_one(
        st.selectbox,
        "Yardstick",
        {name: f"{name[0].upper()}{name[1:]}" for name in names},
        telling.headline(records),
        YARDSTICK,
        width=320,
        help="What tests are to find. Mutants are networks with small changes of weights, or trained anew with a "
        "fault, killed class by class. "
        f"Default {telling.headline(records)}.",
    )
    title = layout.claim(telling.finding(records, yardstick))
    rows = selected(records, yardstick, -1)
    table = pd.DataFrame(
        [
            {
                "ranking": telling.label(row.ranking),
                "networks": row.more.networks,
                "found": row.found,
                "random": row.random,
                "difference": row.more.value,
                **dict(zip(("low", "high", "p, Holm"), _told(row.more), strict=True)),
                "A12": row.above,
            }
            for row in rows
        ]
    )
    layout.plot(
        "worth",
        lambda dark: figures.worth_marks(
            [telling.label(row.ranking) for row in rows], [row.more for row in rows], title, dark=dark
        ),
        title,
        "Each mark is the mean difference between what the tests find that a ranking selects, 5 % of a pool, and what "
        "as many random tests find, with its interval over the networks. Filled marks stand out among all.",
    )
    st.markdown(" ".join(map(literal, telling.answer(records, yardstick=yardstick)[1:])))
    with st.expander("Table"):
        st.dataframe(table, hide_index=True, height=360, alt="What the selections of every ranking find")
        st.dataframe(_rho_table(records, yardstick), hide_index=True, height=360, alt="Correlations of every score")
    _draw_corruptions(records)
    layout.computed(
        view,
        f"Kept results of {len(records)} shipped networks, not of this setup. Random: mean of 200 selections. "
        "Intervals: bootstrap over the networks, 95 %. What stands out: Wilcoxon's signed-rank test over the networks, "
        "with Holm's correction over the rankings. Networks on the same data share their tests. More is in "
        "docs/results/worth.md.",
    )


def _told(mean: Mean) -> tuple[float | None, ...]:
    """Return the ends of an interval and the probability; none of them of one network."""
    return (mean.low, mean.high, mean.corrected_p) if mean.networks > 1 else (None, None, None)


def _draw_corruptions(records: dict[str, Record]) -> None:
    """Say and list what corrupted tests add by each criterion, and how much of it only refused inputs reach."""
    rows = added(records)
    if not rows:
        return
    st.header("What corrupted tests add", anchor=False)
    st.markdown(literal(telling.corrupted(records, rows)))
    levels = [level for level in rows[0].times if level in telling.TOLD]
    shares = {f"refused, {level if level != '0' else 'as they are'} (%)": level for level in ("0", *levels)}
    table = [
        {"criterion": telling.label(row.criterion), "networks": row.times[levels[0]].networks}
        | {f"times, severity {level}": telling.times(row.times[level]) for level in levels}
        | {name: 100 * row.invalid[level] for name, level in shares.items()}
        for row in rows
    ]
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        height=360,
        column_config={name: st.column_config.NumberColumn(format="%.1f") for name in shares},
        alt="What corrupted tests add by every criterion, and the share that only refused inputs reach",
    )
    st.caption(
        "Times: new targets of corrupted tests beside those of the same tests as they are. Refused: share of the new "
        "targets that only inputs reach which a calibrated detector refuses."
    )


@st.cache_data(show_spinner=False)
def _records() -> dict[str, Record]:
    """Return the kept records, read once."""
    return published()


def _rho_table(records: dict[str, Record], yardstick: str) -> pd.DataFrame:
    """Return the correlation of each score with the share found, by design."""
    found = correlated(records, yardstick)
    names = {name for rows in found.values() for name in rows}
    heads = {"equal": "one size", "stretched": "made to differ", "sizes": "many sizes", "partial": "size held fixed"}
    return pd.DataFrame(
        [
            {"ranking": telling.label(name)} | {heads[design]: telling.rho(found[design].get(name)) for design in found}
            for name in sorted(names)
        ]
    )
