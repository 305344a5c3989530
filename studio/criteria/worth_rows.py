"""What a higher score is good for: what tests find that each criterion selects, over the shipped networks."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from idc_core.figures import criteria as figures
from idc_core.store.cache import Record
from idc_core.worth import telling
from idc_core.worth.pooling import correlated, selected, yardsticks_of
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
                "low": row.more.low,
                "high": row.more.high,
                "p, Holm": row.more.corrected_p,
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
    layout.computed(
        view,
        f"Kept results of {len(records)} shipped networks, not of this setup. Random: mean of 200 selections. "
        "Intervals: bootstrap over the networks, 95 %. What stands out: Wilcoxon's signed-rank test over the networks, "
        "with Holm's correction over the rankings. Networks on the same data share their tests. More is in "
        "docs/results/worth.md.",
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
