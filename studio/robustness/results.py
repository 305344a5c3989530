"""The results of retraining: finding, curves, differences, tables, added inputs and downloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.base.files import COMMAND
from idc_core.evidence.finding import Finding
from idc_core.evidence.paired import CONFIDENCE, equivalent_within
from idc_core.experiments.retraining import usual_recipe
from idc_core.experiments.retraining_results import Difference, RetrainedNetwork
from idc_core.experiments.rq6 import ADDITIONS, MOST_ATTACKED, NONE, RAISING, RANDOM, TESTS, RQ6Settings
from idc_core.figures import input_images
from idc_core.figures import robustness as figures
from idc_core.models.registry import find_entry
from idc_core.suites import SUITES
from studio.jobs.results import View, idc_settings
from studio.robustness.retraining import RQ6Run, rq6_run, usual_settings
from studio.shell import pins
from studio.state.selection import Selection
from studio.text import count, literal, lower, percent, plural, signed
from studio.widgets import layout

_COLUMNS = 6

_SHORT = {RAISING: "raising IDC", RANDOM: "random", NONE: "nothing added"}
"""Additions in a table's heading or a legend."""

_PAIRS = ((RAISING, RANDOM), (RAISING, NONE), (RANDOM, NONE))

_APART = "as good as random within"
"""Heading of the smallest margin within which the chosen inputs are certainly as good as random ones."""


def _amount(run: RQ6Run, value: float) -> str:
    """Write a difference of accuracies in points, or of errors."""
    share = run.result.task == "classification"
    return f"{signed(100 * value, '+.1f')} points" if share else f"{signed(value, '+.4f')} rad"


def _significant(run: RQ6Run, pair: Difference) -> str:
    """Say on how many tests a difference is significant, and how large it is there; empty where on none."""
    places = np.flatnonzero(pair.exceeds)
    if not len(places):
        return ""
    low, high = (_amount(run, end(pair.mean[places])) for end in (np.min, np.max))
    if len(places) == 1:
        return f"{high} on {lower(TESTS[run.result.tests[places[0]]])}"
    most = lower(TESTS[run.result.tests[places[np.argmax(np.abs(pair.mean[places]))]]])
    return f"{low.split()[0]} to {high} on {len(places)} of {len(run.result.tests)} test sets, most on {most}"


def sentence(run: RQ6Run) -> str:
    """Put the finding into words."""
    result = run.result
    if not result.networks:
        return _before_first_result(run)
    seeds = len(result.finished(*ADDITIONS))
    if seeds < 2:
        return layout.lead(_done(run), "There is no result yet: significance needs two finished seeds.")
    significant = _significant(run, result.difference(RAISING, RANDOM))
    places = f"Significant differences: {significant}." if " test sets" in significant else ""
    looks = f"{seeds} seeds; {len(result.tests)} test sets, corrected (Holm)."
    return layout.lead(layout.claim(_finding(run)), places, looks)


def _done(run: RQ6Run) -> layout.Headline:
    """Say how many networks are retrained."""
    return layout.counted("Retrained", len(run.result.networks), run.total, "network")


def _finding(run: RQ6Run) -> Finding:
    """Return the accuracy with inputs that raise IDC where it differs most certainly from that with random ones."""
    result = run.result
    column = result.most_different(RAISING, RANDOM)
    measure = "Accuracy" if result.task == "classification" else "RMSE"
    claim = f"{measure} on {lower(TESTS[result.tests[column]])} with {_added(run)}"
    return result.finding(RAISING, RANDOM, column, claim, "with as many random ones")


def _added(run: RQ6Run) -> str:
    """Name the inputs that raise IDC, or those of a suite, with their number."""
    return f"{plural(round(np.mean(run.result.added(RAISING))), 'input')} {_which(run)}"


def _which(run: RQ6Run) -> str:
    """Say which inputs are added, behind the word."""
    return "that raise IDC" if run.suite is None else "of the suite"


def _long(run: RQ6Run) -> dict[str, str]:
    """Return the additions by name, for a person."""
    return {**ADDITIONS, RAISING: f"inputs {_which(run)}"}


