"""What may be held in memory of anything that comes from outside: one limit, from the owner's config file."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from idc_core.errors import DataError, SettingError
from idc_core.files import cache_folder

_MOST_CONFIG = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The section ``[limits]`` of the config file.

    Attributes
    ----------
    memory_mib : int
        Most mebibytes that one reading from outside may hold, copies included.
    """

    memory_mib: int = 1024

    @property
    def memory(self) -> int:
        """The limit in bytes."""
        return self.memory_mib << 20


def config_file() -> Path:
    """Return the owner's config file, which need not exist: IDC_CONFIG, or config.toml in the cache folder."""
    named = os.environ.get("IDC_CONFIG", "")
    return Path(named).expanduser() if named else cache_folder() / "config.toml"


def limits() -> Limits:
    """Return the limits in force; raise `SettingError` where the config file is not what it should be."""
    path = config_file()
    try:
        changed = path.stat().st_mtime_ns
    except (OSError, ValueError):
        return Limits()
    return _read(path, changed)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> Limits:
    """Read a config file; `changed` tells a new file of the same name."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_CONFIG:
            raise SettingError(f"The config file {path} is no file of at most {_MOST_CONFIG:,} bytes.")
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("limits", {})
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"The config file {path} cannot be read ({error}).") from error
    if not isinstance(found, dict):
        raise SettingError(f"The config file {path}: expected a section [limits], not a value limits.")
    known = Limits.__dataclass_fields__
    wrong = [name for name, value in found.items() if name not in known or type(value) is not int or value < 1]
    if wrong:
        raise SettingError(
            f"The config file {path}, section limits: {', '.join(wrong)[:200]} is not known or no whole number from 1; "
            f"expected {', '.join(known)}."
        )
    return Limits(**found)


class Budget:
    """The memory that one reading may hold: everything is counted before it is allocated.

    `where` names what is read, as the beginning of a sentence.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.limit = limits().memory
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
