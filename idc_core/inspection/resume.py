"""What an inspection has read so far, so that a stopped one goes on, and one of more records does not begin anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.ranges import InspectOptions
from idc_core.inspection.blocks import Block, Place
from idc_core.inspection.extraction import Stream, UnitSums
from idc_core.inspection.pairwise import PairRun, PairSums, StoppingRule
from idc_core.inspection.result import ScoreRows

_FIRST_CHECK = 16
"""Blocks before scores are first asked how sure they are."""

_CHECK_AGAIN = 1.04, 1.5
"""As many times the blocks are read, at least and at most, before scores are asked again: asking takes its time."""

_Read = tuple[Block, dict[Place, Tensor], NDArray[np.int64]]
"""A block, what hypotheses did at each layer's rows of it, and in how many of its records they are true and false."""


@dataclass(eq=False)
class StateSums:
    """What an `ExtractionState` has summed over some of the blocks: can be sent, and merged in the blocks' order."""

    runs: list[PairSums]
    units: UnitSums
    scores: int

    def merge(self, other: StateSums) -> Self:
        """Take in the sums over the blocks that come next."""
        for mine, theirs in zip(self.runs, other.runs, strict=True):
            mine.merge(theirs)
        self.units.merge(other.units)
        return self


@dataclass(eq=False)
class ExtractionState:
    """What is computed from one extraction: the sums over the `blocks` read so far, and the scores that are settled."""

    stream: Stream
    runs: list[PairRun]
    lines: ScoreRows = field(default_factory=ScoreRows)
    blocks: int = 0
    scores: int = 0
    next_check: int = _FIRST_CHECK
    show: int = _FIRST_CHECK // 4
    ahead: dict[int, _Read] = field(default_factory=dict)

    def read(self, options: InspectOptions, tell: Callable[[ScoreRows], None] | None) -> ScoreRows:
        """Read the blocks that the sums do not hold yet, and return the scores; keep what was read if cancelled."""
        self._learn(options.pilot)
        sure = StoppingRule(options.error, options.confidence, max(self.scores, 1), len(self.stream.order))
        while self.blocks < len(self.stream) and any(len(run.which) for run in self.runs):
            read = self.ahead.get(self.blocks) or self._block(self.blocks)
            self.ahead.pop(self.blocks, None)
            block, behaviours, support = read
            for run in self.runs:
                if len(run.which):
                    run.update(block, behaviours[run.place], support)
            self.blocks += 1
            if self.blocks == self.next_check:
                needed = max(run.settle(sure, self.lines) for run in self.runs)
                self.next_check = self._next_check(self.stream.blocks_of(needed))
            if self.blocks == self.show:
                self.show = max(self.show + 1, int(self.show * 1.4))
                if tell is not None and any(len(run.which) for run in self.runs):
                    tell(self._scores(sure))
        return self._scores(sure)

    def sum_blocks(self, blocks: range, pilot: int) -> StateSums:
        """Return the sums over some blocks alone, with the thresholds that the pilot gives."""
        self._learn(pilot)
        self.ahead.clear()
        self.stream.only(blocks)
        for run in self.runs:
            run.begin(keep_all=True)
        for index in blocks:
            block, behaviours, support = self._block(index)
            for run in self.runs:
                run.update(block, behaviours[run.place], support)
        return StateSums([run.summed() for run in self.runs], self.stream.summed(), self.scores)

    def take(self, found: StateSums) -> None:
        """Go on after the last block, from sums that were made elsewhere."""
        for run, sums in zip(self.runs, found.runs, strict=True):
            run.take(sums)
        self.stream.take(found.units)
        self.blocks, self.scores = len(self.stream), found.scores

    def _next_check(self, needed: int) -> int:
        """Return after how many blocks to ask again: when the last score should be sure, others rather soon."""
        least, most = (max(self.blocks + 1, int(self.blocks * factor)) for factor in _CHECK_AGAIN)
        return min(max(needed, least), most)

    def _learn(self, pilot: int) -> None:
        """Read the first records, and take thresholds, bins and ranks from them, once."""
        if self.scores or not self.runs:
            return
        first = range(self.stream.blocks_of(pilot))
        for index in first:
            if index not in self.ahead:
                self.ahead[index] = self._block(index)
        for run in self.runs:
            units = torch.cat([self.ahead[index][0].units[run.place] for index in first])
            run.learn(units, torch.cat([self.ahead[index][1][run.place] for index in first]))
        self.scores = sum(len(run.which) * len(run.measures) * self._units(run.place) for run in self.runs)

    def _units(self, place: Place) -> int:
        return int(self.ahead[0][0].units[place].shape[1])

    def _block(self, index: int) -> _Read:
        block = self.stream.block(index)
        behaviours = {place: self.stream.behaviours(index, place, block) for place in block.units}
        return block, behaviours, self.stream.support(index)

    def _scores(self, sure: StoppingRule) -> ScoreRows:
        """Return the scores at this moment: those written down, and those that are still being read for."""
        now = ScoreRows(list(self.lines.parts))
        for run in self.runs:
            run.snapshot(sure, now)
        return now

    def close(self) -> None:
        """Forget the blocks."""
        if self.stream.store is not None:
            self.stream.store.close()


@dataclass(eq=False)
class Reading:
    """What an inspection has read, held by its caller from one call of `inspect` to the next.

    An equal call goes on after the last whole block. So does one for more records, where blocks and thresholds of those
    read are also those of more (`records` of 1,024 doubled once or more, with the same seed) and no score was settled
    early. The table is the same, bit for bit, as if it were read at once. Any other call starts again.

    One call at a time; hypotheses of the same names count as the same. Sums stay in memory, blocks that probes read
    again lie on disk between the calls until `close`.
    """

    about: dict[str, Any] = field(default_factory=dict)
    parts: dict[int, ExtractionState] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Records that went through the networks, in whole blocks; of several parts in the one with fewest."""
        return min((part.stream.records(part.stream.made) for part in self.parts.values()), default=0)

    def begin(self, about: Mapping[str, object], order: NDArray[np.int64]) -> None:
        """Continue with what was read if it is of the same inspection and order (n,), else start again."""
        if not (self._same(about) and all(part.stream.extend(order) for part in self.parts.values())):
            self.close()
        self.about = dict(about)

    def _same(self, about: Mapping[str, Any]) -> bool:
        if {**self.about, "records": about["records"]} != about:
            return False
        least = min(self.about["records"], about["records"])
        # What is sure enough depends on how many records there are, thresholds on the first ones.
        return self.about["records"] == about["records"] or (about["error"] is None and least >= about["pilot"])

    def rest(self) -> None:
        """Put blocks on disk until reading goes on."""
        for part in self.parts.values():
            if part.stream.store is not None:
                part.stream.store.rest()

    def close(self) -> None:
        """Forget everything."""
        for part in self.parts.values():
            part.close()
        self.parts.clear()
        self.about = {}
