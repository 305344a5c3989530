"""What may be held in memory of anything that comes from outside, counted before it is allocated."""

from __future__ import annotations

from idc_core.base.config import config, config_file
from idc_core.errors import DataError


class Budget:
    """The memory that one reading may hold: everything is counted before it is allocated.

    `where` names what is read, as the beginning of a sentence.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.limit = config().memory
        self.held = 0

    def take(self, size: int, what: str) -> None:
        """Count bytes that are about to be held; raise `DataError` where they are too many."""
        if self.held + size > self.limit:
            raise DataError(
                f"{self.where}: {what} would take {self.held + size:,} bytes of memory; at most {self.limit:,} are "
                f"allowed. Give a smaller file, or raise memory_mib in the section limits of {config_file()}."
            )
        self.held += size

    def give(self, size: int) -> None:
        """Count bytes that are no longer held."""
        self.held -= size
