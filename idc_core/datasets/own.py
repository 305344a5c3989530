"""A person's own data: what their `read` returns, taken apart, checked, and kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from idc_core.base.own_code import next_registration, run_own, said_source, source_of
from idc_core.base.progress import Progress
from idc_core.base.registry import lazy
from idc_core.datasets.dataset import Dataset, Items, Task
from idc_core.datasets.entry import DatasetEntry
from idc_core.datasets.formats import format_of
from idc_core.datasets.gathered import gathered
from idc_core.datasets.naming import Naming, apart
from idc_core.datasets.own_arrays import as_array, checked_inputs, checked_targets
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.remote import local_path
from idc_core.errors import DataError

_EXPECTED = "return (inputs, targets), a torch Dataset, an idc Dataset, or the path of files"


class OwnReader:
    """Reads one data set by a person's function; each split that was read whole is kept.

    Parameters
    ----------
    name : str
        Name of the data set.
    read : callable
        Takes (split), (split, limit) or (split, limit, on_progress).
    task : {"classification", "regression"} or None
        None: told by the targets.
    class_names : tuple of str
        Empty: told by what was read.
    """

    def __init__(self, name: str, read: Callable[..., object], task: Task | None, class_names: tuple[str, ...]) -> None:
        self.name, self.read, self.task, self.class_names = name, read, task, class_names
        self._path: Path | None = None  # where the function says that the data lie
        self._kept: dict[str, Items] = {}
        self._firsts: dict[str, Items] = {}  # the first input alone, which tells shape, task and classes
        self._naming: Naming | None = None
        self._lock = threading.RLock()
        self._takes = sum(
            parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
            for parameter in signature(read).parameters.values()
        )

    def __call__(self, split: str, limit: int | None, on_progress: Progress | None) -> Items:
        """Return one split, or the first `limit` items of it."""
        with self._lock:
            if split not in self._kept:
                items = self._firsts.get(split) if limit == 1 else None
                if items is None:
                    items = self._read(split, limit, on_progress)
                if limit is not None and not items.whole:
                    if limit == 1:
                        self._firsts[split] = items
                    return self._with_vocabulary(_first(items, limit))
                self._kept[split] = items
            return self._with_vocabulary(_first(self._kept[split], limit))

    def names(self) -> tuple[str, ...]:
        """Return the class names: those given, those that the data bring, or "0" to the highest class."""
        with self._lock:
            if not self.class_names:
                self("train", 1, None)  # files tell their classes with the first input
            if self.class_names:
                return self.class_names
            highest = -1
            for split in ("train", "test"):
                targets = self(split, None, None).targets
                if targets.dtype.kind == "f":
                    return ()
                highest = max(highest, int(targets.max()))
            self.class_names = tuple(str(number) for number in range(highest + 1))
            return self.class_names

    def _read(self, split: str, limit: int | None, on_progress: Progress | None) -> Items:
        where = f"{said_source(self.read)}: the {split} split of {self.name!r}"
        doing, file = f"reading the {split} split of {self.name!r}", source_of(self.read)[0]
        items = run_own(doing, file, lambda: self._items(split, limit, where, on_progress), DataError)
        items = self._with_naming(items, where)
        targets = checked_targets(items.targets, where, self.task, self.class_names)
        if len(items.inputs) != len(targets):
            raise DataError(f"{where} has {len(items.inputs)} inputs and {len(targets)} targets; expected as many.")
        if not len(targets):
            raise DataError(f"{where} is empty; expected at least one input.")
        self.task = "regression" if targets.dtype.kind == "f" else "classification"
        return replace(items, inputs=checked_inputs(items.inputs, where), targets=targets)

    def _items(self, split: str, limit: int | None, where: str, on_progress: Progress | None) -> Items:
        """Call the person's function, and take apart what it returned, unchecked."""
        given: list[object] = [split, limit, on_progress]
        data = self.read(*given[: self._takes])
        if isinstance(data, str | Path):
            path = local_path(data, on_progress)
            if path != (self._path or path):
                raise DataError(
                    f"{where}: `read` returned {path}, and {self._path} for the other split; expected one path for "
                    "both, of files that hold or give the splits. Or read the files and return (inputs, targets)."
                )
            self._path = path
            items = DataFile(path, Preparation())(split, limit, on_progress)
            self.class_names = self.class_names or items.class_names
            return items
        whole = self._takes == 1
        items = self._apart(data, where, None if whole else limit, on_progress)
        return replace(items, whole=items.whole or whole)

    def _apart(self, found: object, where: str, limit: int | None, on_progress: Progress | None) -> Items:
        """Take apart what the person's function returned, unchecked."""
        if isinstance(found, Dataset):
            self.task, self.class_names = self.task or found.task, self.class_names or found.class_names
            return Items(
                found.inputs,
                found.targets,
                found.vocabulary,
                found.texts,
                notes=found.notes,
                special=found.special,
                naming=found.naming,
            )
        if isinstance(found, Items):
            self.class_names = self.class_names or found.class_names
            return found
        if isinstance(found, tuple | list) and len(found) == 2:
            columns = tuple(str(name) for name in getattr(found[0], "columns", ()))
            by_name = isinstance(found[0], Mapping)  # taken apart by `_with_naming`
            inputs = cast("NDArray[np.generic]", found[0]) if by_name else as_array(found[0])
            return Items(inputs, as_array(found[1]), columns)
        names = getattr(found, "classes", None)
        if isinstance(names, tuple | list) and not self.class_names:
            self.class_names = tuple(str(name) for name in names)
        tensors: tuple[object, ...] = getattr(found, "tensors", ())
        if len(tensors) == 2:
            return Items(as_array(tensors[0]), as_array(tensors[1]))
        if hasattr(found, "__getitem__") and hasattr(found, "__len__") and not isinstance(found, Mapping | str):
            return gathered(found, where, limit, on_progress)
        raise DataError(f"{where}: `read` returned {type(found).__name__}; {_EXPECTED}.")

    def _with_naming(self, items: Items, where: str) -> Items:
        """Take inputs by name apart; what the others are is the same in both splits."""
        given: object = items.inputs
        if isinstance(given, Mapping):
            arrays = {name: as_array(value) for name, value in given.items()}
            inputs, naming = apart(arrays, items.special[0], where)
            padding = next((other.padding for other in naming.others if other.way == "mask"), items.special[0])
            items = replace(items, inputs=inputs, naming=naming, special=(padding, *items.special[1:]))
        if self._naming is not None and items.naming != self._naming:
            now, before = (form.said if form else "" for form in (items.naming, self._naming))
            raise DataError(f"{where}: {now or 'one input'}, but it was read before that {before or 'there is one'}.")
        self._naming = items.naming
        return items

    def _with_vocabulary(self, items: Items) -> Items:
        """Give token ids without a vocabulary their numbers as words, for all that either split holds."""
        if items.vocabulary or items.inputs.dtype.kind == "f":
            return items
        for split in ("train", "test"):
            self._kept.setdefault(split, self._kept.get(split) or self._read(split, None, None))
        highest = max(int(kept.inputs.max()) for kept in self._kept.values())
        return replace(items, vocabulary=tuple(f"#{number}" for number in range(max(2, highest + 1))))


