"""Findings of an attack in words, and its charts and tables: sizes, confusions, added cells, attacks side by side."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from idc_core.evidence.of_tests import confused_pair
from idc_core.figures import adversarial as figures
from studio.adversarial import attack_runs, attacks
from studio.adversarial.attack_results import draw_small, places
from studio.adversarial.attacks import Plan, Run
from studio.jobs.results import View
from studio.shell import pins
from studio.shell.pages import draw_link, unmet
from studio.state.selection import Selection, picked_row, select, selected
from studio.text import cell_name, count, literal, percent, plural
from studio.widgets import layout

_SIZES = {"l0": "pixels changed (L0)", "l2": "length of the change (L2)", "linf": "largest change (L\u221e)"}

_CELLS, _CONFUSED = "gained-cells", "confusion-rows"
_EXTREMES = 3
"""Inputs of the smallest changes that are shown, and of the largest."""


def headline(view: View, run: Run) -> str:
    """Say how many tests were fooled, by how large a change, and how many cells are added, beside natural inputs."""
    size = ""
    if run.fooled.any():
        size = f"Mean change: {run.mean('linf'):.3g} (L\u221e), {run.mean('l2'):.2f} (L2)."
    accuracy = f"Accuracy on attacked inputs: {percent(run.accuracy)}."
    return layout.lead(_fooled(view, run), literal(run.finding(view).sentence), size, accuracy)


def _fooled(view: View, run: Run) -> layout.Headline:
    """Say how many tests are fooled."""
    aim = "" if run.plan.goal is None else f" into class {view.train.class_names[run.plan.goal]}"
    tests = "test" if run.plan.every else "correctly classified test"
    return layout.counted(f"Fooled by {run.plan.label}{aim}", int(run.fooled.sum()), run.result.done, tests)


def draw_sizes(view: View, run: Run) -> None:
    """Show how large the changes are, and the smallest and largest ones that succeed."""
    _draw_sizes(view, run)
    _draw_extremes(view, run)
    pins.beside(view, partial(_draw_side, run, view), partial(_difference, run))
    attack_runs.explain(
        view,
        run.plan,
        "Sizes are shares of the value range; a pixel counts as changed if a value moved by more than 0.00001.",
    )


def draw_confusions(view: View, run: Run) -> None:
    """Show which classes are confused before and after, and the inputs of one confusion."""
    _draw_confused(view, run, _draw_confusions(view, run))
    attack_runs.explain(view, run.plan)


def draw_cells(view: View, run: Run) -> None:
    """Show the cells that only attacked inputs reach, and these inputs."""
    _draw_added(view, run)
    attack_runs.explain(
        view,
        run.plan,
        "An added cell is a combination of clusters of the important neurons that no chosen test reaches. What as many "
        "natural inputs would add is predicted from the cells that one test reaches and those that two reach, with the "
        "range of 95 %. Training inputs are no such inputs: clusters were fitted to them.",
    )


def draw_all(view: View, run: Run) -> None:
    """Show all attacks on the same tests side by side."""
    _draw_comparison(view, attack_runs.open_session(view, run))
    attack_runs.explain(view, run.plan)


def _draw_sizes(view: View, run: Run, key: str = "attack-sizes") -> None:
    """Draw the sizes of the changes."""
    title = _fooled(view, run)
    layout.chart(
        view,
        key,
        lambda dark: figures.size_panels(
            {label: getattr(run.result, name) for name, label in _SIZES.items()}, run.fooled, title, dark=dark
        ),
        alt=title,
        read="Each panel is one measure of the change. x: its size (L2 and L\u221e as a share of the value range); y: "
        "number of inputs. Hatched: still classified correctly.",
        depends=run.key,
        table=pd.DataFrame(
            {"test": view.test.ids[run.positions], "fooled": run.fooled}
            | {name: getattr(run.result, name) for name in _SIZES}
        ),
    )


def _draw_confusions(view: View, run: Run) -> pd.DataFrame:
    """Draw confusion matrices before and after. Returns the confusions after the attack, most frequent first."""
    names = view.train.class_names
    before, after = run.result.confusion(len(names))
    wrong = after - np.diag(np.diag(after))
    order = [divmod(int(place), len(names)) for place in np.argsort(-wrong, axis=None, kind="stable")]
    rows = [(names[true], names[answer], int(wrong[true, answer]), int(after[true].sum())) for true, answer in order]
    table = pd.DataFrame([row for row in rows if row[2]], columns=["true class", "predicted class", "inputs", "of"])
    found = confused_pair(names, run.result.targets, run.result.predictions, lambda *_: ())
    title = layout.topic("Confusions before and after the attack") if found is None else layout.claim(found)
    layout.chart(
        view,
        "attack-confusion",
        lambda dark: figures.confusions(before, after, names, title, dark=dark),
        alt=title,
        read="Each square is the number of inputs of a true class (row) with a predicted class (column). Framed: "
        "correct predictions.",
        depends=run.key,
        table=table,
        more="; ".join(f"{row} as {answer}: {n}" for row, answer, n, _ in table.head(12).to_numpy()),
    )
    return table


def _draw_comparison(view: View, runs: list[Run]) -> None:
    """Draw the attacks of this session on the same tests side by side."""
    title = _comparison_title(view, runs)
    shares, lengths, cells = ([value(one) for one in runs] for value in (_share, _length, _cells))
    table = pd.DataFrame(
        [
            {
                "attack": run.plan.label,
                "inputs": run.result.done,
                "fooled": int(run.fooled.sum()),
                "fooled (%)": 100 * run.share,
                "L0": run.mean("l0"),
                "L2": run.mean("l2"),
                "L\u221e": run.mean("linf"),
                "accuracy (%)": 100 * run.accuracy,
                "added cells": len(run.gained),
                "by natural inputs": run.finding(view).control.value,
            }
            for run in runs
        ]
    )
    layout.chart(
        view,
        "attack-comparison",
        lambda dark: figures.attack_bars(
            [one.plan.label for one in runs],
            [one.plan.attack for one in runs],
            {
                "fooled": (shares, [percent(one) for one in shares]),
                "mean change (L2)": (lengths, [f"{one:.2f}" for one in lengths]),
                "added cells": (cells, [str(one) for one in cells]),
            },
            title,
            dark=dark,
        ),
        alt=title,
        read="Each bar is one attack on the same tests; each panel has its own scale. Mean change: L2 over fooled "
        "inputs. Added cells: reached by no original test. The table has what as many natural inputs would add.",
        depends=tuple(one.key for one in runs),
        table=table,
    )
    digits = {"fooled (%)": 1, "L0": 0, "L2": 2, "L\u221e": 3, "accuracy (%)": 1, "by natural inputs": 2}
    columns = {name: st.column_config.NumberColumn(format=f"%.{places}f") for name, places in digits.items()}
    st.dataframe(table, hide_index=True, column_config=columns, alt="All attacks of this session on the same tests")


def _share(run: Run) -> float:
    return run.share


def _length(run: Run) -> float:
    return run.mean("l2")


def _cells(run: Run) -> int:
    return len(run.gained)


def _comparison_title(view: View, runs: list[Run]) -> layout.Headline:
    """Say what the attack that adds most cells adds, beside as many natural inputs."""
    most = max(runs, key=_cells)
    among = f", most of {len(runs)} attacks" if len(runs) > 1 else ""
    return layout.claim(most.finding(view, f"New cells from {most.plan.label}{among}", len(runs)))


def _draw_side(run: Run, here: View, shown: View, _: Selection, key: str) -> None:
    """Draw the sizes of the changes on one of two setups, attacked in the same way."""
    same = _same_attack(run, here, shown)
    if same is None:
        need = unmet("adversarial", shown.setup)
        st.caption(need.reason if need else "Nothing is finished here.")
    else:
        _draw_sizes(shown, same, f"attack-sizes-{key}")


def _difference(run: Run, here: View, there: View) -> str:
    """Say how the two setups withstand the same attack."""
    other = _same_attack(run, here, there)
    if other is None:
        return "The pinned setup cannot be attacked."
    return (
        f"{run.plan.label} fools the network on {percent(run.share)} of the inputs here and on {percent(other.share)} "
        f"on the pinned setup. {run.finding(here, 'New cells here').sentence} "
        f"{other.finding(there, 'New cells there').sentence}"
    )


def _same_attack(run: Run, here: View, shown: View) -> Run | None:
    """Return the run of the same attack on one of two setups; None where it cannot be attacked."""
    plan: Plan = run.plan
    if shown is here:
        return run
    if unmet("adversarial", shown.setup) or not len(attacks.sample(shown, plan)):
        return None
    may_run = attacks.is_quick(shown, plan) or attack_runs.may_run(here, plan)
    try:
        return attacks.open_run(shown, plan, paused=not may_run)
    except IdcError as error:
        st.error(literal(error))
        return None


def _draw_extremes(view: View, run: Run) -> None:
    """Show the smallest and the largest changes that succeed."""
    fooled = places(run, "fooled")
    if len(fooled):
        st.header("The shortest and the longest changes that fool the network", anchor=False)
        some = np.unique(np.concatenate([fooled[:_EXTREMES], fooled[-_EXTREMES:]]))
        some = some[np.argsort(run.result.l2[some], kind="stable")]
        draw_small(view, run, some, "extreme-gallery", sizes=True)


def _draw_confused(view: View, run: Run, table: pd.DataFrame) -> None:
    """Show the inputs of one confusion: of the row that is chosen, at first the most frequent."""
    if not len(table):
        return
    st.dataframe(
        table,
        hide_index=True,
        key=_CONFUSED,
        on_select="rerun",
        selection_mode="single-row",
        height=280 if len(table) >= 8 else "auto",
        alt="Confusions after the attack, most frequent first; choose a row to see its inputs",
    )
    st.caption("Click a row to see its inputs.")
    true, predicted = table.iloc[picked_row(_CONFUSED, len(table)) or 0][["true class", "predicted class"]]
    names = view.train.class_names
    of = (run.result.targets == names.index(true)) & (run.result.predictions == names.index(predicted))
    some = np.flatnonzero(of)
    st.header(layout.topic("Class {} as {}", literal(true), literal(predicted)), anchor=False)
    draw_small(view, run, some, "confused-gallery")


def _draw_added(view: View, run: Run) -> None:
    """List the cells that only attacked inputs reach, and show their inputs; choosing one selects it on all pages."""
    table = _cell_table(view, run)
    if not len(table):
        covered, total = view.table.covered, view.table.total
        text = "The attacked inputs add no cells."
        if covered == total:
            text += f" The tests reach all {count(total)} already: choose more important neurons (m) in the sidebar."
        st.markdown(text)
        return
    inside, cells = int(table["attacked inputs"].sum()), plural(len(table), "cell")
    st.markdown(
        layout.lead(
            layout.claim(run.finding(view)),
            f"{plural(inside, 'attacked input')} {'is' if inside == 1 else 'are'} in {cells} that no test reaches.",
        )
    )

    layout.pick_table(
        table,
        _CELLS,
        lambda row: select(cell=str(table["cell"][row]), input=int(table["first test"][row])),
        "Cells that attacked inputs reach and no original test reaches; choose a row to select it",
        "auto" if len(table) < 8 else 280,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Click a row to select the cell and the attacked test on all pages.")
        draw_link("coverage", "Show the selected cell on the Coverage page")
    cell = selected().cell
    some = places(run, "new")
    if cell in set(table["cell"]):
        some = some[[cell_name(run.assignments[place]) == cell for place in some]]
    if cell in set(table["cell"]):
        st.header(layout.topic("Inputs in cell {}", cell), anchor=False)
    else:
        st.header("Inputs in these cells", anchor=False)
    draw_small(view, run, some, "cell-gallery")


def _cell_table(view: View, run: Run) -> pd.DataFrame:
    """Return one row per cell that only attacked inputs reach, those with most inputs first."""
    cells = run.gained
    fooled = np.bincount(cells.row[(cells.row >= 0) & run.fooled], minlength=len(cells))
    order = np.argsort(-cells.counts, kind="stable")
    first = [int(np.flatnonzero(cells.row == row)[0]) for row in order]
    return pd.DataFrame(
        {
            "cell": [cell_name(cells.cells[row]) for row in order],
            "attacked inputs": cells.counts[order],
            "fooled": fooled[order],
            "first test": view.test.ids[run.positions[first]] if len(first) else np.zeros(0, np.int64),
        }
    )
