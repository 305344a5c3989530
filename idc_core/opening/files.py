"""Networks and data that a person names by a path, or data by a URL, entered in the registries under a name.

A URL stays one until it is opened: every process fetches the data for itself.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.base.own_code import is_url, looks_like_path
from idc_core.base.parameters import shown
from idc_core.base.progress import Progress
from idc_core.errors import DataError, ModelError, SettingError

if TYPE_CHECKING:
    from idc_core.datasets.preparation import Preparation
    from idc_core.models.network_file import NetworkFile

NETWORKS, DATA = "models", "data"
"""Kinds of names in whose place a path may stand."""


@dataclass(frozen=True)
class OwnFile:
    """A path, or a URL, that a person gave in place of a name: of which kind, and what stands around it.

    `architecture` is NAME of NAME=FILE, `rest` the bits of FILE:BITS with their colon.
    """

    kind: str
    path: str
    architecture: str = ""
    rest: str = ""


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """What files are opened with, as plain values: options of the command line, and keys of a gate's file.

    Attributes
    ----------
    scaling, explain, output, class_names, trust, hold, output_layout
        Of networks: what was given of a `Scaling`, and as in `idc_core.models.network_file.NetworkFile`, where
        `class_names` are its `output_names`, and `hold` its `held` as texts NAME=NUMBER.
    preparation : dict
        Of data: what was given of a `Preparation`; the rest is as the network expects.
    """

    scaling: dict[str, object] = field(default_factory=dict)
    explain: str = ""
    output: str = ""
    class_names: list[str] = field(default_factory=list)
    trust: bool = False
    hold: list[str] = field(default_factory=list)
    output_layout: str = ""
    preparation: dict[str, object] = field(default_factory=dict)

    def network(self, file: OwnFile) -> NetworkFile:
        """Return a network's file with what it is opened with."""
        from idc_core.guarded import typed
        from idc_core.models.network_file import NetworkFile
        from idc_core.models.scaling import Scaling

        scaling = typed(self.scaling, "scaling", Scaling) if self.scaling else None
        return NetworkFile(
            Path(file.path),
            scaling,
            file.architecture,
            self.trust,
            self.explain or None,
            self.output,
            tuple(self.class_names),
            held=held_at(self.hold),
            output_layout=self.output_layout,
        )

    def prepared(self, expected: Preparation | None) -> Preparation | None:
        """Return how data are prepared of which a network expects something; None where nothing was said."""
        from idc_core.datasets.preparation import OF_PROCESSOR, Preparation

        if not self.preparation:
            return expected
        usual = expected.to_json() if expected else {}
        if self.preparation.keys() & {"processor", *OF_PROCESSOR}:
            usual.pop("processor", None)
        return Preparation.from_json({**usual, **self.preparation}, "preparation")