class DataFile:
    """Reads the splits of a file or folder, prepared; `path` says where what is wrong lies."""

    def __init__(self, path: Path, preparation: Preparation) -> None:
        self.path, self.preparation, self.format = path, preparation, format_of(path)

    def __call__(self, split: str, limit: int | None, on_progress: Progress | None) -> Items:
        """Return one split, or its first `limit` items."""
        return self.format.read(self.path, self.preparation, split, limit, on_progress)


def _task(entry: OwnData) -> Task | None:
    entry.load("train", 1, None)
    return entry.load.task


def _input_shape(entry: OwnData) -> tuple[int, ...]:
    return tuple(int(size) for size in entry.load("train", 1, None).inputs.shape[1:])


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnData(DatasetEntry):
    """A data set that a person registered: what was not given is told by the data, when it is first asked for."""

    load: OwnReader
    task: Task = lazy(_task)
    class_names: tuple[str, ...] = lazy(lambda entry: () if entry.task == "regression" else entry.load.names())
    input_shape: tuple[int, ...] = lazy(_input_shape)
    citation: str = ""
    licence: str = ""
    edition: int = field(default_factory=next_registration)

    @property
    def file(self) -> str:
        """The file that it comes from."""
        return source_of(self.load.read)[0]


def _first(items: Items, limit: int | None) -> Items:
    if limit is None or limit >= len(items.targets):
        return items
    return replace(items, inputs=items.inputs[:limit], targets=items.targets[:limit], texts=items.texts[:limit])
