"""The engine that is this process: one block after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from idc_core.engines.engine import Block, Engine, Found, Work, engine
from idc_core.engines.source import Opener, Source
from idc_core.engines.tree import Tree
from idc_core.errors import SettingError
from idc_core.progress import Progress, report


@engine("local", label="This process", help="Runs block by block in this process, with the result of a cluster.")
class LocalEngine(Engine):
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
                tree.done(node, reduce(lambda one, other: one.merge(other), tree.states(node)))
            else:
                tree.done(node, work(opened, blocks[node.index]))
                report(on_progress, blocks[node.index][1], total, "inputs done")
        found: Found = tree.found[tree.top]
        return found

    def close(self) -> None:
        """Do nothing: there is no worker to end."""
