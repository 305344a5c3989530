"""Runs from elsewhere: files of results, copied from another computer, looked through before they are taken.

A file is measured and copied first, and the copy is read in full: its checksum, its facts, the classes that it is made
of, the types of their fields, and whether all agree. Nothing in it is ever run. The numbers themselves are taken as
they are: only computing them again could tell more.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, urlencode

import numpy as np

from idc_core import store
from idc_core.base.files import keeping, partial_file, unreadable
from idc_core.base.parameters import is_number, is_whole, shown
from idc_core.base.ranges import M
from idc_core.errors import DataError, SettingError
from idc_core.guarded import Budget, opened
from idc_core.guarded.opening import size_of
from idc_core.runs.agreement import check_agreement
from idc_core.runs.kinds import OTHER_CLASSES, RUN_KINDS

_INTERMEDIATE = {"trace": "idc_core.tracing.traces:Traces"}
"""Results that are no runs but make one open without computing: the class of each kind."""

_HELD = "its content"
"""What counts in the memory, for messages."""

_LONGEST = 2_000
"""Characters of a text among the settings."""

_NAME = re.compile(r"[0-9a-f]{32}")
_PLAIN = (bool, int, float, type(None))


@dataclass
class Imported:
    """What came of an import.

    Ids that were taken, ids that were here already, a sentence per refused file, and how many files of a folder were
    left out because they are no runs but parts of results.
    """

    taken: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    left_out: int = 0


def import_runs(paths: Sequence[Path]) -> Imported:
    """Take results from files, or from the files of folders.

    Parameters
    ----------
    paths : sequence of Path
        Files named as the store names them, or folders that hold such files.

    Returns
    -------
    Imported
        A file that cannot be taken is refused in a sentence; the others are taken.

    Raises
    ------
    DataError
        If a path does not exist or holds no results, or they cannot be kept.
    """
    imported = Imported()
    folder = store.results_folder()
    for file in [file for path in paths for file in _files(path)]:
        if (folder / file.name).exists():
            imported.known.append(file.stem)
            continue
        if _is_part(file):
            imported.left_out += 1
            continue
        try:
            _take(file, folder)
        except DataError as error:
            imported.refused.append(str(error))
        else:
            imported.taken.append(file.stem)
    return imported


def _is_part(file: Path) -> bool:
    """Whether a file holds a result that is neither a run nor what opens one without computing."""
    try:
        _measured(file, Budget(_HELD))
        facts = store.read_facts(file)
    except DataError:
        return False
    return not facts.settings and facts.kind not in _INTERMEDIATE


def _measured(file: Path, budget: Budget) -> int:
    """Return the bytes of a file that can be held twice: while its arrays are copied from it, it is mapped."""
    with opened(file, str(file)) as stream:
        size = size_of(stream)
    budget.take(2 * size, "all of it")
    return size


def _files(path: Path) -> list[Path]:
    """Return the files of results at a path."""
    if path.is_dir():
        files = sorted(path.glob(f"*{store.ENDING}")) or sorted((path / "results").glob(f"*{store.ENDING}"))
        if not files:
            raise DataError(f"{path} holds no results: files ending in {store.ENDING} were expected there.")
        return files
    if why := unreadable(path):
        raise DataError(f"{path} {why}.")
    return [path]


def _take(file: Path, folder: Path) -> None:
    """Copy one file, look through the copy, and give it its name."""
    if file.suffix != store.ENDING or not _NAME.fullmatch(file.stem):
        raise DataError(f"{file} is refused: the name of a result is 32 hexadecimal digits and {store.ENDING}.")
    with keeping(folder, "Runs"), partial_file(folder) as partial:
        try:
            _copy(file, partial)
            facts = store.read_facts(partial)
            kind = _check_facts(facts)
            value = store.read(partial, Budget(_HELD), _classes(facts.kind, kind))
            _check_value(facts, value, kind)
        except DataError as error:
            raise DataError(f"{file} is refused: {str(error).replace(str(partial), 'it')}") from error
        partial.replace(folder / file.name)


def _copy(file: Path, target: Path) -> None:
    most = _measured(file, Budget(_HELD))
    with opened(file, str(file)) as source, target.open("wb") as copy:
        while block := source.read(min(1 << 20, most + 1)):
            most -= len(block)
            if most < 0:
                raise DataError("it grew while it was read.")
            copy.write(block)


def _check_facts(facts: store.Facts) -> type:
    """Refuse facts that no run of ours has; return the class of the result."""
    known = {**_INTERMEDIATE, **{name: kind.result for name, kind in RUN_KINDS.items()}}
    if facts.kind not in known:
        raise DataError(f"it is of a kind that is not taken ({facts.kind[:60]!r}); expected {', '.join(known)}.")
    if not re.fullmatch(r"[\w.,+ -]{1,200}", facts.version):
        raise DataError("its version is no text of letters, digits and dots.")
    try:
        datetime.fromisoformat(facts.made)
    except ValueError as error:
        raise DataError(f"it does not say when it was made ({error}).") from error
    if not is_number(facts.seconds):
        raise DataError("it does not say how long it took.")
    if facts.kind in RUN_KINDS:
        _check_settings(facts.settings)
    elif facts.settings:
        raise DataError("it is no run, and has settings of one.")
    module, _, name = known[facts.kind].partition(":")
    kind: type = getattr(importlib.import_module(module), name)
    return kind


def _check_settings(settings: Mapping[str, object]) -> None:
    """Refuse settings that are not those of a run, by what pages and commands do with them."""
    if not all(settings.get(name) for name in ("network", "tests", "layer")):
        raise DataError("it does not say of which network, tests and layer it is.")
    if not all(map(_is_plain, settings.values())):
        raise DataError(f"its settings are more than plain values, texts of up to {_LONGEST:,} characters and lists.")
    for name, fits, expected in _SETTINGS:
        if name in settings and not fits(settings[name]):
            raise DataError(f"its setting {name} is {shown(settings[name])}; expected {expected}.")


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN) or (isinstance(value, str) and len(value) <= _LONGEST)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_fingerprint(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{8,64}", value) is not None


def _is_address(value: object) -> bool:
    """Whether a text is the query of an address as a page writes it, and nothing that a browser would follow."""
    try:
        return isinstance(value, str) and urlencode(parse_qsl(value, strict_parsing=bool(value))) == value
    except ValueError:
        return False


def _are_lines(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_line, value))


_SETTINGS: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    *((name, _is_line, "a line of text") for name in ("network", "network_label", "tests", "layer", "training_data")),
    *(
        (f"{name}_fingerprint", _is_fingerprint, "hexadecimal digits of a fingerprint")
        for name in ("network", "training", "tests")
    ),
    *((f"{name}_inputs", lambda value: is_whole(value, 1), "a whole number") for name in ("training", "test")),
    ("m", lambda value: is_whole(value, 1, M.high), f"a whole number from 1 to {M.high:,}"),
    ("targets", lambda value: value in ("numbers", "classes", OTHER_CLASSES), "numbers, classes or other classes"),
    ("models", _are_lines, "a list of names"),
    ("suite_data", _are_lines, "a list of names"),
    ("address", _is_address, "the query of an address"),
)
"""Settings that pages and commands use as what they are: how to tell, and what was expected."""


def _classes(kind: str, result: type) -> set[str]:
    """Return the classes that a result of a kind may be made of, as ``module:class``."""
    classes = _within(result)
    if kind == "searches":
        from idc_core.generation.constraints import CONSTRAINTS

        classes |= set(CONSTRAINTS.values())
    return {f"{one.__module__}:{one.__qualname__}" for one in classes}


def _within(hint: object) -> set[type]:
    """Return the dataclasses that an annotation names, and those of their fields."""
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        return {hint, *(kind for entry in fields(hint) for kind in _within(hints[entry.name]))}
    return {kind for part in get_args(hint) for kind in _within(part)}


def _check_value(facts: store.Facts, value: object, kind: type) -> None:
    """Refuse a result of another class than its kind's, one that does not agree with its facts, or other figures."""
    if type(value) is not kind:
        raise DataError(f"it holds a {type(value).__qualname__}, where {kind.__qualname__} was expected.")
    if wrong := _misfit(value, kind):
        raise DataError(f"{wrong}.")
    try:
        check_agreement(facts.kind, value, facts.settings)
        again = RUN_KINDS[facts.kind].figures(value, facts.settings) if facts.kind in RUN_KINDS else facts.scores
    except (SettingError, AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise DataError(f"its figures cannot be read from it ({error}).") from error
    if again != facts.scores:
        raise DataError("the figures that it tells are not those of its result.")


_NUMBERS: dict[type, tuple[type, ...]] = {int: (int, np.integer), float: (int, float, np.number)}
"""What may be where numbers are annotated; a truth value may not."""


def _misfit(held: object, hint: object, where: str = "it") -> str:
    """Say what of a value is not of the type that is annotated; empty where all is. Arrays are not looked into."""
    options = get_args(hint)
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return "" if any(not _misfit(held, option) for option in options) else _other(held, hint, where)
    kind = get_origin(hint) or hint
    if kind is Literal:
        return "" if held in options else _other(held, hint, where)
    if kind is Any or not isinstance(kind, type):
        return ""
    is_truth = isinstance(held, bool | np.bool_)
    if not isinstance(held, _NUMBERS.get(kind, kind)) or (kind in _NUMBERS and is_truth):
        return _other(held, hint, where)
    return next(filter(None, (_misfit(one, of, name) for one, of, name in _parts(held, kind, options, where))), "")


def _parts(held: Any, kind: type, options: tuple[Any, ...], where: str) -> Iterator[tuple[object, Any, str]]:
    """Yield what a value is made of, as far as its type tells: each with its annotation, and what it is called."""
    if is_dataclass(held):
        hints = get_type_hints(type(held))
        yield from ((getattr(held, entry.name), hints[entry.name], f"its {entry.name}") for entry in fields(held))
    elif issubclass(kind, Mapping) and options:
        yield from ((key, options[0], where) for key in held)
        yield from ((one, options[1], where) for one in held.values())
    elif kind is tuple and options[-1:] == (Ellipsis,):
        yield from ((one, options[0], where) for one in held)
    elif kind is tuple and options:
        if len(held) != len(options):
            yield held, Literal["another length"], where
        yield from ((one, of, where) for one, of in zip(held, options, strict=False))


def _other(held: object, hint: object, where: str) -> str:
    return f"{where} is a {type(held).__qualname__}, where {hint} was expected"
