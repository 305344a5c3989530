"""Scores at every epoch of training whose weights were kept, and training again to keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idc_core.base.files import COMMAND
from idc_core.base.progress import Progress, duration
from idc_core.errors import CancelledError, IdcError
from idc_core.figures import epochs as figures
from idc_core.inspection.epochs import ScoresByEpoch, halfway, scores_by_epoch
from idc_core.models.checkpoints import Checkpoint, Series, all_series, kept_folder, whole
from idc_core.models.registry import find_entry
from studio.hypotheses import hypothesis_pair, inspections
from studio.hypotheses.inspections import SOURCE, Measured, quoted
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.selection import Point, carried
from studio.text import literal, percent, plural
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.inspection.result import Grid

_EPOCHS = JobKind("epochs", kept=48, is_long=True)
_TRAININGS = JobKind("trainings", kept=4, is_long=True, lives="server")

_QUICK_S = 300
"""Seconds up to which a training is offered on the page; longer ones are for the command line."""

_TRAIN = "train-for-epochs"
"""The network that is trained again, in the session."""

_TOLD = 5
"""Hypotheses that are told apart in a figure, besides the chosen one."""


def draw(measured: Measured, grid: Grid, measure: str, layer: str, label: str, pair: tuple[int, int]) -> None:
    """Show the scores over the epochs of training."""
    _draw_scores(measured, grid, measure, layer, label, pair)
    layout.computed(
        measured.view, "A score changes clearly where the 95 % intervals of both ends do not overlap.", SOURCE
    )


def _draw_scores(measured: Measured, grid: Grid, measure: str, layer: str, label: str, pair: tuple[int, int]) -> None:
    """Draw scores over the epochs of training."""
    if find_entry(measured.view.setup.model).complete:
        st.caption("Your network came with its final weights only, so there are no earlier epochs to compare.")
        return
    follow = st.toggle(
        "Scores over the epochs of training",
        key="over-epochs",
        bind="query-params",
        help="Inspects the network before training and after each epoch whose weights were kept, on the same tests. "
        "Default off.",
    )
    if not follow:
        st.caption(
            "When does a neuron come to respond to a hypothesis? The network is inspected before training and "
            "after each "
            "epoch whose weights were kept, on the same tests."
        )
        return
    if not measured.whole:
        st.caption("Reading was stopped. Start again to read all tests first.")
        return
    view = measured.view
    try:
        kept = _there(view)
        series = _whole(view.setup.model, kept)
        scores, missing = _follow(measured, series, grid, measure, layer)
        st.markdown(_sentence(scores))
        _say_source(view, kept, series)
    except CancelledError:
        st.caption("Stopped before it was finished.")
        return
    except IdcError as error:
        st.error(literal(error))
        return
    if missing:
        st.caption(f"Stopped: {plural(missing, 'epoch')} of {len(series.epochs)} not inspected.")
    _draw_strongest(measured, grid, layer, label, pair, scores, series)
    _draw_unit(measured, grid, layer, label, pair, scores, series)


def _there(view: View) -> Series | None:
    """Return the best training whose checkpoints are there, after training again where that was asked for."""
    name = view.setup.model
    if st.session_state.get(_TRAIN) == name:
        _train_again(view)
    kept = all_series(name)
    return kept[0] if kept else None


@st.cache_resource(max_entries=16, show_spinner=False)
def _whole(name: str, kept: Series | None) -> Series:
    return whole(name, kept)


def _say_source(view: View, kept: Series | None, series: Series) -> None:
    """Say where the epochs come from, and offer to train again where there are none between the ends."""
    if find_entry(view.setup.model).recipe is None:
        st.caption(
            "These weights were published without those of earlier epochs. They are compared with random initial "
            "weights (seed 0)."
        )
    elif kept is None or not kept.complete:
        _offer(view, kept)
    elif not kept.own:
        st.caption(
            "These epochs are of a repeat of the training with the same recipe. It led to other weights than the "
            f"setup's (fingerprint `{kept.checkpoints[-1].trained}`): another processor, version or seed does. Neurons "
            "of the two need not correspond."
        )
    if any(checkpoint.stored == "float16" for checkpoint in series.checkpoints):
        st.caption(
            "The first and last epoch's weights are exact. Those between are stored in 16 bits, which changed scores "
            "by at most 0.0002 in our tests."
        )


def _train_again(view: View) -> None:
    """Train the setup's network again and keep its epochs, or wait for the training in progress."""
    name = view.setup.model

    def work(report: Progress) -> bool:
        from idc_core.models import CheckpointRecorder, train

        train(
            name, out=None, seed=view.card.seed or 0, recorder=CheckpointRecorder(kept_folder(name)), on_progress=report
        )
        return True

    # What ends the run to begin another one, as a click on something else does, leaves the wish to train.
    try:
        Waiting(1).get(_TRAININGS, (name, str(kept_folder(name))), "training the network again, step", work)
    except CancelledError:
        st.caption("Training was stopped. Finished epochs are kept.")
    except IdcError:
        del st.session_state[_TRAIN]
        raise
    del st.session_state[_TRAIN]


