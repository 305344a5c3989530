"""Paths in place of names, and the options of networks and data from files, which are fields of two dataclasses."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from urllib.parse import urlsplit

from idc_core.base.own_code import is_url, name_after
from idc_core.base.parameters import Parameter
from idc_core.cli.arguments import Argument, Decimals, FolderToRead, Name, Number, Size, Text, Texts, Word
from idc_core.cli.console import ProgressLine
from idc_core.datasets.preparation import FOLDERS, Preparation
from idc_core.lrp.explained import LAYOUTS, NAMES, PATTERN
from idc_core.models.scaling import Scaling
from idc_core.opening.files import DATA, FileOptions, OwnFile, OwnFiles, flag_of

_WITHOUT_DATA = ("benchmark", "check-network", "experiment", "studio")
"""Commands with no `--data` of their own."""

_OTHERS: dict[str, tuple[Argument, str]] = {
    "size": (Size(), "ROWSxCOLUMNS"),
    **dict.fromkeys(FOLDERS, (FolderToRead(), "FOLDER")),
}
"""What fields take that are neither numbers nor words nor any text."""


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of files, and `--data` where the command has none of its own."""
    add = parser.add_argument_group("networks from files, given by a path").add_argument
    if command in _WITHOUT_DATA:
        add("--data", type=Name("data"), metavar="NAME", help="what they take: a data set, or a path")
    _add_fields(add, Scaling)
    add("--explain", type=Text(PATTERN, NAMES), metavar="NAME", help=f"what of many scores per input: {NAMES}")
    add("--output", type=Text(), metavar="NAME", help="name or number of the output with the scores, of several")
    add("--class-names", type=Texts(), metavar="NAME,NAME,...", help="what its outputs are called, in their order")
    help = "inputs of an ONNX file that are held at a number, such as state=0: the network takes the one that is left"
    add("--hold", type=Texts(), metavar="NAME=X,...", help=help)
    help = "time-first where scores are (time, inputs, classes), batch-first where not (told by a batch of two)"
    add("--output-layout", type=Word(LAYOUTS), metavar="{time-first,batch-first}", help=help)
    add("--trust", action="store_true", default=None, help="read files that can run code (.pt2): only your own")
    _add_fields(parser.add_argument_group("data from files, given by a path").add_argument, Preparation)


def _add_fields(add: Callable[..., argparse.Action], kind: type[Scaling | Preparation]) -> None:
    for item in fields(kind):
        argument, metavar = _taken(item)
        add(flag_of(item), type=argument, metavar=metavar, help=item.metadata["help"])


def _taken(one: Field[object]) -> tuple[Argument, str]:
    """Return what a field's option takes, and how its help writes that."""
    among = one.metadata["among"]
    if one.name in _OTHERS:
        return _OTHERS[one.name]
    if isinstance(among, Parameter):
        several, metavar = isinstance(one.default, tuple), "N" if among.is_whole else "X"
        return (Decimals(among), f"{metavar},{metavar},...") if several else (Number(among), metavar)
    words = tuple(map(str, among))
    return (Word(words, type(among[0])), f"{{{','.join(words)}}}") if words else (Text(), "NAME")


def open_paths(arguments: argparse.Namespace) -> None:
    """Enter what is given by paths in the registries, and put names in their place.

    `own_files` is what was opened, or None; `renamed` says which files go by another name than theirs.
    """
    own = _own_files(arguments)
    for_networks, for_data = own.given
    if arguments.command not in _WITHOUT_DATA:
        for_networks.pop("--data", None)
    with ProgressLine() as progress:
        names = own.enter(for_networks, for_data, progress)
    arguments.own_files = own if names else None
    arguments.renamed = [sentence for file, name in names.items() if (sentence := _renamed(file, name))]
    for key, value in list(vars(arguments).items()):
        if isinstance(value, list):
            setattr(arguments, key, [names.get(part, part) if isinstance(part, OwnFile) else part for part in value])
        elif isinstance(value, OwnFile):
            setattr(arguments, key, names[value])


def _own_files(arguments: argparse.Namespace) -> OwnFiles:
    """Return what the options say."""
    values = [value for held in vars(arguments).values() for value in (held if isinstance(held, list) else [held])]
    files = tuple(value for value in values if isinstance(value, OwnFile))
    options = FileOptions(
        scaling=_said(arguments, Scaling),
        explain=getattr(arguments, "explain", None) or "",
        output=getattr(arguments, "output", None) or "",
        class_names=list(getattr(arguments, "class_names", None) or ()),
        trust=bool(getattr(arguments, "trust", None)),
        hold=list(getattr(arguments, "hold", None) or ()),
        output_layout=getattr(arguments, "output_layout", None) or "",
        preparation=_said(arguments, Preparation),
    )
    data = getattr(arguments, "data", None) or ""
    return OwnFiles(files, options, data.path if isinstance(data, OwnFile) else data)


def _said(arguments: argparse.Namespace, kind: type[Scaling | Preparation]) -> dict[str, object]:
    """Return what was given of the fields, as plain values."""
    destinations = {item.name: flag_of(item).removeprefix("--").replace("-", "_") for item in fields(kind)}
    values = ((name, getattr(arguments, destination, None)) for name, destination in destinations.items())
    return {name: str(value) if isinstance(value, Path) else value for name, value in values if value is not None}


def _renamed(file: OwnFile, name: str) -> str:
    """Say under which name something is, where another one has that of its file; else empty."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    path = Path(urlsplit(file.path).path if is_url(file.path) else file.path)
    what, registry = ("data set", DATASETS) if file.kind == DATA else ("network", MODELS)
    first, name = name_after(path), name.removesuffix(file.rest)
    taken = name != first and first in registry
    return f"{path.name} is called {name} here: there is another {what} {first}." if taken else ""
