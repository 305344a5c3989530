"""Score units one by one with the measures that share an encoder, and settle hypotheses as soon as they are sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.scipy_parts import special
from idc_core.inspection.blocks import Block, Place, UnitRows
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.measures import PairMeasure, beyond_place, correlation
from idc_core.inspection.result import ScoreRows
from idc_core.inspection.sums import (
    FEWEST_GROUPS,
    FEWEST_SUPPORT,
    Encoder,
    GroupedSums,
    Sums,
    jackknife,
    no_association,
    quantile,
)

_RAREST = 0.01
"""Reading does not go on for a score that needs what surely fewer than this share of the records have."""


@dataclass(frozen=True)
class StoppingRule:
    """How sure scores must be: within `error` of those on all `records`, for all `scores` at once (Bonferroni)."""

    error: float | None
    confidence: float
    scores: int
    records: int

    def margins(self, spread: NDArray[np.float64], groups: int, read: int) -> NDArray[np.float64]:
        """Return how far scores can be from those on all records, given their standard errors."""
        if read >= self.records:
            return np.zeros_like(spread)
        rest = np.sqrt(1 - read / self.records)
        return np.asarray(quantile(groups, (1 - self.confidence) / (2 * self.scores)) * rest * spread)

    def needed(self, margin: float, read: int) -> int:
        """Return how many records should make a margin as small as the error, if it falls as a mean's does."""
        if self.error is None or not np.isfinite(margin):
            return self.records
        share = (1 / read - 1 / self.records) * (self.error / max(margin, self.error)) ** 2
        return int(np.ceil(1 / (share + 1 / self.records)))

    def unseen(self, met: NDArray[np.int64], read: int) -> NDArray[np.float64]:
        """Return the share of all records in which the opposite may be true although it is in none of `met` read.

        The rule of three for all scores at once: where nothing varies, the jackknife sees no variation.
        """
        tail = (1 - self.confidence) / self.scores
        return np.asarray((1 - tail ** (1 / np.maximum(met, 1))) * (1 - read / self.records))

    def half_widths(self, spread: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
        """Return half of each score's own confidence interval, for records like these."""
        return np.asarray(quantile(groups, (1 - self.confidence) / 2) * spread)

    def rare(self, met: NDArray[np.int64], read: int) -> NDArray[np.bool_]:
        """Return whether what `met` of the records read have is in fewer than `_RAREST` of all, for all scores at once.

        The share's exact upper bound (C. Clopper, E. Pearson, Biometrika 26, 1934).
        """
        if self.error is None:
            return np.zeros(len(met), bool)
        sure = 1 - (1 - self.confidence) / self.scores
        return np.asarray(special.betaincinv(met + 1, np.maximum(read - met, 1), sure) <= _RAREST)


@dataclass(eq=False)
class PairSums:
    """What a `PairRun` has summed over some of the records; it holds no hypotheses."""

    encoder: Encoder
    sums: GroupedSums
    support: NDArray[np.int64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    def merge(self, other: PairSums) -> None:
        """Take in the sums over the records that come next."""
        self.sums.merge(other.sums)
        self.support = self.support + other.support
        self.lowest = np.minimum(self.lowest, other.lowest)
        self.highest = np.maximum(self.highest, other.highest)


@dataclass(eq=False)
class PairRun:
    """One encoder on one layer, for hypotheses of one number of classes; `which` are the columns still open."""

    place: Place
    hypotheses: Sequence[Hypothesis]
    which: NDArray[np.int64]
    measures: Sequence[PairMeasure]
    together: bool
    encoder: Encoder | None = None
    sums: GroupedSums = field(default_factory=GroupedSums)
    support: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    lowest: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    highest: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def learn(self, units: Tensor, behaviours: Tensor) -> None:
        """Take thresholds, bins and ranks from the pilot's rows."""
        measure = self.measures[0]
        own = behaviours[:, torch.from_numpy(self.which)].float()
        self.encoder = measure.encode(units, own, self._classes(), dict(measure.settings))
        self.begin()

    def begin(self, keep_all: bool = False) -> None:
        """Start with sums over nothing; all groups are kept for someone who joins them in the records' order."""
        self.sums = GroupedSums(keep_all=keep_all)
        self.support = np.zeros((2, len(self.hypotheses)), np.int64)
        self.lowest, self.highest = (np.full(len(self.hypotheses), end) for end in (np.inf, -np.inf))

    def summed(self) -> PairSums:
        """Return the sums over what was read."""
        assert self.encoder is not None
        return PairSums(self.encoder, self.sums, self.support, self.lowest, self.highest)

    def take(self, found: PairSums) -> None:
        """Go on from sums that were made elsewhere; their groups are joined as if they had been read here."""
        self.encoder, self.support, self.sums = found.encoder, found.support, GroupedSums()
        for sums, records in zip(found.sums.groups, found.sums.records, strict=True):
            self.sums.add(sums, records)
        self.lowest, self.highest = found.lowest, found.highest

    def _classes(self) -> int:
        first = self.hypotheses[int(self.which[0])]
        return {"binary": 2, "classes": first.classes}.get(first.kind, 0)

    def update(self, block: Block, behaviours: Tensor, support: NDArray[np.int64]) -> None:
        """Read a block, and what all hypotheses did at its rows."""
        assert self.encoder is not None
        self.support += support
        if len(behaviours):
            self.lowest = np.minimum(self.lowest, behaviours.amin(0).numpy())
            self.highest = np.maximum(self.highest, behaviours.amax(0).numpy())
        if len(self.which) < behaviours.shape[1]:
            behaviours = behaviours[:, torch.from_numpy(self.which)]
        shape = block.shapes[self.place]
        # Only of pictures: texts end where they end, and the place itself is a thing that units count.
        places = int(np.prod(shape)) if len(shape) == 2 else 1
        for piece in block.pieces(self.place):
            self.sums.add(self._sums(piece.units, behaviours[piece.rows], places), piece.records)

    def _sums(self, units: UnitRows, behaviours: Tensor, places: int) -> Sums:
        assert self.encoder is not None
        if self.together or len(self.which) == 1:
            return self.encoder.sums(units, behaviours, places)
        single = [
            self.encoder.keep(np.array([at])).sums(units, behaviours[:, at : at + 1], places)
            for at in range(len(self.which))
        ]
        few = UnitRows(units.values[:places], units.about)
        return _side_by_side(single, self.encoder.sums(few, behaviours[:places], places))

    def settle(self, sure: StoppingRule, lines: ScoreRows) -> int:
        """Settle hypotheses whose scores are all sure enough; return how many records should do for the others."""
        if not len(self.which):
            return 0
        if sure.error is None or len(self.sums.groups) < FEWEST_GROUPS:
            return sure.records
        read, groups = self.sums.count, len(self.sums.groups)
        scored = []
        for measure in self.measures:
            score, spread = jackknife(self.sums, lambda sums, m=measure: m.statistic(sums, self.encoder))  # type: ignore[misc]
            scored.append((measure, score, spread, sure.margins(spread, groups, read)))
        done = np.ones(len(self.which), bool)
        hopeless = sure.rare(self._met(), read)[:, None]
        for *_, margins in scored:
            done &= ((margins <= sure.error) | (np.isnan(margins) & hopeless)).all(1)
        worst = np.max([margins[~done].max(initial=0) for *_, margins in scored])
        if done.any():
            for measure, score, spread, margins in scored:
                self._write(measure, score, spread, margins, np.flatnonzero(done), sure, lines)
            self._drop(~done)
        return sure.needed(float(worst), read) if len(self.which) else 0

    def _met(self) -> NDArray[np.int64]:
        """Return in how many of the records read the open hypotheses do what they rarely do."""
        binary = np.array([self.hypotheses[int(at)].kind == "binary" for at in self.which])
        met = np.where(binary, self.support[:, self.which].min(0), self.sums.count)
        return np.where(self.lowest[self.which] == self.highest[self.which], 0, met)

    def _remark(self, at: int) -> str:
        """Say why there is no score."""
        true, false = self.support[:, at]
        if self.lowest[at] < self.highest[at]:
            return f"too rarely {'true' if true < false else 'false'} in the tests read"
        if self.hypotheses[at].kind != "binary":
            return "never changes in the tests read"
        return f"{'always' if self.lowest[at] else 'never'} true in the tests read"

    def snapshot(self, sure: StoppingRule, lines: ScoreRows) -> None:
        """Write down what the open hypotheses' scores are by now, and read on."""
        if not len(self.which):
            return
        for measure in self.measures:
            score, spread = jackknife(self.sums, lambda sums, m=measure: m.statistic(sums, self.encoder))  # type: ignore[misc]
            margins = sure.margins(spread, len(self.sums.groups), self.sums.count)
            self._write(measure, score, spread, margins, np.arange(len(self.which)), sure, lines)

    def _write(
        self,
        measure: PairMeasure,
        score: NDArray[np.float64],
        spread: NDArray[np.float64],
        margins: NDArray[np.float64],
        rows: NDArray[np.int64],
        sure: StoppingRule,
        lines: ScoreRows,
    ) -> None:
        groups, count = len(self.sums.groups), score.shape[1]
        score, spread, margins = score[rows], spread[rows], margins[rows]
        probable = self._probabilities(measure, score, spread, rows)
        half = sure.half_widths(spread, groups)
        # A score of which nobody can say how far it is from the one on all records is none.
        score = np.where(np.isnan(margins), np.nan, score)
        for at, row in enumerate(rows):
            hypothesis = self.hypotheses[int(self.which[row])]
            lines.add(
                count,
                model=self.place[0],
                layer=self.place[1],
                group="",
                unit=np.arange(count),
                hypothesis=hypothesis.name,
                measure=measure.name,
                score=score[at],
                low=score[at] - half[at],
                high=score[at] + half[at],
                margin=margins[at],
                p_value=probable[at],
                records=self.sums.count,
                remark=self._remark(int(self.which[row])) if np.isnan(score[at]).all() else "",
            )

    def _drop(self, left: NDArray[np.bool_]) -> None:
        assert self.encoder is not None
        kept = np.flatnonzero(left)
        if len(kept):
            self.sums = self.sums.only(kept, len(self.which))
            self.encoder = self.encoder.keep(kept)
        self.which = self.which[kept]

    def _probabilities(
        self, measure: PairMeasure, score: NDArray[np.float64], spread: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        groups = len(self.sums.groups)
        if measure.association is None or groups < FEWEST_GROUPS:
            return np.full(score.shape, np.nan)
        if measure.association is not beyond_place or measure.statistic is not correlation or self._has_places():
            score, spread = jackknife(self.sums.only(rows, len(self.which)), measure.association)
        p_value = no_association(score, spread, groups, self.sums.count)
        which = self.which[rows]
        binary = np.array([self.hypotheses[int(at)].kind == "binary" for at in which])
        few = binary & (self.support[:, which].min(0) < FEWEST_SUPPORT)
        return np.where(few[:, None], np.nan, p_value)

    def _has_places(self) -> bool:
        return "x_place" in self.sums.groups[0]


def _side_by_side(single: list[Sums], example: Sums) -> Sums:
    """Join the sums of single hypotheses along their axis; what is no hypothesis's is the same in all."""
    return {
        name: np.concatenate([sums[name] for sums in single], -2) if value.shape[-2] > 1 else single[0][name]
        for name, value in example.items()
    }