def _offer(view: View, part: Series | None) -> None:
    """Say what is missing, and offer to train again where that is quick."""
    name, recipe = view.setup.model, find_entry(view.setup.model).recipe
    epochs = 0 if recipe is None else recipe.epochs
    text = f"No weights between the {epochs} epochs of this network's training were kept."
    if part is not None:
        text = f"A training was stopped after epoch {part.epochs[-1]} of {epochs}; the epochs after it are missing."
    seconds = _expected(view)
    if seconds > _QUICK_S:
        st.caption(
            f"{text} Training again takes {duration(seconds)} on this machine under its present load. To run it "
            "in a terminal:"
        )
        st.code(f"{COMMAND} train {name} --checkpoints", language=None)
        return
    st.caption(
        f"{text} Training again takes {duration(seconds)} on this machine (estimated from a few steps), plus the "
        "inspection of each epoch. Stay on this page; finished epochs are kept."
    )
    st.button(
        "Train again and keep each epoch",
        key="train-epochs",
        on_click=_train,
        args=(name,),
        help="Trains a copy with the same seed and recipe in the background. The setup's network does not change. The "
        "weights are kept in the studio's own folder.",
    )


def _train(name: str) -> None:
    st.session_state[_TRAIN] = name


def _expected(view: View) -> float:
    """Return how many seconds training again takes, judged once."""

    def work(report: Progress) -> float:
        from idc_core.models.training import expected_seconds

        return expected_seconds(view.setup.model, view.train)

    key = ("expected", view.setup.model)
    return float(Waiting(1).get(_EPOCHS, key, "trying a few steps of training", work))


def _follow(measured: Measured, series: Series, grid: Grid, measure: str, layer: str) -> tuple[ScoresByEpoch, int]:
    """Return the scores at each epoch, and how many epochs are missing because the person stopped it."""
    waiting = Waiting(len(series.checkpoints))
    grids: dict[int, Grid] = {}
    stopped = False
    own = measured.view.card.fingerprint
    # The last first: it is mostly there already. After a stop, what was finished earlier is still found.
    for checkpoint in reversed(series.checkpoints):
        if checkpoint.trained == own and measured.settings.error is None:
            grids[checkpoint.epoch] = grid
            continue
        try:
            grids[checkpoint.epoch] = _at_epoch(waiting, measured, series, checkpoint, measure, layer)
        except CancelledError:
            stopped = True
    if stopped and len(grids) < 2:
        raise CancelledError("Stopped before two epochs were inspected.")
    return scores_by_epoch(grids), len(series.checkpoints) - len(grids)


def _at_epoch(waiting: Waiting, measured: Measured, series: Series, one: Checkpoint, measure: str, layer: str) -> Grid:
    """Return the scores at one epoch."""
    view, settings = measured.view, measured.settings
    part, hypotheses = inspections.records_of(view, settings), inspections.chosen_hypotheses(view, settings)

    def work(report: Progress) -> Grid:
        from idc_core.inspection import inspect
        from idc_core.inspection.result import grid

        models = {"epoch": series.open(one.epoch)}
        return grid(inspect(models, part, hypotheses, [measure], [layer], on_progress=report), measure, "epoch", layer)

    chosen = (settings.families, settings.words, settings.masks, measure, layer)
    key = (view.setup.model, one.card.fingerprint, part.fingerprint, *chosen)
    return waiting.get(_EPOCHS, key, f"comparing neurons with hypotheses after epoch {one.epoch}", work)


def _sentence(found: ScoresByEpoch) -> str:
    """Compare the first epoch with the last in words."""
    first = int(found.most_gained()[0])
    better, worse = (int((found.clear & (sign * found.gain > 0)).sum()) for sign in (1, -1))
    before, after = found.strongest[[0, -1], first]
    text = layout.lead(
        layout.counted("Clearly raised by training", better, len(found.names), "strongest score"),
        f"Clearly lowered: {worse}.",
        f"Of {quoted(literal(found.names[first]))} it went from {before:.2f} to {after:.2f}."
        * bool(found.clear[first]),
    )
    text += " "
    half = halfway(found.epochs, found.mean)
    if half is None:
        return f"{text}The mean strongest score did not rise: {found.mean[0]:.2f} to {found.mean[-1]:.2f}."
    text += f"The mean strongest score rose from {found.mean[0]:.2f} to {found.mean[-1]:.2f}"
    if len(found.epochs) < 3:
        return f"{text}."
    return f"{text}; half of the rise was reached by epoch {half}."


