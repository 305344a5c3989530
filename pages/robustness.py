"""Robustness: whether training on what the tests were missing helps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from studio.engine.results import View, clustered
from studio.shell import pins
from studio.shell.frame import frame, open_bench
from studio.widgets import layout
from studio.widgets.text import count, lower, percent, plural, signed

if TYPE_CHECKING:
    from idc_core.experiments.retraining_results import Difference, RetrainedNetwork
    from idc_core.experiments.rq6 import RQ6Settings

view = open_bench(frame("robustness"))
finding = st.empty()

from idc_core.experiments.retraining_results import CONFIDENCE  # noqa: E402
from idc_core.experiments.rq6 import ADDITIONS, MOST_ATTACKED, NONE, RAISING, RANDOM, TESTS, usual  # noqa: E402
from idc_core.figures import input_images  # noqa: E402
from idc_core.figures import robustness as figures  # noqa: E402
from idc_core.suites import SUITES  # noqa: E402
from studio.engine.retraining import watch  # noqa: E402
from studio.robustness.retraining import RQ6Run, rq6_run  # noqa: E402

MS, ADDED, SHARES, SIZES = (2, 4, 6, 8, 10, 12), (2, 5, 10, 20), (2, 5, 10, 20), (0.05, 0.1, 0.2, 0.3)
EPOCHS, SEEDS = (1, 2, 3, 5, 10, 20), (2, 3, 5, 10)
STARTS = {"trained": "its own weights", "scratch": "fresh weights"}
COLUMNS = 6
AGAINST = {RANDOM: "random", NONE: "nothing"}
PAIRS = ((RAISING, RANDOM), (RAISING, NONE), (RANDOM, NONE))


def choose(shown: View) -> tuple[RQ6Settings, tuple[int, ...]]:
    """Choose what is added, how it is trained, and what is measured."""
    neurons = shown.train_traces.activations[shown.bench.layer].shape[1]
    start = replace(usual(shown.train, shown.bench.layer, neurons), **clustered(shown.bench))
    ms = sorted({m for m in MS if m <= neurons} | {start.m})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        added = _one(
            "Inputs added (%)",
            ADDED,
            round(100 * start.added),
            str,
            "added",
            "As a share of the training inputs; fewer where not as many raise IDC",
        )
        m = _one(
            "Neurons combined",
            ms,
            start.m,
            str,
            "combined",
            "How many important neurons' states tell inputs apart when those that raise IDC are chosen",
        )
        epochs = _one("Epochs", EPOCHS, start.epochs, str, "epochs", "Passes over the training inputs")
        seeds = _one("Seeds", SEEDS, 5, str, "seeds", "How often all of it is repeated with other draws")
    with st.expander("Noise, attacks and start"):
        kinds = st.pills(
            "Perturbations of training inputs",
            [name for name, kind in SUITES.items() if kind.family in ("noise", "transform")],
            selection_mode="multi",
            default=list(start.kinds),
            format_func=lambda name: SUITES[name].label,
            key="perturbed-by",
            bind="query-params",
            help="What the inputs to choose from are made by; default Random noise and Relevance-guided noise.",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            share = _one(
                "Pixels with noise (%)",
                SHARES,
                round(100 * start.share),
                str,
                "noisy-pixels",
                "Share of a picture's pixels that get noise, in what is added and in the tests",
            )
            size = _one(
                "Size of attacks",
                SIZES,
                start.epsilon,
                str,
                "attack-size",
                "Largest change of a pixel by FGSM and BIM, in parts of its range",
            )
            begin = _one(
                "Begin from",
                list(STARTS),
                "trained",
                STARTS.__getitem__,
                "begin",
                "Train the network further, or anew from random weights",
            )
    return (
        replace(
            start,
            m=m,
            kinds=tuple(kinds) or start.kinds,
            share=share / 100,
            added=added / 100,
            epsilon=size,
            epochs=epochs,
            start=begin,
        ),
        tuple(range(seeds)),
    )


def _one(label: str, options: Any, default: Any, written: Any, key: str, what: str) -> Any:
    """Choose one of a few values."""
    return st.segmented_control(
        label,
        options,
        default=default,
        required=True,
        format_func=written,
        key=key,
        bind="query-params",
        help=f"{what}; {written(options[0])} to {written(options[-1])}, default {written(default)}."
        if not isinstance(options[0], str)
        else f"{what}; default {written(default)}.",
    )


def amount(run: RQ6Run, value: float) -> str:
    """Write a difference of accuracies in points, or of errors."""
    share = run.result.task == "classification"
    return f"{signed(100 * value, '+.1f')} points" if share else f"{signed(value, '+.4f')} rad"


def said(run: RQ6Run, pair: Difference) -> str:
    """Say on which tests a difference exceeds the seeds' spread."""
    tests = [
        f"{amount(run, pair.mean[i])} on {lower(TESTS[name])}"
        for i, name in enumerate(run.result.tests)
        if pair.exceeds[i]
    ]
    return layout.names(tests) if tests else ""


