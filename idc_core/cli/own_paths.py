"""Paths in place of names: networks and data of a person's own, entered in the registries before a command runs.

Data may be given by a URL as well, which stays one until it is opened: every process fetches them for itself.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from idc_core.errors import SettingError
from idc_core.own_code import is_url, looks_like_path, name_after
from idc_core.parameters import Parameter, shown

if TYPE_CHECKING:
    from idc_core.models.scaling import Scaling

_PIXEL = Parameter("scaling", "Scaling", "Of inputs in front of a network.", 0.0, -1e6, 1e6)

NETWORKS, DATA = "models", "data"
"""Kinds of names in whose place a path may stand."""


@dataclass(frozen=True)
class OwnPath:
    """A path, or a URL as text, that a person gave in place of a name: of which kind, and what stands around it.

    `architecture` is NAME of NAME=FILE, `rest` the bits of FILE:BITS with their colon.
    """

    kind: str
    path: Path | str
    architecture: str = ""
    rest: str = ""


def as_path(kind: str, text: str) -> OwnPath | None:
    """Return the path that a text is meant as, or None; SettingError where there is nothing under it."""
    if kind not in (NETWORKS, DATA) or not looks_like_path(text):
        return None
    if kind == DATA and is_url(text):
        return OwnPath(DATA, text)
    path = Path(text).expanduser().absolute()
    if not os.path.exists(path):  # noqa: PTH110 (the name may be too long)
        raise SettingError(f"names {shown(text)}, where there is no file and no folder: give a path that is there")
    return OwnPath(kind, path)


def kind_of(path: Path) -> str:
    """Return whether a path is a network's or that of data."""
    from idc_core.models.formats import NETWORK_FORMATS, REFUSED

    ending = path.suffix.lower()
    own = (path / "config.json").exists() if path.is_dir() else ending in NETWORK_FORMATS or ending in REFUSED
    return NETWORKS if own else DATA


def add_options(parser: argparse.ArgumentParser, data: bool) -> None:
    """Add the options of networks that are given by a path, and `--data` where the command has none of its own."""
    from idc_core.cli.arguments import Decimals, Name, Number, Text, Word
    from idc_core.explained import EXPLAINED, TOKEN

    add = parser.add_argument_group("networks from files, given by a path").add_argument
    if data:
        add("--data", type=Name("data"), metavar="NAME", help="what they take: a data set, or a path")
    add("--mean", type=Decimals(_PIXEL), metavar="X,X,...", help="subtracted from inputs, per channel or one for all")
    divided = "inputs are divided by it, per channel or one for all"
    add("--deviation", type=Decimals(_PIXEL), metavar="X,X,...", help=divided)
    add("--factor", type=Number(_PIXEL), metavar="X", help="inputs are multiplied by it first, such as 255")
    add("--order", type=Word(("RGB", "BGR")), metavar="{RGB,BGR}", help="of the channels that they take")
    places = ("first", "last", "flat")
    add("--layout", type=Word(places), metavar="{first,last,flat}", help="where they take the channels")
    names = f"{', '.join(EXPLAINED)} or token-N"
    explained = Text("|".join((*EXPLAINED, TOKEN)), names)
    add("--explain", type=explained, metavar="NAME", help=f"what of many scores per input: {names}")
    add("--trust", action="store_true", default=None, help="read files that can run code (.pt2): only your own")


_OPTIONS = ("data", "mean", "deviation", "factor", "order", "layout", "explain", "trust")
"""What `add_options` adds."""


