"""Score groups of units by probes trained on all of them: how well do they tell the hypothesis together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.progress import Progress
from idc_core.errors import DataError, SettingError
from idc_core.inspection.blocks import Block, Place, pieces
from idc_core.inspection.extraction import BLOCK_ROWS, Stream
from idc_core.inspection.hypothesis import Kind
from idc_core.inspection.pairwise import StoppingRule
from idc_core.inspection.solver import SQUARE, YES_NO, Blocks, Loss, Problem, Scale, Stop, minimise, of_classes
from idc_core.inspection.sums import FEWEST_GROUPS, FEWEST_SUPPORT, GroupedSums, Sums, jackknife, no_association

EVERY = 4
"""Every so manyth block is held out of training and measures the probe."""

_STAGES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the records on which probes are trained, one after the other, until they are sure."""

_FEWEST_BLOCKS = 8
"""Blocks of a first stage."""

_WHOLE_BYTES = 256 * 2**20
"""Training records up to this size, twice over, are put side by side rather than gone through block by block."""

_DOUBLE_VALUES = 1 << 20
"""Up to so many numbers (rows times units) a probe is trained in double precision, to a slope of 1e-11."""


@dataclass(frozen=True)
class GroupMeasure:
    """A probe on a group of units, or a baseline that uses none: it has no `loss` of a number of classes.

    `score` turns sums over held-out records into the score, (hypotheses, 1), `association` into the correlation of
    prediction and truth; None without a test. `l2` and `l1` are penalties: scikit-learn's 1 / C for logistic probes,
    alpha of Ridge; times rows alpha of Lasso.
    """

    name: str
    label: str
    help: str
    citation: str
    kinds: tuple[Kind, ...]
    loss: Callable[[int], Loss] | None
    score: Callable[[Sums], NDArray[np.float64]]
    association: Callable[[Sums], NDArray[np.float64]] | None = None
    l2: float = 0.0
    l1: float = 0.0

    @property
    def is_baseline(self) -> bool:
        """Whether no probe is trained."""
        return self.loss is None

    def with_settings(self, **settings: float) -> GroupMeasure:
        """Return the measure with another `strength` of its penalty; refuse other names and values of 0 or less."""
        wrong = sorted(set(settings) - {"strength"})
        if wrong or self.loss is None:
            has = "none" if self.loss is None else "strength"
            raise SettingError(f"{self.label} has no setting {', '.join(wrong) or 'strength'}; it has {has}.")
        strength = settings.get("strength", max(self.l1, self.l2))
        if not 0 < strength < np.inf:
            raise SettingError(f"strength of {self.label} must be above 0, not {strength!r}.")
        return replace(self, l1=strength) if self.l1 else replace(self, l2=strength)


def _f1(sums: Sums) -> NDArray[np.float64]:
    """Return F1, the harmonic mean of precision and recall, averaged over classes where there are several."""
    scores = 2 * sums["hit"] / (sums["said"] + sums["true"])
    scores = np.where(sums["said"] + sums["true"] > 0, scores, 0.0)
    if len(scores) > 1:
        seen = sums["true"] + sums["said"] > 0
        return np.asarray(np.where(seen, scores, 0).sum(0) / np.maximum(seen.sum(0), 1))
    return np.where(sums["true"][0] > 0, scores[0], np.nan)


def _determination(sums: Sums) -> NDArray[np.float64]:
    """Return R2: the share of the held-out behaviour's variance that the probe predicts."""
    whole = sums["yy"] - sums["y"] ** 2 / sums["n"]
    return np.where(whole > 1e-12 * sums["yy"], 1 - sums["missed"] / np.where(whole > 0, whole, 1), np.nan)


def agreement(sums: Sums) -> NDArray[np.float64]:
    """Return the correlation of predictions and truth; 0 of a probe whose prediction never changes.

    J. Gorodkin, Comparing two K-category assignments by a K-category correlation coefficient, Computational Biology and
    Chemistry 28, 2004, equation 4; Pearson's for two classes.
    """
    n, predicted, true = sums["n"], sums["said"], sums["true"]
    shared = (sums["hit"] - predicted * true / n).sum(0)
    predicted, true = ((counts - counts**2 / n).sum(0) for counts in (predicted, true))
    return np.where(true > 0, shared / np.sqrt(np.where(predicted * true > 0, predicted * true, 1)), np.nan)


