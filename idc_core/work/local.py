"""The executors that are this process: all inputs in one piece, or one block after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from idc_core.base.progress import Progress, report
from idc_core.errors import SettingError
from idc_core.work.executor import Block, Cut, Cutting, Executor, Found, Work, executor
from idc_core.work.source import Opened, Opener, Source
from idc_core.work.tree import Tree


class Here(Executor):
    """The caller's process, in one piece: all inputs are one block, which streams; what it has is not opened again."""

    def __init__(self) -> None:
        self._opener = Opener()

    def open(self, source: Source, on_progress: Progress | None = None) -> Opened:
        """Return what a source names, or what this process has of it."""
        if source.live is None:
            return replace(self._opener(source), on_progress=on_progress, whole=True)
        open_model, data = source.live
        return Opened(open_model(source.model), data, self._opener.kept, open_model, on_progress, whole=True)

    def run(
        self,
        source: Source,
        work: Work[Found],
        blocks: Sequence[Block],
        on_progress: Progress | None = None,
        *,
        moving: bool = False,
    ) -> Found:
        """Return what the one block gives."""
        (block,) = blocks
        return work(self.open(source, on_progress), block)

    def cut(self, source: Source, how: Cut) -> Cutting:
        """Return the one block."""
        return Cutting([(0, how.count(self.open(source)))], how.batch_size)


@executor("local", label="This process", help="Runs block by block in this process, with the result of a cluster.")
class ByBlocks(Executor):
    """Run blocks in order, with the merges of a cluster."""

    def __init__(self, address: str = "") -> None:
        if address:
            raise SettingError(f"The local engine takes no address, not {address!r}; choose the engine ray.")
        self._open = Opener()

    def run(
        self,
        source: Source,
        work: Work[Found],
        blocks: Sequence[Block],
        on_progress: Progress | None = None,
        *,
        moving: bool = False,
    ) -> Found:
        """Return what all blocks give, merged."""
        tree: Tree[Any] = Tree(len(blocks))
        opened, total = self._open(source), blocks[-1][1]
        while (node := tree.take(0, {0})) is not None:
            if node.level:
                tree.done(node, reduce(lambda state, other: state.merge(other), tree.states(node)))
            else:
                tree.done(node, work(opened, blocks[node.index]))
                report(on_progress, blocks[node.index][1], total, "inputs done")
        merged: Found = tree.found[tree.top]
        return merged