def open_paths(arguments: argparse.Namespace) -> list[str]:
    """Enter what is given by paths in the registries, and put names in their place.

    Returns the words of a command line that open the same, from any folder; `renamed` says which files go by another
    name than theirs.
    """
    from idc_core.cli.preparing import check_used, words_of

    arguments.renamed = []
    given = [value for value in _values(arguments) if isinstance(value, OwnPath)]
    networks = [one for one in given if one.kind == NETWORKS]
    said = [name for name in _OPTIONS if getattr(arguments, name, None) is not None]
    if not networks and (alone := [name for name in said if name != "data" or not _takes_data(arguments)]):
        raise SettingError(f"--{alone[0]} is for a network that is given by a path; leave it out, or give one.")
    check_used(arguments, any(one.kind == DATA for one in given))
    if not given:
        return []
    words = [*_as_words(arguments, given), *words_of(arguments)]
    names = dict(_opened(given, networks, arguments))
    arguments.renamed = [sentence for one, name in names.items() if (sentence := _renamed(one, name))]
    for key, value in list(vars(arguments).items()):
        if isinstance(value, list):
            setattr(arguments, key, [names.get(one, one) if isinstance(one, OwnPath) else one for one in value])
        elif isinstance(value, OwnPath):
            setattr(arguments, key, names[value])
    return words


def _renamed(given: OwnPath, name: str) -> str:
    """Say under which name something is, where another one has that of its file; else empty."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    file = Path(urlsplit(given.path).path if isinstance(given.path, str) else given.path)
    what, registry = ("data set", DATASETS) if given.kind == DATA else ("network", MODELS)
    first, name = name_after(file), name.removesuffix(given.rest)
    taken = name != first and first in registry
    return f"{file.name} is called {name} here: there is another {what} {first}." if taken else ""


def _takes_data(arguments: argparse.Namespace) -> bool:
    """Whether the command's own --data is another one than that of networks from files."""
    return arguments.command not in WITHOUT_DATA


WITHOUT_DATA = ("check-network", "experiment", "studio")
"""Commands with no `--data` of their own."""


def _opened(
    given: list[OwnPath], networks: list[OwnPath], arguments: argparse.Namespace
) -> Iterator[tuple[OwnPath, str]]:
    """Yield each path with the name that it is entered under; data first, prepared as the first network asks."""
    from idc_core.cli.console import ProgressLine
    from idc_core.cli.preparing import preparation_of
    from idc_core.datasets.opening import open_data
    from idc_core.models.formats import format_of
    from idc_core.models.opening import open_network

    paths = [Path(one.path) for one in networks]
    expects = next((kind.expects(path) for path in paths if (kind := format_of(path)).expects), None)
    data = getattr(arguments, "data", None) or ""
    for one in given:
        if one.kind == DATA:
            preparation = preparation_of(arguments, expects)
            with ProgressLine() as progress:
                name = open_data(one.path, preparation=preparation, on_progress=progress).name
            data = name if one == data or not data else data
            yield one, name
    scaling = _scaling_of(arguments)
    for one in networks:
        entry = open_network(
            one.path,
            data=data,
            scaling=scaling,
            architecture=one.architecture,
            trust=bool(arguments.trust),
            explain=arguments.explain,
        )
        yield one, f"{entry.name}{one.rest}"


def _scaling_of(arguments: argparse.Namespace) -> Scaling | None:
    """Return the scaling that the options say; None where they say nothing."""
    from idc_core.models.scaling import Scaling

    names = ("mean", "deviation", "factor", "order", "layout")
    said = {name: getattr(arguments, name) for name in names if getattr(arguments, name, None) is not None}
    return Scaling(**said) if said else None


def _as_words(arguments: argparse.Namespace, paths: list[OwnPath]) -> list[str]:
    with_network = any(one.kind == NETWORKS for one in paths)  # without one, `studio` takes no --data
    words = [str(one.path) for one in paths if not with_network or one != getattr(arguments, "data", None)]
    for name in _OPTIONS:
        value = getattr(arguments, name, None) if with_network or name != "data" else None
        text = str(value.path if isinstance(value, OwnPath) else value)
        if isinstance(value, tuple):
            text = ",".join(map(str, value))
        if value is not None:
            words.append(f"--{name}" if value is True else f"--{name}={text}")
    return words


def _values(arguments: argparse.Namespace) -> Iterator[Any]:
    for value in vars(arguments).values():
        yield from value if isinstance(value, list) else [value]
