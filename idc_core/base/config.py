"""What the owner of a machine has set: the section ``[limits]`` of the config file."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from idc_core.base.files import cache_folder
from idc_core.errors import SettingError

_MOST_CONFIG = 1 << 20

_UPLOADS = ("loopback", "on", "off")
"""Who may upload files."""


_NAMES = {"device": "auto", "engine": "ray", "address": "10.0.0.1:6379"}
"""Settings that are names or addresses, with an example each."""


@dataclass(frozen=True)
class Config:
    """The section ``[limits]`` of the config file.

    Attributes
    ----------
    memory_mib : int
        Most mebibytes that one reading from outside may hold, copies included.
    upload_mib : int
        Most mebibytes of one file that is uploaded into the library.
    library_mib : int
        Most mebibytes of all uploads in the library.
    suites_mib : int
        Most mebibytes of all saved test sets.
    person_mib : int
        Most mebibytes that one visitor keeps who is not at this computer: of uploads, and as much of saved test sets.
    store_mib : int
        Most mebibytes of kept results; above it the ones used longest ago go, unless they are pinned.
    fetched_mib : int
        Most mebibytes of what one URL leads to, which is fetched into the cache folder.
    uploads : {"loopback", "on", "off"}
        Who may upload files: visitors of a server that only this computer reaches, all visitors, or nobody.
    batch_mib : int or None
        Most mebibytes of activations in one batch of inputs that run through a network; None leaves the choice to
        `idc_core.tracing.batch_size`.
    device : str
        Where networks run unless something else is chosen: a name as `idc_core.base.devices.choose` takes it.
    engine, address : str
        Engine that runs the dashboard's passes over all inputs, a name in `idc_core.work.EXECUTORS`, and the address
        of its cluster, where it has one; empty: the dashboard's own processes.
    activations_mib : int
        Most mebibytes of activations that a pass over inputs holds in memory; more go to files in the cache folder.
    sketch_from : int
        Values per neuron from which on k-means clusters a sketch of them, with proven bounds, instead of all of them.
    workers : int or None
        Processes that do the dashboard's work beside the server's own; 0 has the server do it, None leaves the choice
        to `studio.jobs.workers`.
    threads : int or None
        Threads with which each process computes, where `OMP_NUM_THREADS` does not say so; None: one per core.
    loaders : int
        Processes that read a torch Dataset item by item for a pass over it; with 0 the pass reads it itself.
    inputs, m, attack_passes, jobs : int or None
        What one session of the dashboard may ask for: inputs of a data set that run through a network, important
        neurons, attacked tests times passes of each through the network in one attack, and pieces of work that wait or
        run. None: as much as the dashboard offers.
    """

    memory_mib: int = 1024
    upload_mib: int = 200
    library_mib: int = 4096
    suites_mib: int = 4096
    person_mib: int = 1024
    store_mib: int = 4096
    fetched_mib: int = 4096
    uploads: str = "loopback"
    batch_mib: int | None = None
    device: str = "cpu"
    engine: str = ""
    address: str = ""
    activations_mib: int = 64
    sketch_from: int = 10_000_000
    workers: int | None = None
    threads: int | None = None
    loaders: int = 0
    inputs: int | None = None
    m: int | None = None
    attack_passes: int | None = None
    jobs: int | None = None

    @property
    def memory(self) -> int:
        """The limit of memory in bytes."""
        return self.memory_mib << 20

    @property
    def upload(self) -> int:
        """The limit of an upload in bytes."""
        return self.upload_mib << 20

    @property
    def library(self) -> int:
        """The limit of the library in bytes."""
        return self.library_mib << 20

    @property
    def suites(self) -> int:
        """The limit of saved test sets in bytes."""
        return self.suites_mib << 20

    @property
    def person(self) -> int:
        """The limit of what one visitor keeps, in bytes."""
        return self.person_mib << 20

    @property
    def store(self) -> int:
        """The limit of kept results in bytes."""
        return self.store_mib << 20

    @property
    def fetched(self) -> int:
        """The limit of what a URL leads to, in bytes."""
        return self.fetched_mib << 20

    @property
    def activations(self) -> int:
        """The limit of activations in memory, in bytes."""
        return self.activations_mib << 20

    @property
    def deciding(self) -> dict[str, int]:
        """Those that decide between exact and bounded numbers, where the owner has changed them."""
        return {} if self.sketch_from == Config.sketch_from else {"sketch_from": self.sketch_from}

    @property
    def batch(self) -> int | None:
        """The limit of a batch in bytes, where the owner has set one."""
        return None if self.batch_mib is None else self.batch_mib << 20


def config_file() -> Path:
    """Return the owner's config file, which need not exist: IDC_CONFIG, or config.toml in the cache folder."""
    named = os.environ.get("IDC_CONFIG", "")
    return Path(named).expanduser() if named else cache_folder() / "config.toml"


def config() -> Config:
    """Return what is set; raise `SettingError` where the config file is not what it should be."""
    path = config_file()
    try:
        changed = path.stat().st_mtime_ns
    except (OSError, ValueError):
        return Config()
    return _read(path, changed)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> Config:
    """Read a config file; `changed` tells a new file of the same name."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_CONFIG:
            raise SettingError(f"The config file {path} is no file of at most {_MOST_CONFIG:,} bytes.")
        limits = tomllib.loads(path.read_text(encoding="utf-8")).get("limits", {})
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"The config file {path} cannot be read ({error}).") from error
    if not isinstance(limits, dict):
        raise SettingError(f"The config file {path}: expected a section [limits], not a value limits.")
    known = Config.__dataclass_fields__
    if limits.get("uploads", _UPLOADS[0]) not in _UPLOADS:
        raise SettingError(f"The config file {path}, section limits: uploads must be one of {', '.join(_UPLOADS)}.")
    for name, example in _NAMES.items():
        if type(limits.get(name, "")) is not str:
            raise SettingError(f'The config file {path}, section limits: {name} must be a text, such as "{example}".')
    if limits.get("address") and not limits.get("engine"):
        raise SettingError(f'The config file {path}, section limits: address is of a cluster: add engine = "ray".')
    numbers = {name: value for name, value in limits.items() if name not in ("uploads", *_NAMES)}
    least = dict.fromkeys(known, 1) | {"workers": 0, "loaders": 0, "m": 2}
    wrong = [name for name, value in numbers.items() if type(value) is not int or value < least.get(name, value + 1)]
    if wrong:
        raise SettingError(
            f"The config file {path}, section limits: {', '.join(wrong)[:200]} is not known or no whole number from 1 "
            f"(m from 2, workers and loaders from 0); expected {', '.join(known)}."
        )
    return Config(**limits)
