"""Findings of an attack in words, and its charts: sizes of changes, confusions, attacks side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from idc_core.figures import adversarial as figures
from studio.adversarial import attack_runs, attacks
from studio.adversarial.attacks import Plan, Run
from studio.jobs.results import View
from studio.shell.pages import unmet
from studio.state.selection import Selection
from studio.text import count, literal, percent, plural, signed
from studio.widgets import layout

_SIZES = {"l0": "pixels changed (L0)", "l2": "length of the change (L2)", "linf": "largest change (L\u221e)"}


def headline(view: View, run: Run) -> str:
    """Say how many tests were fooled, by how large a change, and how many cells are added."""
    done, fooled = run.result.done, int(run.fooled.sum())
    tests = plural(done, "test") if run.plan.every else f"{count(done)} correctly classified tests"
    aim = "" if run.plan.goal is None else f" into class {view.train.class_names[run.plan.goal]}"
    text = f"{run.plan.label} fools the network{aim} on {count(fooled)} of {tests} ({percent(run.share)})"
    if fooled:
        text += f", with a mean change of {run.mean('linf'):.3g} (L\u221e) and {run.mean('l2'):.2f} (L2)"
    cells, original = len(run.gained), plural(len(view.chosen), "original test")
    if cells:
        return f"**{text}. The attacked inputs add {plural(cells, 'cell')} to those of the {original}.**"
    return f"**{text}. The attacked inputs add no cells to those of the {original}.**"


def relevance_sentence(run: Run) -> str:
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


def draw_sizes(view: View, run: Run, key: str = "attack-sizes") -> None:
    """Draw the sizes of the changes."""
    title = f"{run.plan.label} fools {percent(run.share)} of {plural(run.result.done, 'input')}"
    if run.fooled.any():
        title += f", changing {run.mean('l0'):.0f} pixels by at most {run.mean('linf'):.3g} on average"
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


def draw_confusions(view: View, run: Run) -> pd.DataFrame:
    """Draw confusion matrices before and after. Returns the confusions after the attack, most frequent first."""
    names = view.train.class_names
    before, after = run.result.confusion(len(names))
    wrong = after - np.diag(np.diag(after))
    order = [divmod(int(place), len(names)) for place in np.argsort(-wrong, axis=None, kind="stable")]
    rows = [(names[true], names[answer], int(wrong[true, answer]), int(after[true].sum())) for true, answer in order]
    table = pd.DataFrame([row for row in rows if row[2]], columns=["true class", "predicted class", "inputs", "of"])
    title = "No class is confused with another after the attack"
    if len(table):
        true, predicted, inputs, total = table.iloc[0]
        title = f"Most frequent confusion after the attack: class {true} as {predicted}, {inputs} of "
        title += plural(int(total), "input")
    layout.chart(
        view,
        "attack-confusion",
        lambda dark: figures.confusions(before, after, names, title, dark=dark),
        alt=title + ". " + "; ".join(f"{row} as {answer}: {n}" for row, answer, n, _ in table.head(12).to_numpy()),
        read="Each square is the number of inputs of a true class (row) with a predicted class (column). Framed: "
        "correct predictions.",
        depends=run.key,
        table=table,
    )
    return table


def draw_comparison(view: View, runs: list[Run]) -> None:
    """Draw the attacks of this session on the same tests side by side."""
    title = _comparison_title(runs)
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
                "added cells": len(run.gained),
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
        "inputs. Added cells: reached by no original test.",
        depends=tuple(one.key for one in runs),
        table=table,
    )
    number = st.column_config.NumberColumn(format="%.3g")
    columns = dict.fromkeys(("fooled (%)", "L0", "L2", "L\u221e"), number)
    st.dataframe(table, hide_index=True, column_config=columns, alt="All attacks of this session on the same tests")


def _share(run: Run) -> float:
    return run.share


def _length(run: Run) -> float:
    return run.mean("l2")


def _cells(run: Run) -> int:
    return len(run.gained)


def _comparison_title(runs: list[Run]) -> str:
    """Say which attacks add most cells, and which changes least."""
    if len(runs) == 1:
        return f"So far only {runs[0].plan.label} ran on these tests: {plural(_cells(runs[0]), 'added cell')}"
    most = max(map(_cells, runs))
    best = [run.plan.label for run in runs if _cells(run) == most]
    smallest = min(runs, key=lambda run: _length(run) if run.fooled.any() else np.inf).plan.label
    text = f"{layout.names(best)} {'add' if len(best) > 1 else 'adds'} most cells: {most}" if most else "No cells added"
    return f"{text}; {smallest} has the smallest mean change"


def draw_side(run: Run, here: View, shown: View, _: Selection, key: str) -> None:
    """Draw the sizes of the changes on one of two setups, attacked in the same way."""
    same = _same_attack(run, here, shown)
    if same is None:
        need = unmet("adversarial", shown.setup)
        st.caption(need.reason if need else "Nothing is finished here.")
    else:
        draw_sizes(shown, same, f"attack-sizes-{key}")


def difference(run: Run, here: View, there: View) -> str:
    """Say how the two setups withstand the same attack."""
    other = _same_attack(run, here, there)
    if other is None:
        return "The pinned setup cannot be attacked."
    return (
        f"{run.plan.label} fools the network on {percent(run.share)} of the inputs here and on {percent(other.share)} "
        f"on the pinned setup. It adds {plural(len(run.gained), 'cell')} here, {len(other.gained)} there."
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