def _short(run: RQ6Run) -> dict[str, str]:
    """Return them for a table's heading or a legend."""
    return _SHORT if run.suite is None else {**_SHORT, RAISING: "suite"}


def draw_accuracy(run: RQ6Run) -> None:
    """Show accuracy after every epoch, and after the last one; before that, what will be done."""
    if run.result.networks:
        _draw_curves(run, "curves")
        _draw_means(run)
    else:
        _draw_command(run)
    pins.beside(run.view, partial(_draw_side, run), partial(_compare_setups, run))
    layout.computed(run.view, *_on_training(run))


def draw_differences(run: RQ6Run) -> None:
    """Show which additions differ significantly."""
    _draw_intervals(run)
    layout.computed(
        run.view,
        "Intervals are over the seeds: the order of training and the noise, not other tests or other networks.",
    )


def draw_added(run: RQ6Run) -> None:
    """Show what was added, and offer the retrained networks."""
    _draw_inputs(run)
    layout.computed(run.view, f"Shown are additions of seed {run.seeds[0]}. {_on_additions(run)}")
    if run.result.networks:
        layout.take_away({}, _files(run))


def _draw_curves(run: RQ6Run, key: str) -> None:
    """Draw accuracy after every epoch."""
    result = run.result
    title = layout.topic("{} after every epoch", result.unit[0].upper() + result.unit[1:])
    layout.chart(
        run.view,
        key,
        lambda dark: figures.curves(result, _short(run), TESTS, title, dark=dark),
        alt=title,
        read="Each panel is a test set with its own scale; brackets name the attacked network. Line: mean over the "
        f"finished seeds, with inputs {_which(run)}, as many random perturbed inputs, or nothing added. Band, and ± in "
        "the table after the last epoch: standard deviation. Epoch 0 is before retraining.",
        depends=(run.path.name, run.seeds, tuple(result.networks)),
        table=_epoch_table(run),
    )


def _draw_intervals(run: RQ6Run) -> None:
    """Draw the differences of the additions at the end, and list them."""
    result = run.result
    seeds = len(result.finished(*ADDITIONS))
    if not seeds:
        st.caption("Differences appear when the first seed is finished.")
        return
    pairs = [result.difference(*pair) for pair in _PAIRS]
    title = layout.topic("Confidence intervals need a second seed")
    if seeds > 1:
        title = layout.claim(_finding(run))
    layout.chart(
        run.view,
        "differences",
        lambda dark: figures.differences(result, pairs, _short(run), TESTS, title, dark=dark),
        alt=title,
        read=f"Each mark is a mean paired difference of two additions: inputs {_which(run)}, as many random perturbed "
        f"inputs, or nothing. Line: its {100 * CONFIDENCE:.0f} % confidence interval (Student's t), corrected for the "
        "number of test sets (Holm). Intervals that exclude 0 are significant, in the table marked by *; its last "
        "column is the smallest margin within which raising IDC and random are equivalent (two one-sided tests, 5 %).",
        depends=(run.path.name, run.seeds, tuple(result.networks)),
        table=pd.DataFrame(result.rows()),
    )
    _draw_table(_tables(run)[1], "Every test with the differences of additions; a star marks significant ones")


