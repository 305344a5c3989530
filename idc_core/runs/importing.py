"""Runs from elsewhere: files of results, copied from another computer, looked through before they are taken.

A file is copied first and the copy is read in full: its checksum, its facts, the classes that it is made of, and the
types of their fields. Nothing in it is ever run. The numbers themselves are taken as they are: only computing them
again could tell more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Union, get_args, get_origin, get_type_hints

import numpy as np

from idc_core import store
from idc_core.base.config import config
from idc_core.base.files import keeping, partial_file, unreadable
from idc_core.errors import DataError
from idc_core.runs.kinds import RUN_KINDS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_INTERMEDIATE = {"trace": "idc_core.tracing.traces:Traces"}
"""Results that are no runs but make one open without computing: the class of each kind."""

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
        facts = store.read_facts(file)
    except DataError:
        return False
    return not facts.settings and facts.kind not in {*_INTERMEDIATE, *RUN_KINDS}


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
    if why := unreadable(file):
        raise DataError(f"{file} is refused: it {why}.")
    with keeping(folder, "Runs"), partial_file(folder) as partial:
        _copy(file, partial)
        try:
            facts = store.read_facts(partial)
            _check_facts(facts)
            value = store.read(partial)
            _check_value(facts, value)
        except DataError as error:
            raise DataError(f"{file} is refused: {str(error).replace(str(partial), 'it')}") from error
        partial.replace(folder / file.name)


def _copy(file: Path, target: Path) -> None:
    most = config().store
    with file.open("rb") as source, target.open("wb") as copy:
        written = 0
        while block := source.read(1 << 20):
            written += len(block)
            if written > most:
                raise DataError(f"{file} is refused: it is larger than all kept results may be ({most:,} bytes).")
            copy.write(block)


def _check_facts(facts: store.Facts) -> None:
    """Refuse facts that no run of ours has."""
    known = {**_INTERMEDIATE, **{name: kind.result for name, kind in RUN_KINDS.items()}}
    if facts.kind not in known:
        raise DataError(f"it is of a kind that is not taken ({facts.kind[:60]!r}); expected {', '.join(known)}.")
    if not re.fullmatch(r"[\w.,+ -]{1,200}", facts.version):
        raise DataError("its version is no text of letters, digits and dots.")
    try:
        datetime.fromisoformat(facts.made)
    except ValueError as error:
        raise DataError(f"it does not say when it was made ({error}).") from error
    if facts.kind in RUN_KINDS and not all(facts.settings.get(name) for name in ("network", "tests", "layer")):
        raise DataError("it does not say of which network, tests and layer it is.")
    if not all(map(_is_plain, facts.settings.values())):
        raise DataError(f"its settings are more than plain values, texts of up to {_LONGEST:,} characters and lists.")


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN) or (isinstance(value, str) and len(value) <= _LONGEST)


def _check_value(facts: store.Facts, value: DataclassInstance) -> None:
    """Refuse a result of another class than its kind's, or whose fields hold something else than theirs."""
    class_name = RUN_KINDS[facts.kind].result if facts.kind in RUN_KINDS else _INTERMEDIATE[facts.kind]
    if f"{type(value).__module__}:{type(value).__qualname__}" != class_name:
        raise DataError(f"it holds a {type(value).__qualname__}, where {class_name.partition(':')[2]} was expected.")
    hints = get_type_hints(type(value))
    for entry in fields(value):
        held, hint = getattr(value, entry.name), hints[entry.name]
        if not _fits(held, hint):
            raise DataError(f"its {entry.name} is a {type(held).__qualname__}, where {hint} was expected.")
    if facts.kind in RUN_KINDS:
        try:
            again = RUN_KINDS[facts.kind].figures(value, facts.settings)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise DataError(f"its figures cannot be read from it ({error}).") from error
        if again != facts.scores:
            raise DataError("the figures that it tells are not those of its result.")


def _fits(held: object, hint: object) -> bool:
    """Whether a value is of the type that a field is annotated with; what is in it is not looked at."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return any(_fits(held, option) for option in get_args(hint))
    kind = get_origin(hint) or hint
    if kind in (int, float):
        return isinstance(held, (int, np.integer) if kind is int else (int, float, np.number))
    return not isinstance(kind, type) or isinstance(held, kind)