def followed(sums: Sums) -> NDArray[np.float64]:
    """Return Pearson's correlation of what the probe predicts and what is there."""
    n = sums["n"]
    varies, true = (sums[name + name] - sums[name] ** 2 / n for name in ("p", "y"))
    both = (sums["pp"] + sums["yy"] - sums["missed"]) / 2 - sums["p"] * sums["y"] / n
    still = varies <= 1e-12 * sums["pp"]
    correlation = np.where(still, 0.0, both / np.sqrt(np.where(still, 1, varies) * np.where(true > 0, true, 1)))
    return np.where(true > 1e-12 * sums["yy"], np.clip(correlation, -1, 1), np.nan)


def _always(sums: Sums) -> NDArray[np.float64]:
    """Return F1 of always predicting the more frequent value."""
    share = sums["true"][0] / sums["n"]
    return np.where(share > 0.5, 2 * share / (1 + share), 0.0)


def _by_chance(sums: Sums) -> NDArray[np.float64]:
    """Return the expected F1 of predicting true at random, as often as the hypothesis is true: that share."""
    return np.asarray(sums["true"][0] / sums["n"])


_DEEPBASE = "T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019"

GROUP_MEASURES: dict[str, GroupMeasure] = {
    measure.name: measure
    for measure in (
        GroupMeasure(
            "logistic",
            "Logistic probe",
            "F1 of a logistic regression on all neurons of the group, with L2 penalty.",
            _DEEPBASE,
            ("binary",),
            lambda classes: YES_NO,
            _f1,
            agreement,
            l2=1.0,
        ),
        GroupMeasure(
            "logistic-l1",
            "Sparse logistic probe",
            "The same with an L1 penalty, which selects few neurons.",
            _DEEPBASE,
            ("binary",),
            lambda classes: YES_NO,
            _f1,
            agreement,
            l1=1.0,
        ),
        GroupMeasure(
            "linear",
            "Linear probe",
            "R2 of a linear regression on all neurons of the group, with L2 penalty.",
            _DEEPBASE,
            ("binary", "number"),
            lambda classes: SQUARE,
            _determination,
            followed,
            l2=1.0,
        ),
        GroupMeasure(
            "linear-l1",
            "Sparse linear probe",
            "The same with an L1 penalty, which selects few neurons.",
            _DEEPBASE,
            ("binary", "number"),
            lambda classes: SQUARE,
            _determination,
            followed,
            l1=0.01,
        ),
        GroupMeasure(
            "multiclass",
            "Multiclass probe",
            "Mean F1 over classes of a softmax regression on all neurons.",
            _DEEPBASE,
            ("classes",),
            of_classes,
            _f1,
            agreement,
            l2=1.0,
        ),
        GroupMeasure(
            "majority",
            "Majority-class baseline",
            "F1 of always predicting the more frequent value; uses no neuron.",
            _DEEPBASE,
            ("binary",),
            None,
            _always,
        ),
        GroupMeasure(
            "chance",
            "Random baseline",
            "F1 of predicting true as often as the hypothesis is true; uses no neuron.",
            _DEEPBASE,
            ("binary",),
            None,
            _by_chance,
        ),
    )
}
"""Measures of a group of units and a hypothesis by name."""


@dataclass(frozen=True, eq=False)
class _Probed:
    """Probes of a batch of hypotheses: float64 arrays, a row each."""

    score: NDArray[np.float64]
    half_width: NDArray[np.float64]
    margin: NDArray[np.float64]
    p_value: NDArray[np.float64]
    records: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def empty(cls, count: int, units: int) -> _Probed:
        """Return room for `count` probes on so many units."""
        scores, halves, margins, probable = (np.full(count, np.nan) for _ in range(4))
        return cls(scores, halves, margins, probable, np.zeros(count, np.int64), np.full((count, units), np.nan))