def sentence(run: RQ6Run) -> str:
    """Put the finding into words; nothing is said to differ within the seeds' spread."""
    found = run.result
    chosen, plain = found.difference(RAISING, RANDOM), found.difference(RAISING, NONE)
    seeds = len(found.finished(*ADDITIONS))
    if seeds < 2:
        done = f"{len(found.networks)} of {run.total} networks"
        return f"**Too little is finished, {done}, to say what exceeds the seeds' spread: that takes two seeds.**"
    added = plural(round(np.mean(found.added(RAISING))), "input")
    against_random, against_none = said(run, chosen), said(run, plain)
    first = (
        f"**Against as many random perturbed inputs, {added} that raise IDC change {found.unit} by {against_random}.**"
        if against_random
        else f"**{added} that raise IDC cannot be told from as many random perturbed inputs by what they do: no "
        f"difference exceeds the spread of {seeds} seeds.**"
    )
    second = (
        f"Against nothing added they change it by {against_none}."
        if against_none
        else "Against nothing added, no difference exceeds it either."
    )
    return f"{first} {second}"


def curves_title(run: RQ6Run) -> str:
    """Say what the inputs that raise IDC change most, of what exceeds the seeds' spread."""
    found = run.result
    seeds = len(found.finished(RAISING, NONE))
    if seeds < 2:
        return f"{len(found.networks)} of {run.total} networks are retrained"
    pair = found.difference(RAISING, NONE)
    if not pair.exceeds.any():
        return f"Inputs that raise IDC or none: no difference exceeds the spread of {seeds} seeds"
    place = int(np.argmax(np.where(pair.exceeds, np.abs(pair.mean), 0)))
    return (
        f"Inputs that raise IDC change {found.unit} most on {lower(TESTS[found.tests[place]])}: "
        f"{amount(run, pair.mean[place])} against nothing added, over {seeds} seeds"
    )


def draw_curves(run: RQ6Run, key: str) -> None:
    """Draw accuracy after every epoch."""
    found, title = run.result, curves_title(run)
    layout.chart(
        run.view,
        key,
        lambda dark: figures.curves(found, ADDITIONS, TESTS, title, dark=dark),
        alt=title,
        read="a panel is a kind of test with a scale of its own; a line is the mean over the finished seeds, its band "
        "a standard deviation to either side. Epoch 0 is the network as it was. Where bands overlap, this may be "
        "chance.",
        depends=(run.path.name, run.seeds, tuple(found.networks)),
    )


def draw_differences(run: RQ6Run) -> None:
    """Draw how the additions differ at the end."""
    found = run.result
    seeds = len(found.finished(*ADDITIONS))
    if not seeds:
        st.caption("Differences are drawn as soon as all three networks of the first seed are retrained.")
        return
    pairs = [found.difference(*pair) for pair in PAIRS]
    beyond = said(run, pairs[0])
    title = f"Against random inputs: {beyond}" if beyond else "Against random inputs, nothing exceeds the seeds' spread"
    if seeds < 2:
        title = "One seed says nothing about the spread of seeds: intervals come with the second"
    layout.chart(
        run.view,
        "differences",
        lambda dark: figures.differences(found, pairs, ADDITIONS, TESTS, title, dark=dark),
        alt=title,
        read=f"a mark is a mean difference, seed by seed, and its bar the {100 * CONFIDENCE:.0f} % confidence interval "
        "of that mean (Student's t). A bar that leaves out the line at 0 exceeds the seeds' spread; of twenty such "
        "bars one does by chance alone.",
        depends=(run.path.name, run.seeds, tuple(found.networks)),
    )


