"""Which jobs are left: blocks, and merges of what eight of them found, in a tree that depends on their number alone."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

_State = TypeVar("_State")

_FAN_IN = 8
"""States that are merged at a time."""


@dataclass(frozen=True)
class Node:
    """A place in the tree: level 0 are the blocks in order, each further level merges `_FAN_IN` of the one below."""

    level: int
    index: int

    @property
    def parent(self) -> Node:
        """The node that it is merged into."""
        return Node(self.level + 1, self.index // _FAN_IN)


class Tree(Generic[_State]):
    """Keep account of what is done, so that each block counts once whoever runs it, and however often.

    Parameters
    ----------
    blocks : int
        Number of blocks, at least one.
    homes : mapping of int to int, optional
        By block, the worker that alone is to run it while it is alive.
    moving : bool
        Whether a worker that is the home of none becomes that of its share.
    """

    def __init__(self, blocks: int, homes: Mapping[int, int] | None = None, moving: bool = False) -> None:
        self.sizes = [blocks]
        while self.sizes[-1] > 1:
            self.sizes.append(-(-self.sizes[-1] // _FAN_IN))
        self.top = Node(len(self.sizes) - 1, 0)
        self.found: dict[Node, _State] = {}
        self._homes, self._moving = dict(homes or {}), moving
        self._blocks = deque(Node(0, index) for index in range(blocks))
        self._merges: deque[Node] = deque()

    @property
    def finished(self) -> bool:
        """Whether everything is merged."""
        return self.top in self.found

    def children(self, node: Node) -> list[Node]:
        """Return the nodes that are merged into one, in order."""
        first = node.index * _FAN_IN
        last = min(first + _FAN_IN, self.sizes[node.level - 1])
        return [Node(node.level - 1, index) for index in range(first, last)]

    def take(self, worker: int, alive: set[int]) -> Node | None:
        """Return the next job of a worker: a merge, else a block of its own or of nobody alive."""
        if self._merges:
            return self._merges.popleft()
        node = self._block(worker, alive)
        if node is None and self._moving and worker not in self._homes.values():
            self._move(worker, len(alive))
            node = self._block(worker, alive)
        return node

    def _block(self, worker: int, alive: set[int]) -> Node | None:
        for place, node in enumerate(self._blocks):
            home = self._homes.get(node.index)
            if home is None or home == worker or home not in alive:
                del self._blocks[place]
                return node
        return None

    def _move(self, worker: int, workers: int) -> None:
        """Make a worker the home of its share of the blocks that wait, taken from the homes of most."""
        held, waiting = Counter(self._homes.values()), [node.index for node in self._blocks]
        for _ in range(max(1, self.sizes[0] // workers)):
            index = max(waiting, key=lambda block: held[self._homes[block]], default=None)
            if index is None or held[self._homes[index]] < 2:
                return
            waiting.remove(index)
            held[self._homes[index]] -= 1
            self._homes[index] = worker

    def states(self, node: Node) -> list[_State]:
        """Return what a merge takes."""
        return [self.found[child] for child in self.children(node)]

    def done(self, node: Node, state: _State) -> None:
        """Note what a job has found; what was merged is forgotten."""
        if node.level:
            for child in self.children(node):
                del self.found[child]
        self.found[node] = state
        if node != self.top and all(child in self.found for child in self.children(node.parent)):
            self._merges.append(node.parent)

    def put_back(self, node: Node) -> None:
        """Note that a job ended without a result, because its worker did."""
        (self._merges if node.level else self._blocks).appendleft(node)

    def redo(self, node: Node) -> list[int]:
        """Note that what a merge takes, or the result of a job, is lost; return the blocks that run again."""
        again = list(self._leaves(node))
        for place in [known for known in self.found if known == node or self._is_below(known, node)]:
            del self.found[place]
        self._blocks.extendleft(Node(0, index) for index in reversed(again))
        return again

    def _is_below(self, one: Node, node: Node) -> bool:
        return one.level < node.level and one.index // _FAN_IN ** (node.level - one.level) == node.index

    def _leaves(self, node: Node) -> Iterator[int]:
        span = _FAN_IN**node.level
        yield from range(node.index * span, min((node.index + 1) * span, self.sizes[0]))
