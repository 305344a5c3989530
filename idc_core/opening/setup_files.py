"""Setup files: a person's own networks and data in a Python file, entered in the registries and read again.

Code is run only where its file was named on the command line or in Python; never by the name of a network.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from idc_core.base.own_code import run_own, said_source
from idc_core.base.own_digest import files_of
from idc_core.base.own_modules import Home, home_of
from idc_core.base.parameters import shown
from idc_core.base.progress import Progress, report
from idc_core.datasets import DATASETS
from idc_core.errors import DataError, IdcError, SetupError
from idc_core.guarded import read_text
from idc_core.models import MODELS
from idc_core.models.formats import NETWORK_FORMATS, REFUSED
from idc_core.opening.entering import REGISTRIES, kept_on_mistakes, try_out

VARIABLE = "IDC_SETUP"
"""Environment variable with the setup files of a server, separated as in PATH."""

_WEIGHTS = {*NETWORK_FORMATS, *REFUSED, ".npz", ".npy"}
"""Endings of files beside a setup file that may hold the weights which it reads."""

_LOOKED_AT = 2000
"""Entries of the setup file's folder among which weights are looked for; it may be full of pictures."""
_LOCK = threading.RLock()


@dataclass(frozen=True)
class _SetupFile:
    """What a setup file registered.

    Attributes
    ----------
    path : Path
    models, datasets : tuple of str
        Names, in the file's order.
    """

    path: Path
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()


@dataclass
class _Watched:
    """A setup file that is read again when it changes."""

    path: Path
    stamp: tuple[object, ...] = ()
    opened: _SetupFile | None = None
    problem: str = ""
    files: tuple[Path, ...] = field(default=())


_WATCHED: dict[Path, _Watched] = {}


def open_setup(path: str | os.PathLike[str]) -> _SetupFile:
    """Run a setup file and enter the networks and data sets that it registers; again, in place of those before.

    Parameters
    ----------
    path : str or path
        A Python file with functions decorated by `idc_core.network` and `idc_core.dataset`. Its folder is searched for
        modules that it imports.

    Returns
    -------
    SetupFile

    Raises
    ------
    SetupError
        If it cannot be read or run, registers nothing, or takes a name that is there already: file, line and the
        mistake. The registries are as before then.
    """
    if not isinstance(path, str | os.PathLike):
        raise SetupError(f"Expected the path of a setup file, not {shown(path)}.")
    with _LOCK:
        return _read(_watched(Path(path)))


def watch(paths: Iterable[str | os.PathLike[str]] | None = None) -> None:
    """Name the setup files that `changed` and `refresh` look after, by default those that the environment names."""
    for path in os.environ.get(VARIABLE, "").split(os.pathsep) if paths is None else paths:
        if path:
            _watched(Path(path))


def changed() -> tuple[object, ...]:
    """Return what changes with the watched files that differ from when they were read last; empty where none does."""
    every = list(_WATCHED.values())  # without the lock, which is held while files are read
    return tuple((watched.path, stamp) for watched in every if (stamp := _stamp(watched)) != watched.stamp)


def refresh(on_progress: Progress | None = None) -> list[_SetupFile]:
    """Read the watched files that have changed, build their networks and read their data; keep what was good before.

    What is wrong is told by `problems`. Returns what was read anew. Raises CancelledError if `on_progress` asks so.
    """
    with _LOCK:
        due = [watched for watched in _WATCHED.values() if _stamp(watched) != watched.stamp]
        files = []
        for done, watched in enumerate(due):
            report(on_progress, done, len(due), f"reading {watched.path.name}")
            with suppress(IdcError):  # told by `problems`
                files.append(_read(watched, thoroughly=True))
        return files


def problems() -> list[str]:
    """Return one sentence for each watched file that could not be read when it had changed last."""
    return [watched.problem for watched in _WATCHED.values() if watched.problem]


def opened() -> list[_SetupFile]:
    """Return what the setup files registered that are open."""
    return [watched.opened for watched in _WATCHED.values() if watched.opened is not None]