def tabulate(run: RQ6Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row a test: every addition's mean and deviation; and the paired differences. Empty where unknown."""
    found = run.result
    factor, unit, places = (100, " %", 1) if found.task == "classification" else (1, "", 4)
    mean, deviation = factor * found.mean(), factor * found.deviation()
    rows, differences = [], []
    for column, name in enumerate(found.tests):
        row = {"test": TESTS[name], "before": f"{np.nanmean(mean[:, 0, column]):.{places}f}{unit}"}
        for place, addition in enumerate(found.additions):
            value, spread = mean[place, -1, column], deviation[place, -1, column]
            around = f" ± {spread:.{places}f}" if np.isfinite(spread) else ""
            row[ADDITIONS[addition]] = f"{value:.{places}f}{around}{unit}" if np.isfinite(value) else ""
        rows.append(row)
        row = {"test": TESTS[name]}
        for one, other in PAIRS[:2]:
            pair = found.difference(one, other)
            how = f"+.{places}f"
            value, low, high = (factor * end[column] for end in (pair.mean, pair.low, pair.high))
            around = f" ({signed(low, how)} to {signed(high, how)})" if np.isfinite(low) else ""
            told = f"{signed(value, how)}{around}{' *' if pair.exceeds[column] else ''}" if np.isfinite(value) else ""
            row[f"raising IDC \u2212 {AGAINST[other]}"] = told
        differences.append(row)
    return pd.DataFrame(rows), pd.DataFrame(differences)


def draw_tables(run: RQ6Run) -> None:
    """Show every test with its differences, in two tables: one would be wider than a narrow window."""
    right = st.column_config.TextColumn(alignment="right")
    means, differences = tabulate(run)
    for table, alt in (
        (means, "Every test with the accuracy of each addition"),
        (differences, "Every test with the differences of additions; a star marks those beyond the spread"),
    ):
        st.dataframe(
            table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns[1:], right), alt=alt
        )
    st.caption(
        "Mean ± standard deviation over the seeds. Differences are in points, or in the unit of the error, with their "
        "intervals; a star marks those that leave out 0."
    )


def beginning(run: RQ6Run) -> str:
    """Say what comes where nothing is finished yet."""
    if run.going:
        return (
            f"**The first of {run.total} networks is being retrained.** What it can do is drawn here as soon as it is "
            "finished; whether inputs that raise IDC help can be said from the second seed on."
        )
    long = "a minute or two" if run.starts else "minutes to hours"
    inputs = f"{count(len(view.train))} training inputs"
    return f"**Nothing is retrained yet.** {run.total} networks with {inputs} take {long}."


def draw_batch(run: RQ6Run) -> None:
    """Say how the same is made in batch, where a line of the command line makes just this."""
    if run.starts or run.going or not is_usual(run):
        return
    st.markdown("In batch, they are made by this line, and shown here when this page is opened again:")
    seeds = len(run.seeds)
    st.code(f"python -m idc_core experiment rq6 --models {view.model.card.name} --seeds {seeds}", language="bash")


def is_usual(run: RQ6Run) -> bool:
    """Whether everything but the number of seeds is as the command line does it."""
    card, bench = view.model.card, view.bench
    neurons = view.train_traces.activations[bench.layer].shape[1]
    whole = (bench.data, bench.layer, bench.classes) == (card.dataset, card.default_layer, ())
    return whole and run.settings == usual(view.train, bench.layer, neurons)


def explain(run: RQ6Run) -> None:
    """Say how it was computed."""
    settings, found = run.settings, run.result
    noise = f"{percent(settings.share)} of the pixels, standard deviation {settings.deviation:g}"
    cells = f"layer {settings.layer}, m = {settings.m}, {settings.clustering}"
    if len(settings.clusters) == 1:
        cells += f", k = {settings.clusters[0]}"
    cells += ", zeros dropped" if settings.drop_zeros else ""
    classes = f" Tests are those of class {view.class_label}; training inputs are of all classes." * bool(
        view.bench.classes
    )
    layout.computed(
        view,
        "For every seed, up to 10,000 training inputs are perturbed once by each of "
        f"{layout.names([lower(SUITES[name].label) for name in settings.kinds])} ({noise}). An input raises IDC if its "
        f"cell ({cells}) is one that no test of the bench reaches; of every such cell the input nearest to its "
        "centroids is taken, then the next of every cell, and so on. As many random ones are drawn from the same "
        "perturbed inputs. Right answers are those of the inputs they were made of. No test is among them; tests take "
        f"part only by which cells they reach.{classes} Layer, clusters and classes are the bench's; the number of "
        "neurons is chosen above.",
        f"Every network is trained for {found.epochs} epochs of {count(found.steps)} steps, with additions or without: "
        "what is added takes the place of training inputs. "
        + ("The learning rate is a third of the recipe's. " if settings.start == "trained" else "")
        + "The tests' noise has the same strength and draws of its own; relevance and the fixed attacks are of the "
        f"network as it was. Attacks change the first {count(min(MOST_ATTACKED, len(run.tests)))} tests by at most "
        f"{settings.epsilon:g}, BIM in ten steps. The paper's FGSM has 0.3, at which hardly an answer stays right.",
        "Intervals are over the seeds: over the order of training and the draws of noise, not over other tests or "
        "other first networks.",
    )