@dataclass(frozen=True)
class OwnFiles:
    """Files that are opened together, with what; `data` are those that the networks take, a name, a path or a URL."""

    files: tuple[OwnFile, ...]
    options: FileOptions
    data: str = ""

    def enter(
        self, for_networks: Iterable[str] = (), for_data: Iterable[str] = (), on_progress: Progress | None = None
    ) -> dict[OwnFile, str]:
        """Enter all in the registries and return their names; data first, prepared as the first network asks.

        `for_networks` and `for_data` are what a person calls the options that were given.

        Raises
        ------
        IdcError
            If there is no file for an option, a file cannot be read, or nothing says what a network takes.
        """
        kinds = {file.kind for file in self.files}
        for kind, what, given in ((NETWORKS, "a network that is", for_networks), (DATA, "data that are", for_data)):
            if kind not in kinds and (first := next(iter(given), "")):
                raise SettingError(f"{first} is for {what} given by a path; leave it out, or give one.")
        if not self.files:
            return {}
        from idc_core.datasets.registry import open_data
        from idc_core.models.network_file import open_network

        networks = {file: self.options.network(file) for file in self.files if file.kind == NETWORKS}
        expected = next((expects for network in networks.values() if (expects := network.expects)), None)
        names: dict[OwnFile, str] = {}
        data = self.data
        for file in self.files:
            if file.kind == DATA:
                preparation = self.options.prepared(expected)
                names[file] = open_data(file.path, preparation=preparation, on_progress=on_progress).name
                data = names[file] if data in ("", file.path) else data
        return names | {file: open_network(network, data).name + file.rest for file, network in networks.items()}

    @property
    def given(self) -> tuple[dict[str, object], dict[str, object]]:
        """What was given for networks and for data, by the options of the command line that say it."""
        from idc_core.datasets.preparation import Preparation
        from idc_core.models.scaling import Scaling

        options = self.options
        data = {"--data": self.data} if self.data else {}
        others = {
            "--explain": options.explain,
            "--output": options.output,
            "--class-names": options.class_names,
            "--trust": options.trust,
            "--hold": options.hold,
            "--output-layout": options.output_layout,
        }
        scaling, preparation = (
            {flag_of(item): values[item.name] for item in fields(kind) if item.name in values}
            for kind, values in ((Scaling, options.scaling), (Preparation, options.preparation))
        )
        return data | scaling | {flag: value for flag, value in others.items() if value}, preparation

    @property
    def words(self) -> list[str]:
        """The options with which a command line opens files so."""
        for_networks, for_data = self.given
        return [_word(flag, value) for flag, value in (for_networks | for_data).items()]

    def to_json(self) -> str:
        """Return a text from which `from_json` makes the same."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str, where: str) -> OwnFiles:
        """Make one of what `to_json` returned; `IdcError`, naming where that lay, if it is anything else."""
        from idc_core.guarded import typed

        try:
            return typed(json.loads(text), where, cls)
        except ValueError as error:
            raise SettingError(f"{where} must hold files and their options as JSON ({error}).") from error


def held_at(texts: Iterable[str]) -> dict[str, float]:
    """Return the numbers of texts NAME=NUMBER, by name."""
    return dict(map(_held, texts))


def _held(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name.strip(), _finite(float(number))
    except ValueError:
        raise SettingError(f"hold must be NAME=NUMBER, such as state=0, not {shown(text)}.") from None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError
    return value


def flag_of(one: Field[object]) -> str:
    """Return the option of the command line that says a field of `Scaling` or `Preparation`."""
    return f"--{(one.metadata['name'] or one.name).replace('_', '-')}"


def _word(flag: str, value: object) -> str:
    if isinstance(value, list | tuple):
        value = ("x" if flag == "--size" else ",").join(map(str, value))
    return flag if value is True else f"{flag}={value}"


def as_file(kind: str, text: str) -> OwnFile | None:
    """Return the file that a text is meant as, or None; SettingError where there is nothing under it."""
    if kind not in (NETWORKS, DATA) or not looks_like_path(text):
        return None
    if kind == DATA and is_url(text):
        return OwnFile(DATA, text)
    path = Path(text).expanduser().absolute()
    if not os.path.exists(path):  # noqa: PTH110 (the name may be too long)
        raise SettingError(f"names {shown(text)}, where there is no file and no folder: give a path that is there")
    return OwnFile(kind, str(path))


def open_named(model: str, data: str, options: FileOptions, folder: Path, architecture: str = "") -> tuple[str, str]:
    """Enter what is named by a path from a folder, as by a gate's file; return the names of network and tests.

    Raises
    ------
    IdcError
        If there is no such name and no such file, a file cannot be opened, or an option is for what is not there.
    """
    from idc_core.datasets import DATASETS
    from idc_core.models.registry import MODELS, find_entry

    network = _by_path(NETWORKS, model, MODELS, folder)
    tests = _by_path(DATA, data, DATASETS, folder)
    files = tuple(filter(None, (network and replace(network, architecture=architecture), tests)))
    own = ("scaling", "explain", "output", "class_names", "trust", "hold", "output_layout")
    given = {"architecture": architecture, **{key: getattr(options, key) for key in own}}
    for_networks, for_data = [key for key, value in given.items() if value], ["preparation"] * bool(options.preparation)
    entered = OwnFiles(files, options, "" if tests else data).enter(for_networks, for_data)
    names = {file.kind: name for file, name in entered.items()}
    entry = find_entry(names.get(NETWORKS, model))
    data = names.get(DATA, data) or entry.dataset
    if data not in DATASETS:
        raise DataError(f"There is no dataset {shown(data)}; the datasets are {', '.join(DATASETS)}.")
    return entry.name, data


def _by_path(kind: str, text: str, registry: Mapping[str, object], folder: Path) -> OwnFile | None:
    """Return the file that a text is meant as; None where it is a name."""
    from idc_core import library

    if kind == DATA and is_url(text):
        return OwnFile(DATA, text)
    if not text or text in registry:
        return None
    library.enter_all()
    if text in registry:
        return None
    path = folder / Path(text).expanduser()
    if path.exists():
        return OwnFile(kind, str(path))
    if looks_like_path(text):
        error = ModelError if kind == NETWORKS else DataError
        raise error(f"There is no file {path} and no folder: give a path from the folder of the file, or a name.")
    return None