def _close_all() -> None:
    """Take what setup files registered out of the registries, and watch none any more."""
    with _LOCK:
        for setup in opened():
            for registry, names in zip(REGISTRIES, (setup.models, setup.datasets), strict=True):
                for name in names:
                    registry.pop(name, None)
        _WATCHED.clear()


def _watched(path: Path) -> _Watched:
    whole = path.expanduser().absolute()
    return _WATCHED.setdefault(whole, _Watched(whole))


def _stamp(watched: _Watched) -> tuple[object, ...]:
    """Return when the file, the modules of its folder that it uses and the weights beside it were changed last."""
    files = (*(watched.files or (watched.path,)), *_weights_beside(watched.path))
    return tuple((file, _changed_at(file)) for file in files)


def _weights_beside(path: Path) -> list[Path]:
    """Return the files of the setup file's folder that look like weights."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _LOOKED_AT)]
    except OSError:
        return []
    return [path.parent / name for name in sorted(names) if os.path.splitext(name)[1].lower() in _WEIGHTS]  # noqa: PTH122 (a third of the time)


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _read(watched: _Watched, thoroughly: bool = False) -> _SetupFile:
    """Run the file; on a mistake put the registries back and note it."""
    try:
        with kept_on_mistakes() as before:
            setup = _entered(watched, before)
            if thoroughly:
                try_out((*setup.datasets, *setup.models))
        watched.opened, watched.problem = setup, ""
        return setup
    except BaseException as error:
        watched.problem = str(error) if isinstance(error, IdcError) else ""
        raise
    finally:
        home = home_of(str(watched.path))
        watched.files = tuple(sorted({*files_of([watched.path]), *(home.files if home else ())}))
        watched.stamp = _stamp(watched)


def _entered(watched: _Watched, before: list[dict[str, object]]) -> _SetupFile:
    run_file(watched.path, again=bool(watched.stamp))  # its modules may be what has changed
    theirs = [
        tuple(name for name, entry in registry.items() if kept.get(name) is not entry)
        for registry, kept in zip(REGISTRIES, before, strict=True)
    ]
    setup = _SetupFile(watched.path, *theirs)
    if not any(theirs) and not _has_rules(watched.path):
        raise SetupError(
            f"{watched.path} registers no network, no data set and no relevance rule: decorate functions with "
            "@idc.network and @idc.dataset, or name a table of rules by idc.composite."
        )
    earlier = (watched.opened.models, watched.opened.datasets) if watched.opened else ((), ())
    kinds = zip(("network", "data set"), REGISTRIES, theirs, before, earlier, strict=True)
    for what, registry, names, kept, own in kinds:
        other = (name for name in names if name in kept and name not in own)
        taken = next((name for name in other if getattr(kept[name], "file", "") != str(watched.path)), None)
        if taken is not None:
            raise SetupError(f"{watched.path}: there is a {what} {taken!r} already; give yours another name.")
        for name in set(own) - set(names):
            del registry[name]
    for name in setup.models:
        if MODELS[name].dataset not in DATASETS:
            raise SetupError(
                f"{said_source(MODELS[name].build)}: the network {name!r} takes the data set {MODELS[name].dataset!r}, "
                f"which there is not; register it with @idc.dataset, or choose one of {', '.join(DATASETS)}."
            )
    return setup


def _has_rules(path: Path) -> bool:
    """Whether a file has entered relevance rules, which nothing but a pass with them asks more of."""
    from idc_core.lrp.rule_registry import RULES  # needs torch

    return RULES.has_of(str(path))


def run_file(path: Path, again: bool = False) -> None:
    """Run a file as a module of its own, with its folder first on the path; its modules anew where it runs again."""
    try:
        text = read_text(path, f"The setup file {path}")
    except DataError as error:
        raise SetupError(f"{error} Expected a Python file.") from error
    home = Home(path, again)
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = home.builtins

    def work() -> None:
        with home.entered():
            sys.modules[name] = module
            exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 (a file that the person named)

    run_own("the setup file", str(path), work, SetupError)