def long_table(run: RQ6Run) -> pd.DataFrame:
    """Return one row a unit, epoch and test."""
    found = run.result
    rows = [
        {"addition": name, "seed": seed, "added": unit.added, "epoch": epoch, "test": test, found.unit: value}
        for (name, seed), unit in found.networks.items()
        for epoch, row in enumerate(unit.values)
        for test, value in zip(found.tests, row, strict=True)
    ]
    return pd.DataFrame(rows)


def draw_added(run: RQ6Run) -> None:
    """Show some of the inputs that were added with the first seed."""
    st.header("What was added", anchor=False)
    columns = st.columns(2, gap="medium")
    for column, name in zip(columns, (RAISING, RANDOM), strict=True):
        unit, label = run.result.networks.get((name, run.seeds[0])), ADDITIONS[name][0].upper() + ADDITIONS[name][1:]
        with column:
            if unit is None:
                st.caption(f"{label}: not finished yet.")
                continue
            classes = view.train.class_names
            answers = [classes[one] if classes else signed(one) for one in unit.shown_targets]
            rows = [" ".join(answers[i : i + COLUMNS]) for i in range(0, len(answers), COLUMNS)]
            said = f"{label}, {len(unit.shown)} of {count(unit.added)} of seed {run.seeds[0]}. "
            said += f"Right answers, row by row: {', '.join(rows)}."
            sheet = input_images.side_by_side(input_images.spaced(input_images.pictures(unit.shown, 56)), COLUMNS)
            st.image(sheet, width="content", output_format="PNG", alt=said)
            st.caption(said)


def draw_side(shown: View, chosen: Any, key: str) -> None:
    """Draw the curves of one of two benches, as far as they are finished."""
    side = run if shown is view else rq6_run(shown, choose_for(shown), run.seeds)
    if side.result.networks:
        draw_curves(side, f"curves-{key}")
    else:
        st.caption("Nothing is retrained on this bench yet: open it (Swap in the sidebar) to begin.")


def choose_for(shown: View) -> RQ6Settings:
    """Return the settings of this page for another bench."""
    neurons = shown.train_traces.activations[shown.bench.layer].shape[1]
    usually = usual(shown.train, shown.bench.layer, neurons)
    clusters = {"clusters": usually.clusters} | clustered(shown.bench)
    return replace(run.settings, layer=shown.bench.layer, m=min(run.settings.m, neurons), **clusters)


def compare(here: View, there: View) -> str:
    """Say how far both benches are."""
    other = rq6_run(there, choose_for(there), run.seeds)
    return f"{len(run.result.networks)} networks are retrained here, {len(other.result.networks)} on the pinned bench."


def weights(network: RetrainedNetwork) -> bytes:
    """Write a retrained network's weights as safetensors."""
    from safetensors.numpy import save

    return save(network.weights)


def files(run: RQ6Run) -> dict[str, Any]:
    """Offer the retrained weights of the first seed."""
    seed, name = run.seeds[0], view.model.card.name
    return {
        f"Weights, {ADDITIONS[addition]} (safetensors)": (
            f"idc-{name}-{addition}-{seed}.safetensors",
            "application/octet-stream",
            lambda unit=run.result.networks[addition, seed]: weights(unit),
        )
        for addition in ADDITIONS
        if (addition, seed) in run.result.networks
    }


if view.test.inputs.ndim != 4:
    finding.markdown(
        "**Noise, relevance-guided noise and attacks are defined for pictures: nothing can be added to texts here.** "
        "From Python, `idc_core.experiments.retraining.retrain` takes additions and tests of any kind, texts too."
    )
    st.stop()
if view.is_classifier and not view.is_comparable:
    finding.markdown("**The tests' classes are not the network's: there is no accuracy that retraining could change.**")
    st.stop()

settings, seeds = choose(view)
run = rq6_run(view, settings, seeds)
watch(run)
found = run.result
if found.networks:
    finding.markdown(sentence(run))
    draw_curves(run, "curves")
    st.header("What exceeds the spread of the seeds?", anchor=False)
    draw_differences(run)
    draw_tables(run)
    draw_added(run)
else:
    finding.markdown(beginning(run))
    draw_batch(run)

pins.beside(view, draw_side, compare)
explain(run)
if found.networks:
    tables = {"retraining-curves": long_table(run), "retraining-differences": pd.DataFrame(found.rows())}
    layout.take_away(tables, files(run))
