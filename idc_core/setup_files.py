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
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from idc_core.datasets import DATASETS
from idc_core.datasets.own import OwnData, OwnReader
from idc_core.errors import IdcError, SetupError
from idc_core.models import MODELS
from idc_core.models.own import OwnModel
from idc_core.own_code import own_modules, run_own, said_source, source_of
from idc_core.parameters import shown
from idc_core.progress import Progress, report

VARIABLE = "IDC_SETUP"
"""Environment variable with the setup files of a server, separated as in PATH."""

_REGISTRIES: tuple[dict[str, Any], ...] = (MODELS, DATASETS)

_WEIGHTS = frozenset(
    (
        ".safetensors",
        ".onnx",
        ".pt2",
        ".npz",
        ".npy",
        ".pt",
        ".pth",
        ".ckpt",
        ".bin",
        ".h5",
        ".keras",
        ".pkl",
        ".joblib",
    )
)
"""Endings of files beside a setup file that may hold the weights which it reads."""

_LOOKED_AT = 2000
"""Entries of the setup file's folder among which weights are looked for; it may be full of pictures."""
_LOCK = threading.RLock()


@dataclass(frozen=True)
class SetupFile:
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
    stamp: tuple[Any, ...] = ()
    opened: SetupFile | None = None
    problem: str = ""
    files: tuple[Path, ...] = field(default=())


_WATCHED: dict[Path, _Watched] = {}


def open_setup(path: str | os.PathLike[str]) -> SetupFile:
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
    watched = _watched(Path(path))
    with _LOCK:
        _read(watched)
        return watched.opened or SetupFile(watched.path)


def watch(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Name the setup files that `changed` and `refresh` look after, without reading them yet."""
    for path in paths:
        _watched(Path(path))


def from_environment() -> list[str]:
    """Return the setup files that the environment names."""
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


def changed() -> tuple[Any, ...]:
    """Return what changes with the watched files that differ from when they were read last; empty where none does."""
    watched = list(_WATCHED.values())  # without the lock, which is held while files are read
    return tuple((one.path, stamp) for one in watched if (stamp := _stamp(one)) != one.stamp)


def refresh(on_progress: Progress | None = None) -> list[SetupFile]:
    """Read the watched files that have changed, build their networks and read their data; keep what was good before.

    What is wrong is told by `problems`. Returns what was read anew. Raises CancelledError if `on_progress` asks so.
    """
    with _LOCK:
        due = [one for one in _WATCHED.values() if _stamp(one) != one.stamp]
        found = []
        for done, one in enumerate(due):
            report(on_progress, done, len(due), f"reading {one.path.name}")
            try:
                _read(one, thoroughly=True)
            except IdcError:
                continue  # told by `problems`
            if one.opened is not None:
                found.append(one.opened)
        return found


def problems() -> list[str]:
    """Return one sentence for each watched file that could not be read when it had changed last."""
    return [one.problem for one in _WATCHED.values() if one.problem]


def opened() -> list[SetupFile]:
    """Return what the setup files registered that are open."""
    return [one.opened for one in _WATCHED.values() if one.opened is not None]


def close_all() -> None:
    """Take what setup files registered out of the registries, and watch none any more."""
    with _LOCK:
        for one in _WATCHED.values():
            _remove(one.opened)
        _WATCHED.clear()


def _watched(path: Path) -> _Watched:
    whole = path.expanduser().absolute()
    return _WATCHED.setdefault(whole, _Watched(whole))


def _stamp(one: _Watched) -> tuple[Any, ...]:
    """Return when the file, the modules of its folder that it uses and the weights beside it were changed last."""
    files = (*(one.files or (one.path,)), *_weights_beside(one.path))
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


def _read(one: _Watched, thoroughly: bool = False) -> None:
    """Run the file; on a mistake put the registries back and note it."""
    before = [dict(registry) for registry in _REGISTRIES]
    try:
        one.opened = _entered(one, before, thoroughly)
        one.problem = ""
    except BaseException as error:
        for registry, kept in zip(_REGISTRIES, before, strict=True):
            _replace(registry, kept)
        one.problem = str(error) if isinstance(error, IdcError) else ""
        raise
    finally:
        one.files = (one.path, *sorted(set(_helpers(one.path).values())))
        one.stamp = _stamp(one)


def _entered(one: _Watched, before: list[dict[str, Any]], thoroughly: bool) -> SetupFile:
    if one.stamp:
        for name in _helpers(one.path):
            del sys.modules[name]  # they may be what has changed
    _run(one.path)
    theirs = [
        tuple(name for name, entry in registry.items() if kept.get(name) is not entry)
        for registry, kept in zip(_REGISTRIES, before, strict=True)
    ]
    found = SetupFile(one.path, *theirs)
    if not any(theirs):
        raise SetupError(
            f"{one.path} registers no network and no data set: decorate functions with @idc.network and @idc.dataset."
        )
    earlier = (one.opened.models, one.opened.datasets) if one.opened else ((), ())
    for what, names, kept, own in zip(("network", "data set"), theirs, before, earlier, strict=True):
        taken = [name for name in names if name in kept and name not in own and _file_of(kept[name]) != str(one.path)]
        if taken:
            raise SetupError(f"{one.path}: there is a {what} {taken[0]!r} already; give yours another name.")
    for registry, names, own in zip(_REGISTRIES, theirs, earlier, strict=True):
        for name in set(own) - set(names):
            del registry[name]
    for name in found.models:
        if MODELS[name].dataset not in DATASETS:
            raise SetupError(
                f"{said_source(MODELS[name].build)}: the network {name!r} takes the data set {MODELS[name].dataset!r}, "
                f"which there is not; register it with @idc.dataset, or choose one of {', '.join(DATASETS)}."
            )
    if thoroughly:
        _try(found)
    return found


def _file_of(entry: Any) -> str:
    """Return the file in which an entry was registered, for it may have been imported; empty for the project's."""
    if isinstance(entry, OwnModel):
        return source_of(entry.build)[0]
    return source_of(cast("OwnReader", entry.load).read)[0] if isinstance(entry, OwnData) else ""


def _try(found: SetupFile) -> None:
    """Ask for all that is found when it is first asked for, so that mistakes come now."""
    for name in found.datasets:
        data = DATASETS[name]
        _ = data.input_shape, data.task, data.class_names
    for name in found.models:
        model = MODELS[name]
        if isinstance(model, OwnModel):
            _ = model.found, model.layers, model.default_layer


def _run(path: Path) -> None:
    """Run a file as a module of its own, with its folder first on the path."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SetupError(f"The setup file {path} cannot be read ({what}); expected a Python file.") from error
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)

    def work() -> None:
        exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 (a file that the person named)

    run_own("the setup file", str(path), work, SetupError)


def _helpers(path: Path) -> dict[str, Path]:
    """Return the modules of the file's folder that it may use, by name; the program and other setup files are none."""
    return {name: file for name, file in own_modules(path).items() if name != "__main__" and file not in _WATCHED}


def _remove(found: SetupFile | None) -> None:
    for registry, names in zip(_REGISTRIES, (found.models, found.datasets) if found else ((), ()), strict=True):
        for name in names:
            registry.pop(name, None)


def _replace(registry: dict[str, Any], kept: dict[str, Any]) -> None:
    """Make a registry hold what it held; others may be reading it."""
    for name in set(registry) - set(kept):
        del registry[name]
    registry.update(kept)