def _tables(run: RQ6Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row per test: mean and deviation of every addition; and the paired differences."""
    result = run.result
    factor, unit, places = (100, " %", 1) if result.task == "classification" else (1, "", 4)
    mean, deviation = factor * result.mean(), factor * result.deviation()
    rows, differences = [], []
    for column, name in enumerate(result.tests):
        row = {"test": TESTS[name], "before": f"{np.nanmean(mean[:, 0, column]):.{places}f}{unit}"}
        for place, addition in enumerate(result.additions):
            value, spread = mean[place, -1, column], deviation[place, -1, column]
            around = f" ± {spread:.{places}f}" if np.isfinite(spread) else ""
            row[_long(run)[addition]] = f"{value:.{places}f}{around}{unit}" if np.isfinite(value) else ""
        rows.append(row)
        row = {"test": TESTS[name]}
        for first, other in _PAIRS[:2]:
            pair = result.difference(first, other)
            how = f"+.{places}f"
            value, low, high = (factor * end[column] for end in (pair.mean, pair.low, pair.high))
            around = f" ({signed(low, how)} to {signed(high, how)})" if np.isfinite(low) else ""
            text = f"{signed(value, how)}{around}{' *' if pair.exceeds[column] else ''}" if np.isfinite(value) else ""
            row[f"{_short(run)[first]} \u2212 {_short(run)[other]}"] = text
        apart = factor * equivalent_within(result.difference(RAISING, RANDOM).values)[column]
        row[_APART] = f"{apart:.{places}f}" if np.isfinite(apart) else ""
        differences.append(row)
    return pd.DataFrame(rows), pd.DataFrame(differences)


def _draw_means(run: RQ6Run) -> None:
    """List the accuracy on every test at the end."""
    _draw_table(_tables(run)[0], "Every test with the accuracy of each addition: mean ± standard deviation over seeds")


def _draw_table(table: pd.DataFrame, alt: str) -> None:
    """Show one row per test."""
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns[1:], right), alt=alt
    )


def _before_first_result(run: RQ6Run) -> str:
    """Say what is done, or would be, where nothing is finished yet."""
    if run.going:
        return layout.lead(_done(run), "Significance needs two seeds.")
    epochs = plural(run.settings.epochs, "epoch")
    return (
        f"**No network is retrained yet.** Start trains {run.total} copies for {epochs} each. "
        "It shows the time left once the first one trains."
    )


def _draw_command(run: RQ6Run) -> None:
    """Show the command line that makes this run, where there is one."""
    if run.going or not _is_usual(run):
        return
    name = run.view.card.name
    with st.expander("In a terminal"):
        st.code(f"{COMMAND} experiment rq6 --models {name} --seeds {len(run.seeds)}", language=None)
        st.caption("Results appear here on reload.")


def _is_usual(run: RQ6Run) -> bool:
    """Whether everything but the number of seeds is as the command line does it."""
    card, setup = run.view.card, run.view.setup
    whole = (setup.data, setup.layer, setup.filter_words) == (card.dataset, card.default_layer, "")
    return whole and run.settings == usual_settings(run.view)


def _draw_inputs(run: RQ6Run) -> None:
    """Show some of the inputs that were added with the first seed, once there are any."""
    if not run.result.networks:
        st.caption("Inputs appear when the first network is finished.")
        return
    for column, name in zip(st.columns(2, gap="medium"), (RAISING, RANDOM), strict=True):
        network, label = run.result.networks.get((name, run.seeds[0])), _capital(_long(run)[name])
        with column:
            if network is None:
                st.caption(f"{label}: not finished yet.")
                continue
            classes = run.view.train.class_names
            values = [classes[target] if classes else signed(target) for target in network.shown_targets]
            rows = [" ".join(values[i : i + _COLUMNS]) for i in range(0, len(values), _COLUMNS)]
            text = f"{label}: {len(network.shown)} of {count(network.added)}. "
            text += f"True {'classes' if classes else 'values'} by row: {', '.join(rows)}."
            pictures = input_images.spaced(input_images.pictures(network.shown, 56))
            sheet = input_images.side_by_side(pictures, _COLUMNS)
            st.image(sheet, width="content", output_format="PNG", alt=text)
            st.caption(literal(text))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _draw_side(run: RQ6Run, side: View, chosen: Selection, key: str) -> None:
    """Draw the curves of one of two setups, as far as they are finished."""
    there = _run_of(run, side)
    if there.result.networks:
        _draw_curves(there, f"curves-{key}")
    else:
        st.caption("No network is retrained for this setup yet. Open it (Swap in the sidebar) and press Start.")


def _compare_setups(run: RQ6Run, here: View, there: View) -> str:
    """Say how many networks are retrained on both setups."""
    numbers = [len(_run_of(run, side).result.networks) for side in (here, there)]
    return f"Retrained networks: {numbers[0]} here, {numbers[1]} on the pinned setup."


def _run_of(run: RQ6Run, side: View) -> RQ6Run:
    return run if side is run.view else rq6_run(side, _settings_of(run, side), run.seeds)


def _settings_of(run: RQ6Run, side: View) -> RQ6Settings:
    """Return the settings of this page for another setup."""
    neurons = side.train_traces.activations[side.setup.layer].shape[1]
    options = idc_settings(side.setup).options
    suite = run.settings.suite if run.view.test.fingerprint == side.test.fingerprint else ""
    return replace(run.settings, layer=side.setup.layer, m=min(run.settings.m, neurons), suite=suite, **options)


def _on_additions(run: RQ6Run) -> str:
    """Say how additions are chosen."""
    settings, view = run.settings, run.view
    noise = f"{percent(settings.share)} of the pixels, standard deviation {settings.deviation:g}"
    cells = f"layer {settings.layer}, m = {settings.m}, {settings.clustering}"
    if len(settings.clusters) == 1:
        cells += f", k = {settings.clusters[0]}"
    cells += ", zeros dropped" if settings.drop_zeros else ""
    kinds = layout.names([lower(SUITES[name].label) for name in settings.kinds])
    passing = view.setup.filter_words
    some = f" Tests are those {passing}; training inputs are not filtered." if passing else ""
    if run.suite is not None:
        blended = any(step.recipe == "blend" for step in run.suite.provenance)
        but = ", but for the second test of a blend" if blended and run.suite.partner.max() < 0 else ""
        return (
            f"Added are the {plural(len(run.suite), 'input')} of the suite, with their own labels. Tests that they "
            f"were made of are left out of all measures{but}. As many "
            f"random ones are training inputs perturbed by {kinds} ({noise}); those of the suite can be made of other "
            f"inputs.{some}"
        )
    return (
        f"Candidates: up to 10,000 training inputs per seed, each perturbed once by {kinds} ({noise}). A candidate "
        f"raises IDC if no test reaches its cell ({cells}). Of every such cell the candidate nearest to the centroids "
        "is taken, then the next one, and so on. As many random ones are drawn from all candidates. Targets are those "
        f"of the original inputs. No test is among the candidates.{some}"
    )


def _on_training(run: RQ6Run) -> tuple[str, str]:
    """Say how networks are trained, and on what they are measured."""
    settings, found, view = run.settings, run.result, run.view
    rate = " The learning rate is a third of the original one." if settings.start == "trained" else ""
    if find_entry(view.setup.model).recipe is None:
        used = usual_recipe(view.model, settings.start)
        rate = (
            f" This network came without a recipe: AdamW, highest learning rate {used.learning_rate:g} with warm-up "
            f"and decay, batches of {min(used.batch, len(view.train))}."
        )
    return (
        f"Per seed, three copies of the network are trained: one with inputs {_which(run)}, one with as many random "
        f"perturbed inputs, one with nothing added. Each is trained for {found.epochs} epochs of {count(found.steps)} "
        f"steps: additions replace training inputs.{rate}",
        "Noise in the tests has the same strength and another seed. Relevance and the fixed attacks are of the network "
        f"before retraining. Attacks change the first {count(min(MOST_ATTACKED, len(run.tests)))} tests by at most "
        f"{settings.epsilon:g}, BIM in ten steps. The paper's FGSM uses 0.3, at which accuracy is close to 0.",
    )


def _epoch_table(run: RQ6Run) -> pd.DataFrame:
    """Return one row per network, epoch and test."""
    result = run.result
    rows = [
        {"addition": name, "seed": seed, "added": network.added, "epoch": epoch, "test": test, result.unit: value}
        for (name, seed), network in result.networks.items()
        for epoch, row in enumerate(network.values)
        for test, value in zip(result.tests, row, strict=True)
    ]
    return pd.DataFrame(rows)


def _weights(network: RetrainedNetwork) -> bytes:
    """Write a retrained network's weights as safetensors."""
    from safetensors.numpy import save

    return save(network.weights)


def _files(run: RQ6Run) -> dict[str, tuple[str, str, Callable[[], bytes]]]:
    """Offer the retrained weights of the first seed."""
    seed, name = run.seeds[0], run.view.card.name

    def file(addition: str) -> tuple[str, str, Callable[[], bytes]]:
        network = run.result.networks[addition, seed]
        return f"{name}-{addition}-{seed}.safetensors", "application/octet-stream", lambda: _weights(network)

    return {
        f"Weights: {_short(run)[addition]}": file(addition)
        for addition in ADDITIONS
        if (addition, seed) in run.result.networks
    }