@dataclass(eq=False)
class ProbeRun:
    """A group measure on some units of one layer, for the hypotheses `which` (P,) of one number of classes."""

    stream: Stream
    place: Place
    units: tuple[int, ...]
    which: NDArray[np.int64]
    classes: int
    measure: GroupMeasure
    passes: int = 300
    on_progress: Progress | None = None

    def run(self, sure: StoppingRule) -> _Probed:
        """Train on growing shares of the records until every score is sure, and return what was reached."""
        if len(self.stream) < EVERY:
            raise DataError(
                f"{self.measure.label} holds one of {EVERY} records out: expected at least {EVERY}, got "
                f"{len(self.stream.order)}. Choose a measure of single units, or more records."
            )
        loss = None if self.measure.loss is None else self.measure.loss(self.classes)
        columns = 1 if loss is None else loss.columns
        shape = (len(self.which), columns, len(self.units) + 1)
        weights = torch.zeros(shape, dtype=torch.float64)
        left = np.arange(len(self.which))
        probed = _Probed.empty(len(left), len(self.units))
        before = np.full(len(left), np.nan)
        stages = self._stages(sure)
        for stage, upto in enumerate(stages):
            last = stage == len(stages) - 1
            read = self.stream.records(upto)
            scale = None
            if loss is not None:
                scale = self._scale(upto)
                # Trained on all records, a probe is the same whether or not some were asked first.
                weights = self._train(weights.zero_() if last else weights, left, upto, loss, scale)
            sums = self._held_out(weights, left, upto, loss, scale)
            score, spread = (value[:, 0] for value in jackknife(sums, self.measure.score))
            margin = sure.margins(spread, len(sums.groups), read)
            margin = margin if last else np.maximum(margin, self._unseen(sure, left, upto, read))
            margin = margin if last else margin + np.abs(score - before[left])
            # Without a score, what the probe should tell is not among the held-out records.
            hopeless = np.isnan(score) & sure.rare(np.zeros(len(left), np.int64), sums.count)
            enough = np.ones(len(left), bool) if last or sure.error is None else (margin <= sure.error) | hopeless
            rows = left[enough]
            probed.score[rows], probed.margin[rows], probed.records[rows] = score[enough], margin[enough], read
            probed.half_width[rows] = sure.half_widths(spread, len(sums.groups))[enough]
            probed.p_value[rows] = self._probabilities(sums, left, upto)[enough]
            probed.weights[rows] = _unit_weights(weights[torch.from_numpy(enough)])
            before[left] = score
            left, weights = left[~enough], weights[torch.from_numpy(~enough)]
            if not len(left):
                break
        return probed

    def _probabilities(self, sums: GroupedSums, left: NDArray[np.int64], upto: int) -> NDArray[np.float64]:
        """Return the p values of the correlation of predictions and truth on held-out records.

        Layers of pixels are not tested: a probe may tell places by their edges, and place alone is no discovery.
        """
        shape = self.stream.block(0).shapes[self.place]
        if self.measure.association is None or len(sums.groups) < FEWEST_GROUPS or len(shape) == 2:
            return np.full(len(left), np.nan)
        p_value = no_association(*jackknife(sums, self.measure.association), len(sums.groups), sums.count)[:, 0]
        binary, support = self._support(left, upto)
        return np.where(binary & (support.min(0) < FEWEST_SUPPORT), np.nan, p_value)

    def _unseen(self, sure: StoppingRule, left: NDArray[np.int64], upto: int, read: int) -> NDArray[np.float64]:
        """Return how far a score may be off although no held-out record says so: of few, all may be told by luck."""
        if self.measure.loss is None:
            return np.zeros(len(left))
        binary, support = self._support(left, upto)
        return np.where(binary, sure.unseen(support[0], read), 0)

    def _support(self, left: NDArray[np.int64], upto: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which hypotheses are binary, and in how many held-out records they are true, and false, somewhere."""
        which = self.which[left]
        support = np.sum([self.stream.support(index) for index in range(EVERY - 1, upto, EVERY)], 0, np.int64)
        binary = np.array([self.stream.hypotheses[int(at)].kind == "binary" for at in which])
        return binary, np.broadcast_to(support, (2, len(self.stream.hypotheses)))[:, which]

    def unscored(self, column: int) -> str:
        """Say why a hypothesis has no score."""
        does = "never changes" if self.stream.hypotheses[column].kind == "number" else "never true"
        return f"{does} in the tests held out"

    def _stages(self, sure: StoppingRule) -> list[int]:
        whole = len(self.stream)
        if sure.error is None:
            return [whole]
        records = len(self.stream.order)
        stages = {max(self.stream.blocks_of(int(records * share)), min(_FEWEST_BLOCKS, whole)) for share in _STAGES}
        return sorted(stages)

    def _blocks(self, upto: int, held_out: bool) -> Iterator[tuple[Block, Tensor, Tensor]]:
        units = torch.tensor(self.units)
        for index in range(upto):
            if (index % EVERY == EVERY - 1) is not held_out:
                continue
            block = self.stream.block(index)
            rows = block.units[self.place]
            chosen = rows if rows.shape[1] == len(units) else rows[:, units]
            yield block, chosen, self.stream.behaviours(index, self.place, block)

    def _train(self, weights: Tensor, left: NDArray[np.int64], upto: int, loss: Loss, scale: Scale) -> Tensor:
        def blocks() -> Iterator[tuple[Tensor, Tensor]]:
            return ((units, behaviours) for _, units, behaviours in self._blocks(upto, False))

        values = scale.rows * len(self.units)
        double = values <= _DOUBLE_VALUES
        source: Blocks = blocks
        hypotheses = torch.from_numpy(self.which[left])
        if self.stream.store is not None and 8 * values <= min(self.stream.store.budget, _WHOLE_BYTES):
            parts = list(blocks())
            kind = torch.float64 if double else torch.float32
            units = torch.cat([part for part, _ in parts]).to(kind)
            behaviours = torch.cat([part.T.index_select(0, hypotheses) for _, part in parts], 1).T
            # In pieces that stay in the caches with what is computed from them, whatever blocks they came in.
            cut = list(zip(units.split(BLOCK_ROWS), behaviours.split(BLOCK_ROWS), strict=True))
            source, hypotheses = lambda: cut, torch.arange(len(left))
        l1 = self.measure.l1 * (scale.rows if loss is SQUARE else 1)
        problem = Problem(source, hypotheses, scale, loss, self.measure.l2, l1, double)
        stop = Stop(1e-11 if double else 1e-4, 20 * self.passes if double else self.passes)
        return minimise(problem, weights, stop, self.on_progress, self.measure.label.lower())

    def _scale(self, upto: int) -> Scale:
        return Scale.of(lambda: ((units, behaviours) for _, units, behaviours in self._blocks(upto, False)))

    def _held_out(
        self, weights: Tensor, left: NDArray[np.int64], upto: int, loss: Loss | None, scale: Scale | None
    ) -> GroupedSums:
        sums = GroupedSums()
        flat = weights.reshape(-1, weights.shape[2]).T
        hypotheses = torch.from_numpy(self.which[left])
        for block, units, behaviours in self._blocks(upto, True):
            scores = None
            if scale is not None:
                scores = (scale.apply(units, torch.float64) @ flat).reshape(len(units), len(left), -1)
            targets = behaviours.T.index_select(0, hypotheses).T
            for rows, count in pieces(len(block.positions), len(units), int(np.prod(block.shapes[self.place]))):
                part = None if scores is None else scores[rows]
                sums.add(_sums(part, targets[rows].double(), self.classes, loss is SQUARE), count)
        return sums


def _unit_weights(weights: Tensor) -> NDArray[np.float64]:
    """Return each unit's weight, (P, units); of several classes the size of the largest."""
    own = weights[..., :-1]
    return np.asarray((own[:, 0] if own.shape[1] == 1 else own.abs().amax(1)).numpy())


def _sums(scores: Tensor | None, wanted: Tensor, classes: int, square: bool) -> Sums:
    """Return what the scores of held-out rows (rows, P, columns) sum up to."""
    rows = {"n": np.full((1, 1), float(len(wanted)))}
    if square and scores is not None:
        missed = ((scores[..., 0] - wanted) ** 2).sum(0)
        predicted = scores[..., 0]
        parts = {
            "missed": missed,
            "y": wanted.sum(0),
            "yy": (wanted**2).sum(0),
            "p": predicted.sum(0),
            "pp": (predicted**2).sum(0),
        }
        return rows | {name: value.numpy()[:, None] for name, value in parts.items()}
    if scores is None:
        return rows | {"true": wanted.sum(0).numpy()[None, :, None]}
    if scores.shape[2] == 1:
        predicted, true = (scores[..., 0] > 0)[None], (wanted > 0)[None]
    else:
        each = torch.arange(classes)[:, None, None]
        predicted, true = scores.argmax(2)[None] == each, wanted[None] == each
    counts = {"said": predicted, "true": true, "hit": predicted & true}
    return rows | {name: value.sum(1).double().numpy()[..., None] for name, value in counts.items()}