def _ticks(found: ScoresByEpoch, series: Series) -> list[str]:
    """Return what stands below each epoch: its number, and how well the network did."""
    card = {checkpoint.epoch: checkpoint.card for checkpoint in series.checkpoints}
    if find_entry(series.model).recipe is None:
        return ["random weights", "published"]
    labels = []
    for epoch in found.epochs:
        metrics = card[epoch].metrics
        if "test_accuracy" in metrics:
            labels.append(f"{epoch}<br>{percent(metrics['test_accuracy'])} right")
        else:
            labels.append(f"{epoch}<br>error {metrics['test_rmse']:.3f}" if "test_rmse" in metrics else str(epoch))
    return labels


def _draw_strongest(
    measured: Measured, grid: Grid, layer: str, label: str, pair: tuple[int, int], found: ScoresByEpoch, series: Series
) -> None:
    """Draw each hypothesis's strongest unit over the epochs."""
    strongest = found.most_gained()[:_TOLD].tolist()
    title = layout.topic("Strongest score of every hypothesis in {}, by epoch", layer)
    rows = np.broadcast_to(np.arange(len(found.names)), found.unit.shape)
    layout.chart(
        measured.view,
        "by-epoch",
        lambda dark: figures.by_epoch(
            _ticks(found, series),
            found.strongest,
            found.names,
            strongest,
            title,
            f"strongest score of any neuron ({label})",
            keys=np.stack([rows, found.unit], 2),
            chosen=pair[0],
            dark=dark,
        ),
        alt=title,
        more=f"Lines of {len(found.names)} hypotheses over {len(found.epochs)} epochs.",
        read="each line is one hypothesis. x: epoch, with the network's test accuracy (not to scale); y: its strongest "
        "score over all neurons, whichever neuron that is. A line that is high at epoch 0 was not learnt. Named: the "
        "hypotheses that gained most; thick: the selected one. Click a point to select its hypothesis and neuron. "
        '"Clearly": the two 95 % intervals do not overlap.',
        depends=(measured.key, layer, label, pair[0], found.epochs, series.checkpoints[-1].trained),
        clicked=lambda points: _clicked(measured, grid, layer, points),
        table=found.frame(),
    )


def _draw_unit(
    measured: Measured, grid: Grid, layer: str, label: str, pair: tuple[int, int], found: ScoresByEpoch, series: Series
) -> None:
    """Draw the selected unit's scores over the epochs."""
    hypothesis, unit = pair
    scores = found.score[:, :, unit]
    strength = np.nan_to_num(np.abs(scores))
    # Of a unit that is still at the end, those that it once went with.
    strongest = np.lexsort((-strength.max(0), -strength[-1]))[:_TOLD].tolist()
    title = layout.topic("Scores of neuron {} of {}, by epoch", unit, layer)
    keys = np.broadcast_to(np.arange(len(found.names)), scores.shape)[:, :, None]
    layout.chart(
        measured.view,
        "unit-by-epoch",
        lambda dark: figures.by_epoch(
            _ticks(found, series),
            scores,
            found.names,
            strongest,
            title,
            f"score of neuron {unit} ({label})",
            keys=keys,
            chosen=hypothesis,
            dark=dark,
        ),
        alt=title,
        more=f"Lines of {len(found.names)} hypotheses over {len(found.epochs)} epochs.",
        read=f"each line is one hypothesis. x: epoch; y: the score of neuron {unit}. Named: the strongest at the end; "
        "thick: the selected one. Where lines cross, the neuron's response changed. Click a point to select its "
        "hypothesis.",
        depends=(measured.key, layer, label, pair, found.epochs, series.checkpoints[-1].trained),
        clicked=lambda points: _clicked(measured, grid, layer, points),
    )


def _clicked(measured: Measured, grid: Grid, layer: str, points: Sequence[Point]) -> None:
    """Select the hypothesis of the point that was clicked, and its unit where the point has one."""
    numbers = [int(number) for number in carried(points[0])]
    hypothesis_pair.pick(measured, grid, layer, numbers[0], numbers[1] if len(numbers) > 1 else None)
