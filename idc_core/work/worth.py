"""Studies of what a higher score is worth, a network a block: each runs as a whole by one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from idc_core.base.progress import Progress
from idc_core.store.cache import Record
from idc_core.work.executor import Block, Executor, Work
from idc_core.work.source import Opened, Source
from idc_core.worth.networks import PoolSettings, study_network
from idc_core.worth.study import StudySettings


@dataclass(eq=False)
class _Records:
    """Records by network."""

    records: dict[str, Record] = field(default_factory=dict)

    def merge(self, other: _Records) -> Self:
        """Take in the records of other networks."""
        self.records |= other.records
        return self


@dataclass(frozen=True)
class _Studies(Work[_Records]):
    """Studies of the networks at a block's places among these."""

    networks: tuple[str, ...]
    pool: PoolSettings
    settings: StudySettings
    fresh: bool
    retrain: bool

    def __call__(self, opened: Opened, block: Block) -> _Records:
        """Return the records of a block's networks."""
        return _Records(
            {
                name: study_network(name, self.pool, self.settings, fresh=self.fresh, retrain=self.retrain)
                for name in self.networks[slice(*block)]
            }
        )


def study_networks(
    executor: Executor,
    source: Source,
    networks: Sequence[str],
    pool: PoolSettings,
    settings: StudySettings | None = None,
    *,
    fresh: bool = False,
    retrain: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Record]:
    """Return the studies of networks, by name in their order, as `study_network` gives them.

    `source` is one of them with a few inputs: each worker opens the networks of its blocks itself.
    """
    work = _Studies(tuple(networks), pool, settings or StudySettings(), fresh, retrain)
    blocks = [(place, place + 1) for place in range(len(networks))]
    found = executor.run(source, work, blocks, on_progress).records
    return {name: found[name] for name in networks}
